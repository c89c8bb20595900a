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
  readonly ports: Platform
  readonly #pid = -++incarnationCount
  #alive = true
  #paused = false
  readonly #held: (() => void)[] = []
  readonly #ways: ConnectionPolicy
  readonly #connections = new Set<Connection>()
  readonly #listeners = new Set<{ close(): Promise<void> }>()

  constructor(ports: Platform, ways: ConnectionPolicy) {
    this.#ways = ways
    this.ports = {
      ...ports,
      clock: this.#clock(ports.clock),
      network: this.#network(ports.network),
      disk: this.#disk(ports.disk),
      system: {
        ...ports.system,
        pid: this.#pid,
        processIdentity: (pid) =>
          pid >= 0 ? ports.system.processIdentity(pid) : alivePids.has(pid) ? `life ${pid}` : undefined,
      },
    }
    alivePids.add(this.#pid)
  }

  pause(): void {
    this.#paused = true
  }

  resume(): void {
    this.#paused = false
    for (const action of this.#held.splice(0)) this.#run(action)
  }

  /** Ends the run at once, as SIGKILL does. */
  async end(): Promise<void> {
    this.#alive = false
    alivePids.delete(this.#pid)
    this.#held.length = 0
    for (const connection of this.#connections) connection.destroy()
    this.#connections.clear()
    await Promise.all([...this.#listeners].map((listener) => listener.close()))
  }

  #run(action: () => void): void {
    if (!this.#alive) return
    if (this.#paused) this.#held.push(action)
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
            if (this.#alive) this.#run(() => accepted(own))
            else connection.destroy()
          },
          refused,
        )
        this.#listeners.add(listener)
        return listener
      },
      connect: async (to, options) => {
        this.#ways.assertAllowed(to.port)
        const connection = await network.connect(to, options)
        this.#ways.assertAllowed(to.port)
        this.#ways.opened(connection)
        return this.#connection(connection)
      },
    }
  }

  /** Delivers no data while the server is paused. The peer notices nothing for a while, as with a stopped process. */
  #connection(connection: Connection): Connection {
    this.#connections.add(connection)
    return new Proxy(connection, {
      get: (target, key) => {
        if (key === 'listen') return (events: ConnectionHandler) => this.#listen(target, events)
        const value: unknown = Reflect.get(target, key, target)
        return typeof value === 'function' ? (value as (...args: unknown[]) => unknown).bind(target) : value
      },
    })
  }

  #listen(connection: Connection, events: ConnectionHandler): void {
    connection.setHandler({
      data: (chunk) => {
        if (this.#paused) {
          const kept = chunk.slice()
          this.#run(() => events.data(kept))
        } else this.#run(() => events.data(chunk))
      },
      drain: () => this.#run(() => events.drain()),
      ended: () => this.#alive && events.ended?.() === true,
      closed: (cause) => {
        this.#connections.delete(connection)
        this.#ways.closed(connection)
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
            if (!this.#alive) return never
            const result: unknown = await (value as (...all: unknown[]) => unknown).apply(object, args)
            if (!this.#alive) return never
            const isHandle = typeof result === 'object' && result !== null && 'close' in result
            return isHandle ? guarded(result) : result
          }
        },
      })
    return guarded(disk) as Disk
  }
}
