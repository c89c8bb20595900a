import {
  ManualClock,
  MemoryDisk,
  MemoryNetwork,
  NetworkError,
  SeededRandom,
  type Clock,
  type Connection,
  type Disk,
  type Logger,
  type Network,
  type Platform,
  type System,
} from '@zabra/runtime'
import { parseConfiguration, type EnsembleConfiguration, type ServerId } from '../../core/quorum/index.ts'
import { defaults, type ServerSettings } from '../../settings/index.ts'
import type { Server } from '../../server-types.ts'
import { createServer } from '../../server.ts'
import { RawClient } from '../../testing/test-server.ts'

/** One member: its disk stays, the process on it comes and goes. */
class TestMember {
  readonly id: ServerId
  readonly disk = new MemoryDisk()
  readonly ensemble: Ensemble
  settings: ServerSettings
  server: Server | undefined
  failure: unknown
  #life: Incarnation | undefined

  constructor(ensemble: Ensemble, id: ServerId, settings: ServerSettings) {
    this.ensemble = ensemble
    this.id = id
    this.settings = settings
  }

  async start(): Promise<void> {
    const life = new Incarnation(this.ensemble, this)
    this.#life = life
    this.failure = undefined
    const starting = createServer(this.settings, life.platform)
    let server: Server | undefined
    let failed: unknown
    starting.then(
      (one) => (server = one),
      (error: unknown) => (failed = error),
    )
    while (server === undefined && failed === undefined) await this.ensemble.untilIdle()
    if (server === undefined) throw failed
    this.server = server
    void server.failed.then((reason) => {
      if (this.server === server) this.failure = reason
    })
  }

  /** The process is gone at once; what was not durable is lost. */
  async crash(): Promise<void> {
    this.#life?.end()
    this.server = undefined
    this.disk.powerCut()
    await this.ensemble.untilIdle()
  }

  async stop(): Promise<void> {
    const server = this.server
    const closed = server!.close()
    let done = false
    void closed.then(() => (done = true))
    for (let waited = 0; !done && waited < 30_000; waited += 100) await this.ensemble.advance(100)
    await closed
    this.server = undefined
    this.#life?.end()
  }
}

/** What a process has of the world; with its end everything of it stands still. */
class Incarnation {
  alive = true
  readonly #wires = new Set<{ cut(): void }>()
  readonly #closes: (() => Promise<void>)[] = []
  readonly platform: Platform

  constructor(ensemble: Ensemble, member: TestMember) {
    const { clock, network } = ensemble
    const guarded =
      (action: () => void): (() => void) =>
      () => {
        if (this.alive) action()
      }
    const ownClock: Clock = {
      wall: () => clock.wall(),
      monotonic: () => clock.monotonic(),
      after: (ms, name, action) => clock.after(ms, name, guarded(action)),
      immediate: (action) => clock.immediate(guarded(action)),
      afterMicrotasks: (action) => clock.afterMicrotasks(guarded(action)),
    }
    const track = (wire: Connection): Connection => {
      this.#wires.add(wire as unknown as { cut(): void })
      return wire
    }
    const ownNetwork: Network = {
      listen: async (at, accepted) => {
        const listener = await network.listen(at, (wire) => {
          if (this.alive) accepted(track(wire))
        })
        this.#closes.push(() => listener.close())
        return listener
      },
      connect: async (to, options) => {
        if (ensemble.isCut(member.id, to.port))
          throw new NetworkError(`Cannot connect to ${to.host}:${to.port} (EHOSTUNREACH)`, 'EHOSTUNREACH')
        return track(await network.connect({ ...to, port: ensemble.detour(member.id, to.port) }, options))
      },
    }
    const note =
      (level: keyof Logger) =>
      (facts: object, sentence: string): void => {
        const { lines } = ensemble
        lines.push(
          `${Math.round(clock.monotonic())} ${member.id} ${level} ${sentence} ${JSON.stringify(facts)}`,
        )
      }
    this.platform = {
      clock: ownClock,
      network: ownNetwork,
      disk: this.#ownDisk(member.disk),
      random: new SeededRandom(member.id),
      compression: { gzip: none, gunzip: none },
      logger: { error: note('error'), warn: note('warn'), info: note('info'), debug() {} },
      system,
    }
  }

  end(): void {
    this.alive = false
    for (const close of this.#closes) void close()
    for (const wire of this.#wires) wire.cut()
  }

  /** Cuts what there is between this process and a port. */
  #ownDisk(disk: MemoryDisk): Disk {
    const never = new Promise<never>(() => {})
    return new Proxy(disk, {
      get: (target, key) => {
        const value: unknown = Reflect.get(target, key)
        if (typeof value !== 'function') return value
        return (...args: unknown[]) =>
          this.alive ? (value as (...all: unknown[]) => unknown).apply(target, args) : never
      },
    })
  }
}

const none = (): never => {
  throw new Error('no compression here')
}

let processes = 100
const system: System = {
  get pid() {
    return processes++
  },
  processIdentity: () => undefined,
  residentMemory: () => 1,
  fileDescriptors: () => ({ open: 1, max: 100_000 }),
  environment: () => [],
} as System

/** Whole servers in one process, on a network, disks and a clock that a test controls. */
export class Ensemble {
  readonly clock = new ManualClock()
  readonly network = new MemoryNetwork(this.clock)
  readonly lines: string[] = []
  readonly members = new Map<ServerId, TestMember>()
  readonly #cut = new Set<ServerId>()

  /** Members 1 to `size`; `observers` name those without a voice. */
  constructor(
    size: number,
    { observers = [], ...settings }: Partial<ServerSettings> & { observers?: readonly ServerId[] } = {},
  ) {
    const ids = Array.from({ length: size }, (_, index) => index + 1)
    const lines = ids.map(
      (id) =>
        `server.${id}=127.0.0.1:${2000 + id}:${3000 + id}:${observers.includes(id) ? 'observer' : 'participant'}`,
    )
    const ensemble = parseConfiguration(lines.join('\n'))
    for (const id of ids)
      this.members.set(
        id,
        new TestMember(
          this,
          id,
          defaults({
            dataDir: '/data',
            clientPort: 4000 + id,
            serverId: id,
            tickTimeMs: 1000,
            initLimit: 10,
            syncLimit: 5,
            preAllocSizeBytes: 0,
            fourLetterWords: ['*'],
            ...settings,
            ensemble,
          }),
        ),
      )
  }

  static async start(size: number, settings?: ConstructorParameters<typeof Ensemble>[1]): Promise<Ensemble> {
    const ensemble = new Ensemble(size, settings)
    for (const member of ensemble.members.values()) await member.start()
    await ensemble.until('everybody serves', () =>
      [...ensemble.members.keys()].every((id) => ensemble.server(id).serving),
    )
    return ensemble
  }

  /** Starts one more server, with a configuration of its own that the others do not know. */
  async join(id: ServerId, ensemble: EnsembleConfiguration): Promise<void> {
    const { settings } = this.member(1)
    const member = new TestMember(
      this,
      id,
      Object.freeze({ ...settings, serverId: id, clientPort: 4000 + id, ensemble }),
    )
    this.members.set(id, member)
    await member.start()
  }

  member(id: ServerId): TestMember {
    return this.members.get(id)!
  }

  server(id: ServerId): Server {
    return this.member(id).server!
  }

  /** Members whose process runs. */
  get running(): Server[] {
    return [...this.members.values()].flatMap(({ server }) => (server === undefined ? [] : [server]))
  }

  /** The one that leads and serves, if there is exactly one. */
  get leader(): ServerId | undefined {
    const leaders = [...this.members.values()].filter(
      ({ server }) => server?.role === 'leading' && server.serving,
    )
    return leaders.length === 1 ? leaders[0]!.id : undefined
  }

  /** Where a connection of a member to a port leads. */
  detour: (id: ServerId, port: number) => number = (_, port) => port

  isCut(id: ServerId, port: number): boolean {
    return this.#cut.has(id) || this.#cut.has(port % 1000)
  }

  untilIdle(): Promise<void> {
    return this.clock.untilIdle()
  }

  async advance(ms: number): Promise<void> {
    for (let left = ms; left > 0; left -= 50) {
      this.clock.advance(Math.min(left, 50))
      await this.untilIdle()
    }
  }

  /** Lets time pass until something is so; throws with what was logged when it takes longer. */
  async until(what: string, condition: () => boolean, withinMs = 30_000): Promise<void> {
    for (let waited = 0; !condition(); waited += 50) {
      if (waited > withinMs)
        throw new Error(
          `${what} did not come about within ${withinMs} ms:\n${this.lines.slice(-60).join('\n')}`,
        )
      await this.advance(50)
    }
  }

  /** A client with a session at a member. */
  async client(id: ServerId, options: Parameters<RawClient['handshake']>[0] = {}): Promise<RawClient> {
    const connection = await this.network.connect({ host: 'x', port: 4000 + id })
    const client = new RawClient(this, connection)
    client.handshake(options)
    await this.until(`a session at ${id}`, () => client.frames.length > 0 || client.closed)
    if (client.frames.length === 0)
      throw new Error(`The session at ${id} was refused:\n${this.lines.slice(-40).join('\n')}`)
    client.takeConnectResponse()
    return client
  }

  /** The answer to a four-letter word. */
  async command(id: ServerId, word: string): Promise<string> {
    const connection = await this.network.connect({ host: 'x', port: 4000 + id })
    const client = new RawClient(this, connection)
    client.send(new TextEncoder().encode(word))
    await this.advance(50)
    return client.text
  }
}
