import type { Clock, Connection, ConnectionHandler, Disk, Network, Platform } from '@zabra/runtime'

/** Decides which ports one server may connect to, and tracks its outgoing connections. */
export interface ConnectionPolicy {
  /** Throws when connections to the port are blocked. */
  assertAllowed(port: number): void
  opened(connection: Connection): void
  closed(connection: Connection): void
}

/**
 * Incarnations started so far, and the process ids of those that run. The ids are negative, so that none is that of a
 * real process.
 */
let incarnationCount = 0
const alivePids = new Set<number>()

/** One run of a server inside the test's process. Its platform does nothing once the run has ended. */
export class ServerIncarnation {
  readonly platform: Platform
  readonly #pid = -++incarnationCount
  #isAlive = true
  #isPaused = false
  readonly #deferred: (() => void)[] = []
  readonly #policy: ConnectionPolicy
  readonly #connections = new Set<Connection>()
  readonly #listeners = new Set<{ close(): Promise<void> }>()

  constructor(platform: Platform, policy: ConnectionPolicy) {
    this.#policy = policy
    const { system } = platform
    // The first run in a process after one that was killed has the same number.
    const process = system.processIdentity(system.pid)
    this.platform = {
      ...platform,
      clock: this.#clock(platform.clock),
      network: this.#network(platform.network),
      disk: this.#disk(platform.disk),
      system: {
        ...platform.system,
        pid: this.#pid,
        processIdentity: (pid) =>
          pid >= 0
            ? platform.system.processIdentity(pid)
            : alivePids.has(pid)
              ? `incarnation ${pid} in ${process}`
              : undefined,
      },
    }
    alivePids.add(this.#pid)
  }

  pause(): void {
    this.#isPaused = true
  }

  resume(): void {
    this.#isPaused = false
    for (const action of this.#deferred.splice(0)) this.#run(action)
  }

  /** Ends the run at once, as SIGKILL does. */
  async end(): Promise<void> {
    this.#isAlive = false
    alivePids.delete(this.#pid)
    this.#deferred.length = 0
    for (const connection of this.#connections) connection.destroy()
    this.#connections.clear()
    await Promise.all([...this.#listeners].map((listener) => listener.close()))
  }

  #run(action: () => void): void {
    if (!this.#isAlive) return
    if (this.#isPaused) this.#deferred.push(action)
    else action()
  }

  #clock(clock: Clock): Clock {
    return {
      wall: () => clock.wall(),
      monotonic: () => clock.monotonic(),
      after: (ms, name, action) => clock.after(ms, name, () => this.#run(action)),
      immediate: (action) => clock.immediate(() => this.#run(action)),
      afterMicrotasks: (action) => clock.afterMicrotasks(() => this.#run(action)),
    }
  }

  #network(network: Network): Network {
    return {
      listen: async (at, accepted, refused) => {
        const listener = await network.listen(
          at,
          (connection) => {
            const own = this.#connection(connection)
            if (this.#isAlive) this.#run(() => accepted(own))
            else connection.destroy()
          },
          refused,
        )
        this.#listeners.add(listener)
        return listener
      },
      connect: async (to, options) => {
        this.#policy.assertAllowed(to.port)
        const connection = await network.connect(to, options)
        this.#policy.assertAllowed(to.port)
        this.#policy.opened(connection)
        return this.#connection(connection)
      },
    }
  }

  /** Delivers no data while the server is paused. The peer notices nothing for a while, as with a stopped process. */
  #connection(connection: Connection): Connection {
    this.#connections.add(connection)
    return new Proxy(connection, {
      get: (target, key) => {
        if (key === 'setHandler') return (events: ConnectionHandler) => this.#setHandler(target, events)
        const value: unknown = Reflect.get(target, key, target)
        return typeof value === 'function' ? (value as (...args: unknown[]) => unknown).bind(target) : value
      },
    })
  }

  #setHandler(connection: Connection, events: ConnectionHandler): void {
    connection.setHandler({
      data: (chunk) => {
        if (this.#isPaused) {
          const kept = chunk.slice()
          this.#run(() => events.data(kept))
        } else this.#run(() => events.data(chunk))
      },
      drain: () => this.#run(() => events.drain()),
      ended: () => this.#isAlive && events.ended?.() === true,
      closed: (cause) => {
        this.#connections.delete(connection)
        this.#policy.closed(connection)
        this.#run(() => events.closed(cause))
      },
    })
  }

  #disk(disk: Disk): Disk {
    const never = new Promise<never>(() => {})
    const guarded = (target: object): object =>
      new Proxy(target, {
        get: (object, key) => {
          const value: unknown = Reflect.get(object, key, object)
          if (typeof value !== 'function') return value
          return async (...args: unknown[]) => {
            if (!this.#isAlive) return never
            const result: unknown = await (value as (...all: unknown[]) => unknown).apply(object, args)
            if (!this.#isAlive) return never
            const isHandle = typeof result === 'object' && result !== null && 'close' in result
            return isHandle ? guarded(result) : result
          }
        },
      })
    return guarded(disk) as Disk
  }
}
