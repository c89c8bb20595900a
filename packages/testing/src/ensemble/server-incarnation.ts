import type { Clock, Connection, ConnectionHandler, Disk, Network, Platform } from '@zabra/runtime'

/** What decides whether one server may reach a port, and hears of what it opens and what is over. */
export interface ConnectionPolicy {
  /** Throws when the way is cut. */
  assertAllowed(port: number): void
  opened(connection: Connection): void
  closed(connection: Connection): void
}

/** Lives so far, and those that go on: what process ids are to a machine. Below zero, so that no real process has them. */
let incarnationCount = 0
const alivePids = new Set<number>()

/** One life of a server inside a test's process: its ports, which do nothing any more once it is over. */
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

  /** Ends everything at once, as when the process is killed. */
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

  /** Reads nothing while the server stands still: who sends notices nothing for a while, as with a stopped process. */
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
