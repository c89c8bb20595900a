import type { Clock, Connection, ConnectionEvents, Disk, Network, Ports } from '@zabra/runtime'

/** What decides whether one server may reach a port, and hears of what it opens and what is over. */
export interface Ways {
  /** Throws when the way is cut. */
  open(port: number): void
  opened(connection: Connection): void
  closed(connection: Connection): void
}

/** Lives so far, and those that go on: what process ids are to a machine. Below zero, so that no real process has them. */
let lives = 0
const living = new Set<number>()

/** One life of a server inside a test's process: its ports, which do nothing any more once it is over. */
export class Life {
  readonly ports: Ports
  readonly #pid = -++lives
  #alive = true
  #paused = false
  readonly #held: (() => void)[] = []
  readonly #ways: Ways
  readonly #connections = new Set<Connection>()
  readonly #listeners = new Set<{ close(): Promise<void> }>()

  constructor(ports: Ports, ways: Ways) {
    this.#ways = ways
    this.ports = {
      ...ports,
      clock: this.#clock(ports.clock),
      network: this.#network(ports.network),
      disk: this.#disk(ports.disk),
      system: {
        ...ports.system,
        pid: this.#pid,
        identityOf: (pid) =>
          pid >= 0 ? ports.system.identityOf(pid) : living.has(pid) ? `life ${pid}` : undefined,
      },
    }
    living.add(this.#pid)
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
    living.delete(this.#pid)
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
      soon: (action) => clock.soon(() => this.#run(action)),
      afterPromises: (action) => clock.afterPromises(() => this.#run(action)),
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
        this.#ways.open(to.port)
        const connection = await network.connect(to, options)
        this.#ways.open(to.port)
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
        if (key === 'listen') return (events: ConnectionEvents) => this.#listen(target, events)
        const value: unknown = Reflect.get(target, key, target)
        return typeof value === 'function' ? (value as (...args: unknown[]) => unknown).bind(target) : value
      },
    })
  }

  #listen(connection: Connection, events: ConnectionEvents): void {
    connection.listen({
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
