import {
  CreateMode,
  OPEN_ACL_UNSAFE,
  OpCode,
  readConnectResponse,
  readWatcherEvent,
  writeCreateRequest,
  writeCreateTTLRequest,
  writeDeleteRequest,
  writeReconfigRequest,
  writeSetDataRequest,
  type ConnectResponse,
  type Reader,
  type WatcherEvent,
  type Writer,
} from '@zabra/protocol'
import { MemoryDisk, type Logger, type LogLevel, type MemoryConnection, type Platform } from '@zabra/runtime'
import { FramedConnection, holdWrites, ManualPlatform, type Reply } from '@zabra/testkit'
import { defaults, type ServerSettings } from '../settings/index.ts'
import type { Server } from '../server-types.ts'
import { createServer } from '../server.ts'
import { test } from 'vitest'

export interface LogLine {
  readonly level: LogLevel
  readonly facts: object
  readonly sentence: string
  readonly stamp: Stamped
}

/** What each line says of its event and its server. */
interface Stamped {
  readonly id?: string | undefined
  readonly part?: string | undefined
  readonly epoch?: number | undefined
  readonly role?: string | undefined
}

/** Returns a logger without a level that collects lines, without what each line says of its event and its server. */
function recorder(lines: LogLine[]): Logger {
  const record =
    (level: LogLevel) =>
    ({ id, part, epoch, role, ...facts }: Stamped, sentence: string): void =>
      void lines.push({ level, facts, sentence, stamp: { id, part, epoch, role } })
  return { error: record('error'), warn: record('warn'), info: record('info'), debug: record('debug') }
}

/** Runs a server on a disk, a network and a clock that the test controls. A restart keeps the disk. */
export class TestServer extends ManualPlatform {
  readonly logLines: LogLine[] = []
  readonly logger: Logger = recorder(this.logLines)
  readonly settings: ServerSettings
  server!: Server

  private constructor(settings: Partial<ServerSettings>, disk: MemoryDisk) {
    super(disk)
    this.settings = defaults({
      dataDir: '/data',
      clientPort: 0,
      tickTimeMs: 1000,
      preAllocSizeBytes: 0,
      fourLetterWords: ['*'],
      ...settings,
    })
  }

  static async start(settings: Partial<ServerSettings> = {}, disk = new MemoryDisk()): Promise<TestServer> {
    const fixture = new TestServer(settings, disk)
    await fixture.restart()
    return fixture
  }

  /** Starts a server and opens a session on it. */
  static async withClient(
    settings?: Partial<ServerSettings>,
    options?: HandshakeOptions,
  ): Promise<{ fixture: TestServer; client: RawClient }> {
    const fixture = await TestServer.start(settings)
    return { fixture, client: await fixture.connect(options) }
  }

  async restart(): Promise<void> {
    this.server = await createServer(this.settings, this.platform())
  }

  /** Closes the server and delivers its last bytes to its clients. */
  async stop(): Promise<void> {
    let isClosed = false
    const closed = this.server.close().finally(() => (isClosed = true))
    for (let turns = 0; turns < 100 && !isClosed; turns++) await this.untilIdle()
    await closed
  }

  override platform(): Platform {
    return super.platform(this.logger)
  }

  /** Blocks writes to the disk. Returns a function that lets them continue. */
  blockDisk(): () => void {
    return holdWrites(this.disk)
  }

  override advance(ms: number): Promise<void> {
    return super.advance(ms, 100)
  }

  /** Connects a client that has sent nothing. */
  async open(): Promise<RawClient> {
    const connection = await this.network.connect(this.server.addresses.client)
    return new RawClient(this, connection)
  }

  /** Connects a client that opens or resumes a session. */
  async client(options?: HandshakeOptions): Promise<RawClient> {
    const client = await this.open()
    client.handshake(options)
    await this.untilIdle()
    return client
  }

  /** Connects a client and takes its connect response, which is `session` then. */
  async connect(options?: HandshakeOptions): Promise<RawClient> {
    const client = await this.client(options)
    client.takeConnectResponse()
    return client
  }

  /** Returns the answer to a four-letter command. */
  async command(name: string): Promise<string> {
    const client = await this.open()
    client.send(new TextEncoder().encode(name))
    await this.untilIdle()
    return client.text
  }
}

/** The connect request of a client. */
export interface HandshakeOptions {
  readonly timeout?: number
  readonly resume?: ConnectResponse
  /** The last zxid that the client has seen. */
  readonly seen?: bigint
  readonly password?: Uint8Array
  readonly readOnly?: boolean
}

/** A change of the configuration of an ensemble. */
export interface Reconfig {
  readonly joining?: string
  readonly leaving?: string
  /** The version of the configuration that it changes; any version by default. */
  readonly from?: bigint
}

/** A client that sends single requests and keeps the frames that it receives. */
export class RawClient {
  readonly #fixture: Pick<TestServer, 'untilIdle'>
  readonly #framed: FramedConnection
  readonly connection: MemoryConnection
  readonly frames: Reader[] = []
  session: ConnectResponse | undefined
  closed = false
  text = ''

  constructor(fixture: Pick<TestServer, 'untilIdle'>, connection: MemoryConnection) {
    this.#fixture = fixture
    this.connection = connection
    this.#framed = new FramedConnection(connection, {
      frame: (reader) => void this.frames.push(reader),
      closed: () => void (this.closed = true),
    })
  }

  /** Sends raw bytes. Before the handshake they are a four-letter command, whose answer is `text`. */
  send(bytes: Uint8Array): void {
    if (this.frames.length === 0 && this.session === undefined)
      this.connection.setHandler({
        data: (chunk) => void (this.text += new TextDecoder().decode(chunk)),
        drain() {},
        closed: () => void (this.closed = true),
      })
    this.connection.write(bytes)
  }

  /** Sends all requests of an action in one chunk. */
  batch(action: () => void): void {
    this.#framed.batch(action)
  }

  handshake({ timeout = 10_000, resume, seen = 0n, password, readOnly }: HandshakeOptions = {}): void {
    this.#framed.sendHandshake({
      timeoutMs: timeout,
      sessionId: resume?.sessionId ?? 0n,
      password: password ?? resume?.passwd ?? new Uint8Array(16),
      lastZxidSeen: seen,
      readOnly: readOnly ?? false,
    })
  }

  /** Removes the first frame and returns it as a connect response; undefined when there is none. */
  takeConnectResponse(): ConnectResponse | undefined {
    const frame = this.frames.shift()
    if (frame === undefined) return undefined
    this.session = readConnectResponse(frame)
    return this.session
  }

  /** Sends a request without waiting. */
  ask(xid: number, type: number, body?: (w: Writer) => void): void {
    this.#framed.sendRequest(xid, type, body)
  }

  create(xid: number, path: string, flags = 0, data = ''): void {
    this.ask(xid, OpCode.create, (w) =>
      writeCreateRequest(w, { path, data: new TextEncoder().encode(data), acl: OPEN_ACL_UNSAFE, flags }),
    )
  }

  set(xid: number, path: string, data: string): void {
    this.ask(xid, OpCode.setData, (w) =>
      writeSetDataRequest(w, { path, data: new TextEncoder().encode(data), version: -1 }),
    )
  }

  delete(xid: number, path: string): void {
    this.ask(xid, OpCode.delete, (w) => writeDeleteRequest(w, { path, version: -1 }))
  }

  sync(xid: number, path = '/'): void {
    this.ask(xid, OpCode.sync, (w) => w.string(path))
  }

  /** Creates a TTL node. `ttl` is its time to live in milliseconds. */
  createTtl(xid: number, path: string, ttl: bigint): void {
    const request = { path, data: null, acl: OPEN_ACL_UNSAFE, flags: CreateMode.PERSISTENT_WITH_TTL, ttl }
    this.ask(xid, OpCode.createTTL, (w) => writeCreateTTLRequest(w, request))
  }

  reconfigure(xid: number, { joining, leaving, from = -1n }: Reconfig): void {
    const [joiningServers, leavingServers] = [joining ?? null, leaving ?? null]
    const request = { joiningServers, leavingServers, newMembers: null, curConfigId: from }
    this.ask(xid, OpCode.reconfig, (w) => writeReconfigRequest(w, request))
  }

  /** Sends a read whose body is a path and a watch flag. */
  read(xid: number, type: number, path: string, watch = false): void {
    this.ask(xid, type, (w) => {
      w.string(path)
      w.bool(watch)
    })
  }

  /** Waits until the server is idle, then takes what has come, as `takeReceived` does. */
  async received(): Promise<string[]> {
    await this.untilIdle()
    return this.takeReceived()
  }

  /** Removes all frames and returns them as text: replies as `xid:err`, events as `event type path`. */
  takeReceived(): string[] {
    return this.frames.splice(0).map((frame) => {
      const reply = replyOf(frame)
      if (reply.xid !== -1) return `${reply.xid}:${reply.err}`
      const { type, path } = this.event(reply)
      return `event ${type} ${path}`
    })
  }

  event({ body }: Reply): WatcherEvent {
    return readWatcherEvent(body)
  }

  /** Removes all frames and returns them as replies. */
  replies(): Reply[] {
    return this.frames.splice(0).map(replyOf)
  }

  untilIdle(): Promise<void> {
    return this.#fixture.untilIdle()
  }
}

function replyOf(body: Reader): Reply {
  return { xid: body.int(), zxid: body.longNumber(), err: body.int(), body }
}

/** A test with a server of its own and, where it names it, a client with a session. */
export const it = test
  .extend('fixture', () => TestServer.start())
  .extend('client', ({ fixture }) => fixture.connect())
