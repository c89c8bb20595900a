import { OpCode } from '@zabra/protocol'
import {
  ManualClock,
  MemoryDisk,
  MemoryNetwork,
  NetworkError,
  SeededRandom,
  type Clock,
  type Connection,
  type Disk,
  type LogLevel,
  type Network,
  type Platform,
  type System,
} from '@zabra/runtime'
import { nodeCryptography } from '@zabra/runtime/node'
import { MemoryHttp, syncCompression } from '@zabra/testkit'
import { parseConfiguration, type EnsembleConfiguration, type ServerId } from '../../core/quorum/index.ts'
import type { Server } from '../../server-types.ts'
import { createServer } from '../../server.ts'
import { defaults, type ServerSettings } from '../../settings/index.ts'
import { RawClient, type HandshakeOptions, type Reconfig } from '../../testing/test-server.ts'

/** A member: a disk, and the process that runs on it, which tests start and crash. */
class TestMember {
  readonly id: ServerId
  readonly disk = new MemoryDisk()
  /** Serves the HTTP port. */
  readonly http = new MemoryHttp()
  readonly ensemble: Ensemble
  settings: ServerSettings
  /** How far the wall clock of this member is ahead of that of the others. */
  clockAheadMs = 0
  server: Server | undefined
  failure: unknown
  #incarnation: Incarnation | undefined

  constructor(ensemble: Ensemble, id: ServerId, settings: ServerSettings) {
    this.ensemble = ensemble
    this.id = id
    this.disk.now = () => ensemble.clock.wall()
    this.settings = settings
  }

  async start(): Promise<void> {
    const incarnation = new Incarnation(this.ensemble, this)
    this.#incarnation = incarnation
    this.failure = undefined
    const starting = createServer(this.settings, incarnation.platform)
    let server: Server | undefined
    let failed: unknown
    starting.then(
      (started) => (server = started),
      (error: unknown) => (failed = error),
    )
    while (server === undefined && failed === undefined) await this.ensemble.untilIdle()
    if (server === undefined) throw failed
    this.server = server
    void server.failed.then((reason) => {
      if (this.server === server) this.failure = reason
    })
  }

  /** Delivers nothing more to the process over its open connections, which stay open. */
  silence(): void {
    this.#incarnation?.silence()
  }

  /** Cuts the open connections of the process. */
  cutConnections(): void {
    this.#incarnation?.cutConnections()
  }

  /** Kills the process and cuts the power of the disk: what was not durable is lost. */
  async crash(): Promise<void> {
    this.#incarnation?.end()
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
    this.#incarnation?.end()
  }
}

/** The platform of one process. When it ends, its timers, connections and disk calls have no effect any more. */
class Incarnation {
  alive = true
  readonly #connections = new Set<{ cut(): void; pause(): void }>()
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
      wall: () => clock.wall() + member.clockAheadMs,
      monotonic: () => clock.monotonic(),
      after: (ms, name, action) => clock.after(ms, name, guarded(action)),
      immediate: (action) => clock.immediate(guarded(action)),
      afterMicrotasks: (action) => clock.afterMicrotasks(guarded(action)),
    }
    const track = (connection: Connection): Connection => {
      this.#connections.add(connection as unknown as { cut(): void; pause(): void })
      const write = connection.write.bind(connection)
      connection.write = (bytes) => write(ensemble.rewrite(member.id, bytes))
      return connection
    }
    const ownNetwork: Network = {
      listen: async (at, accepted) => {
        const listener = await network.listen(at, (connection) => {
          if (this.alive) accepted(track(connection))
        })
        if (this.alive) this.#closes.push(() => listener.close())
        else await listener.close()
        return listener
      },
      connect: async (to, options) => {
        if (ensemble.isCut(member.id, to.port))
          throw new NetworkError(`Cannot connect to ${to.host}:${to.port} (EHOSTUNREACH)`, 'EHOSTUNREACH')
        return track(await network.connect({ ...to, port: ensemble.detour(member.id, to.port) }, options))
      },
      resolve: (name) => ensemble.resolve(name),
    }
    const note =
      (level: LogLevel) =>
      (facts: object, sentence: string): void => {
        const { lines } = ensemble
        lines.push(
          `${Math.round(clock.monotonic())} ${member.id} ${level} ${sentence} ${JSON.stringify(facts)}`,
        )
      }
    this.platform = {
      clock: ownClock,
      network: ownNetwork,
      networkFactories: { http: () => member.http },
      disk: this.#ownDisk(member.disk, ensemble.sharedDisk),
      random: new SeededRandom(member.id),
      compression: syncCompression,
      cryptography: nodeCryptography,
      logger: { error: note('error'), warn: note('warn'), info: note('info'), debug() {} },
      system,
    }
  }

  end(): void {
    this.alive = false
    for (const close of this.#closes) void close()
    for (const connection of this.#connections) connection.cut()
  }

  silence(): void {
    for (const connection of this.#connections) connection.pause()
  }

  cutConnections(): void {
    for (const connection of this.#connections) connection.cut()
  }

  /** Returns the disk as this process sees it, with `/shared` mounted: its calls never return once the process has ended. */
  #ownDisk(disk: MemoryDisk, shared: MemoryDisk): Disk {
    const never = new Promise<never>(() => {})
    return new Proxy(disk, {
      get: (target, key) => {
        const value: unknown = Reflect.get(target, key)
        if (typeof value !== 'function') return value
        return (...args: unknown[]) => {
          const isShared = typeof args[0] === 'string' && args[0].startsWith('/shared/')
          return this.alive
            ? (value as (...all: unknown[]) => unknown).apply(isShared ? shared : target, args)
            : never
        }
      },
    })
  }
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

/** An ensemble of complete servers in one process, on a network, disks and a clock that a test controls. */
export class Ensemble {
  readonly clock = new ManualClock()
  readonly network = new MemoryNetwork(this.clock)
  /** Mounted by all members as `/shared`. */
  readonly sharedDisk = new MemoryDisk()
  readonly lines: string[] = []
  readonly members = new Map<ServerId, TestMember>()
  readonly #cut = new Set<ServerId>()
  /** Resolves the name of a host for all members. */
  resolve: (name: string) => Promise<string[]> = () => Promise.resolve([])

  /** Creates members 1 to `size`, of which `observers` are observers. */
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
    await ensemble.allServe()
    return ensemble
  }

  /** Starts three members, which serve, and opens a session at one of them. */
  static async withClient(
    id: ServerId,
    options: HandshakeOptions = {},
    settings?: ConstructorParameters<typeof Ensemble>[1],
  ): Promise<{ ensemble: Ensemble; client: RawClient }> {
    const ensemble = await Ensemble.start(3, settings)
    return { ensemble, client: await ensemble.client(id, options) }
  }

  /** Starts another server, with a configuration that the others do not know. */
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

  /** The servers whose process runs. */
  get running(): Server[] {
    return [...this.members.values()].flatMap(({ server }) => (server === undefined ? [] : [server]))
  }

  /** The id of the member that leads and serves, if there is exactly one. */
  get leader(): ServerId | undefined {
    const leaders = [...this.members.values()].filter(
      ({ server }) => server?.role === 'leading' && server.serving,
    )
    return leaders.length === 1 ? leaders[0]!.id : undefined
  }

  /** Redirects the connection of a member to another port. */
  detour: (id: ServerId, port: number) => number = (_, port) => port

  /** Cuts a member off from all others, until `heal`. */
  cut(id: ServerId): void {
    this.#cut.add(id)
    this.member(id).cutConnections()
  }

  heal(id: ServerId): void {
    this.#cut.delete(id)
  }

  /** Changes the bytes that a member sends. */
  rewrite: (id: ServerId, bytes: Uint8Array) => Uint8Array = (_, bytes) => bytes

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

  /** Advances the clock until a condition holds. Throws with the last log lines when it does not within this time. */
  async until(what: string, condition: () => boolean, withinMs = 30_000): Promise<void> {
    for (let waited = 0; !condition(); waited += 50) {
      if (waited > withinMs)
        throw new Error(`Waited ${withinMs} ms in vain for ${what}:\n${this.lines.slice(-60).join('\n')}`)
      await this.advance(50)
    }
  }

  /** Waits until all running members serve clients. */
  allServe(withinMs?: number): Promise<void> {
    return this.until('all members to serve', () => this.running.every(({ serving }) => serving), withinMs)
  }

  /** Waits until a client has this many frames, or is closed, and takes them. */
  async receive(client: RawClient, count: number): Promise<string[]> {
    await this.until(`${count} frames`, () => client.frames.length >= count || client.closed)
    return client.takeReceived()
  }

  /** Creates a node with the xid 1. Resolves to the reply, as in `1:0`, or to an empty text when the connection closes. */
  async create(client: RawClient, path: string): Promise<string> {
    client.create(1, path)
    return (await this.receive(client, 1)).join()
  }

  /** Opens a session at a member and looks for nodes. Resolves to the replies, whose xids begin with 1. */
  async read(id: ServerId, ...paths: string[]): Promise<string[]> {
    const client = await this.client(id)
    for (const [index, path] of paths.entries()) client.read(index + 1, OpCode.exists, path)
    return await this.receive(client, paths.length)
  }

  /** Sends a reconfig with the xid 77. Resolves to its reply, as in `77:0`. */
  async reconfigure(client: RawClient, change: Reconfig): Promise<string> {
    client.frames.length = 0
    client.reconfigure(77, change)
    return (await this.receive(client, 1)).join()
  }

  /** Starts a member and waits until it serves clients. */
  async startServing(id: ServerId, withinMs?: number): Promise<void> {
    await this.member(id).start()
    await this.until(`server ${id} to serve again`, () => this.server(id).serving, withinMs)
  }

  /** Crashes a member, starts it, and waits until it serves clients. */
  async restart(id: ServerId, withinMs?: number): Promise<void> {
    await this.member(id).crash()
    await this.startServing(id, withinMs)
  }

  /** Opens a client with a session at a member. */
  async client(id: ServerId, options: HandshakeOptions = {}): Promise<RawClient> {
    const connection = await this.network.connect({ host: 'x', port: 4000 + id })
    const client = new RawClient(this, connection)
    client.handshake(options)
    await this.until(`a session at ${id}`, () => client.frames.length > 0 || client.closed)
    if (client.frames.length === 0)
      throw new Error(`The session at ${id} was refused:\n${this.lines.slice(-40).join('\n')}`)
    client.takeConnectResponse()
    return client
  }

  /** Returns the reply of a member to a four-letter command. */
  async command(id: ServerId, name: string): Promise<string> {
    const connection = await this.network.connect({ host: 'x', port: 4000 + id })
    const client = new RawClient(this, connection)
    client.send(new TextEncoder().encode(name))
    // The answer is sent before the time comes at which a leader that yields closes its connections.
    await this.untilIdle()
    await this.advance(50)
    return client.text
  }
}
