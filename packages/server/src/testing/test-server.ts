import {
  FrameSplitter,
  OPEN_ACL_UNSAFE,
  OpCode,
  Reader,
  readConnectResponse,
  readWatcherEvent,
  writeConnectRequest,
  writeCreateRequest,
  Writer,
  writeSetDataRequest,
  type ConnectResponse,
  type WatcherEvent,
} from '@zabra/protocol'
import {
  ManualClock,
  MemoryDisk,
  MemoryNetwork,
  SeededRandom,
  type Logger,
  type MemoryConnection,
  type Platform,
  type System,
} from '@zabra/runtime'
import { defaults, type ServerSettings } from '../settings/index.ts'
import type { Server } from '../server-types.ts'
import { createServer } from '../server.ts'

export interface LogLine {
  readonly level: keyof Logger
  readonly facts: object
  readonly sentence: string
}

export interface Reply {
  readonly xid: number
  readonly zxid: number
  readonly err: number
  readonly body: Reader
}

/** A server on a disk, a network and a clock that a test controls. Restarts keep the disk. */
export class TestServer {
  readonly clock = new ManualClock()
  readonly network = new MemoryNetwork(this.clock)
  readonly disk: MemoryDisk
  readonly logLines: LogLine[] = []
  readonly settings: ServerSettings
  server!: Server

  private constructor(settings: Partial<ServerSettings>, disk: MemoryDisk) {
    this.disk = disk
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
    const world = new TestServer(settings, disk)
    await world.restart()
    return world
  }

  async restart(): Promise<void> {
    this.server = await createServer(this.settings, this.ports())
  }

  /** Closes the server, and lets its clients hear of it. */
  async stop(): Promise<void> {
    const closed = this.server.close()
    await this.untilIdle()
    await closed
  }

  ports(): Platform {
    const note =
      (level: keyof Logger) =>
      (facts: object, sentence: string): void =>
        void this.logLines.push({ level, facts, sentence })
    return {
      clock: this.clock,
      network: this.network,
      disk: this.disk,
      random: new SeededRandom(1),
      compression: {
        gzip: () => {
          throw new Error('no compression here')
        },
        gunzip: () => {
          throw new Error('no compression here')
        },
      },
      logger: { error: note('error'), warn: note('warn'), info: note('info'), debug: note('debug') },
      system,
    }
  }

  /** Nothing becomes durable until what this returns is called. */
  blockDisk(): () => void {
    let release = (): void => {}
    const held = new Promise<void>((resolve) => (release = resolve))
    this.disk.beforeWrite = () => held
    return () => {
      this.disk.beforeWrite = undefined
      release()
    }
  }

  /** Lets everything happen that needs no time. */
  untilIdle(): Promise<void> {
    return this.clock.untilIdle()
  }

  async advance(ms: number): Promise<void> {
    // In steps, since what a timer starts may need turns before the next one falls due.
    for (let left = ms; left > 0; left -= 100) {
      this.clock.advance(Math.min(left, 100))
      await this.untilIdle()
    }
  }

  async open(): Promise<RawClient> {
    const connection = await this.network.connect(this.server.addresses.client)
    return new RawClient(this, connection)
  }

  /** Connects and opens a session, or resumes one. */
  async client(
    options: { timeout?: number; resume?: ConnectResponse; seen?: bigint } = {},
  ): Promise<RawClient> {
    const client = await this.open()
    client.handshake(options)
    await this.untilIdle()
    return client
  }

  async command(word: string): Promise<string> {
    const client = await this.open()
    client.send(new TextEncoder().encode(word))
    await this.untilIdle()
    return client.text
  }
}

export const system: System = {
  pid: 7,
  processIdentity: (pid) => (pid === 7 ? 'this' : undefined),
  residentMemory: () => 1,
  fileDescriptors: () => ({ open: 1, max: 100_000 }),
  environment: () => [['host.name', 'test']],
}

/** What a client says in its handshake. */
export interface HandshakeOptions {
  readonly timeout?: number
  readonly resume?: ConnectResponse
  readonly seen?: bigint
  readonly password?: Uint8Array
  readonly readOnly?: boolean
}

/** A client that sends what it is told and keeps what it gets. */
export class RawClient {
  readonly #world: Pick<TestServer, 'untilIdle'>
  readonly connection: MemoryConnection
  readonly frames: Uint8Array[] = []
  session: ConnectResponse | undefined
  closed = false
  text = ''
  readonly #splitter = new FrameSplitter({
    maxLength: 2 ** 30,
    frame: (bytes, start, end) => this.frames.push(bytes.slice(start, end)),
  })
  #wordOnly = false
  #held: Writer | undefined

  constructor(world: Pick<TestServer, 'untilIdle'>, connection: MemoryConnection) {
    this.#world = world
    this.connection = connection
    connection.setHandler({
      data: (chunk) => {
        if (this.#wordOnly) this.text += new TextDecoder().decode(chunk)
        else this.#splitter.push(chunk)
      },
      drain() {},
      closed: () => (this.closed = true),
    })
  }

  send(bytes: Uint8Array): void {
    if (this.frames.length === 0 && this.session === undefined) this.#wordOnly = true
    this.connection.write(bytes)
  }

  /** Sends what an action says in one piece. */
  batch(action: () => void): void {
    this.#held = new Writer()
    action()
    this.connection.write(this.#held.take())
    this.#held = undefined
  }

  #write(bytes: Uint8Array): void {
    if (this.#held === undefined) this.connection.write(bytes)
    else this.#held.raw(bytes)
  }

  handshake({
    timeout = 10_000,
    resume,
    seen = 0n,
    password,
    readOnly = false,
  }: HandshakeOptions = {}): void {
    const w = new Writer()
    const mark = w.beginFrame()
    writeConnectRequest(w, {
      protocolVersion: 0,
      lastZxidSeen: seen,
      timeOut: timeout,
      sessionId: resume?.sessionId ?? 0n,
      passwd: password ?? resume?.passwd ?? new Uint8Array(16),
      readOnly,
    })
    w.endFrame(mark)
    this.#write(w.take())
  }

  /** What the handshake was answered with. Takes it off the frames. */
  takeConnectResponse(): ConnectResponse | undefined {
    const frame = this.frames.shift()
    if (frame === undefined) return undefined
    this.session = readConnectResponse(new Reader(frame))
    return this.session
  }

  /** Sends a request without waiting. */
  ask(xid: number, type: number, body: (w: Writer) => void = () => {}): void {
    const w = new Writer()
    const mark = w.beginFrame()
    w.int(xid)
    w.int(type)
    body(w)
    w.endFrame(mark)
    this.#write(w.take())
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

  /** A read with a path and a watch flag. */
  read(xid: number, type: number, path: string, watch = false): void {
    this.ask(xid, type, (w) => {
      w.string(path)
      w.bool(watch)
    })
  }

  /** Takes everything that has come: replies as `xid:err`, events as `type path`. */
  takeReceived(): string[] {
    return this.frames.splice(0).map((frame) => {
      const reply = reply_(frame)
      if (reply.xid !== -1) return `${reply.xid}:${reply.err}`
      const { type, path } = this.event(reply)
      return `event ${type} ${path}`
    })
  }

  event({ body }: Reply): WatcherEvent {
    return readWatcherEvent(body)
  }

  replies(): Reply[] {
    return this.frames.splice(0).map(reply_)
  }

  untilIdle(): Promise<void> {
    return this.#world.untilIdle()
  }
}

function reply_(frame: Uint8Array): Reply {
  const body = new Reader(frame)
  return { xid: body.int(), zxid: body.longNumber(), err: body.int(), body }
}
