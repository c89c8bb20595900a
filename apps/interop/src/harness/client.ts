import { connect, type Socket } from 'node:net'
import { bytes, Fields, frame, openAcl, readStat, type Acl, type Stat } from './bytes.ts'
import { op } from './opcodes.ts'

export interface Reply {
  readonly xid: number
  readonly zxid: bigint
  readonly err: number
  readonly body: Fields
}

export interface WatchEvent {
  readonly zxid: bigint
  readonly type: number
  readonly state: number
  readonly path: string | null
}

export interface Session {
  readonly timeoutMs: number
  readonly id: bigint
  readonly password: Buffer
  /** The response without its length prefix, to compare byte for byte. */
  readonly response: Buffer
}

/** The connection closed before the reply: whether the request was applied is unknown. */
export class ConnectionLost extends Error {}

/** A reply with an error code where the caller expected success. */
export class ErrorReply extends Error {
  readonly code: number
  constructor(code: number, what: string) {
    super(`${what} was refused with ${code}`)
    this.code = code
  }
}

/** A TCP connection that receives whole frames and sends any bytes. */
export class RawConnection {
  readonly socket: Socket
  readonly closed: Promise<void>
  isClosed = false
  #partial: Buffer = Buffer.alloc(0)
  readonly #frames: Buffer[] = []
  readonly #readers: ((frame: Buffer | undefined) => void)[] = []
  onFrame: ((frame: Buffer) => void) | undefined

  constructor(socket: Socket) {
    this.socket = socket
    socket.setNoDelay(true)
    socket.on('data', (chunk) => this.#receive(chunk))
    // The cause of a reset does not matter: tests only observe the 'close' that follows.
    socket.on('error', () => {})
    this.closed = new Promise((resolve) =>
      socket.once('close', () => {
        this.isClosed = true
        for (const wake of this.#readers.splice(0)) wake(undefined)
        resolve()
      }),
    )
  }

  static open(port: number): Promise<RawConnection> {
    return new Promise((resolve, reject) => {
      const socket = connect({ host: '127.0.0.1', port })
      socket.once('error', reject)
      socket.once('connect', () => {
        socket.off('error', reject)
        resolve(new RawConnection(socket))
      })
    })
  }

  #receive(chunk: Buffer): void {
    this.#partial = this.#partial.length === 0 ? chunk : Buffer.concat([this.#partial, chunk])
    while (this.#partial.length >= 4) {
      const length = this.#partial.readInt32BE()
      if (this.#partial.length < 4 + length) return
      const whole = this.#partial.subarray(4, 4 + length)
      this.#partial = this.#partial.subarray(4 + length)
      if (this.onFrame) this.onFrame(whole)
      else {
        const wake = this.#readers.shift()
        if (wake) wake(whole)
        else this.#frames.push(whole)
      }
    }
  }

  /** Resolves to the next frame, or to undefined when the connection closes first. Rejects after the timeout. */
  next(timeoutMs = 10_000): Promise<Buffer | undefined> {
    const ready = this.#frames.shift()
    if (ready) return Promise.resolve(ready)
    if (this.isClosed) return Promise.resolve(undefined)
    return new Promise((resolve, reject) => {
      const timer = setTimeout(() => reject(new Error(`No frame within ${timeoutMs} ms`)), timeoutMs)
      this.#readers.push((whole) => {
        clearTimeout(timer)
        resolve(whole)
      })
    })
  }

  write(data: Uint8Array): void {
    if (!this.socket.destroyed) this.socket.write(data)
  }

  destroy(): void {
    this.socket.destroy()
  }
}

export interface ConnectOptions {
  readonly timeoutMs?: number
  readonly resume?: { readonly id: bigint; readonly password: Uint8Array }
  readonly lastZxid?: bigint
}

export function connectRequest({ timeoutMs = 30_000, resume, lastZxid = 0n }: ConnectOptions = {}): Buffer {
  const request = bytes().int(0).long(lastZxid).int(timeoutMs)
  return request
    .long(resume?.id ?? 0n)
    .buffer(resume?.password ?? Buffer.alloc(16))
    .bool(false)
    .done()
}

export function readSession(response: Buffer): Session {
  const fields = new Fields(response)
  fields.int()
  return {
    timeoutMs: fields.int(),
    id: fields.long(),
    password: Buffer.from(fields.buffer() ?? []),
    response,
  }
}

/** A minimal client: matches replies by xid and keeps watch events. It never reconnects. */
export class Client {
  readonly session: Session
  readonly connection: RawConnection
  readonly events: WatchEvent[] = []
  #xid = 0
  readonly #pending = new Map<number, { resolve: (reply: Reply) => void; reject: (error: Error) => void }>()

  private constructor(connection: RawConnection, session: Session) {
    this.connection = connection
    this.session = session
    connection.onFrame = (whole) => this.#receive(whole)
    void connection.closed.then(() => {
      for (const { reject } of this.#pending.values())
        reject(new ConnectionLost('The connection closed before the reply'))
      this.#pending.clear()
    })
  }

  static async connect(port: number, options: ConnectOptions = {}): Promise<Client> {
    const connection = await RawConnection.open(port)
    connection.write(frame(connectRequest(options)))
    const response = await connection.next()
    if (!response) throw new ConnectionLost('The connection closed before the handshake was answered')
    const session = readSession(response)
    if (session.timeoutMs === 0) {
      connection.destroy()
      throw new ErrorReply(-112, 'The session')
    }
    return new Client(connection, session)
  }

  #receive(whole: Buffer): void {
    const fields = new Fields(whole)
    const xid = fields.int()
    const zxid = fields.long()
    const err = fields.int()
    if (xid === -1) {
      this.events.push({ zxid, type: fields.int(), state: fields.int(), path: fields.str() })
      return
    }
    const open = this.#pending.get(xid)
    this.#pending.delete(xid)
    open?.resolve({ xid, zxid, err, body: fields })
  }

  request(type: number, body: Uint8Array = Buffer.alloc(0), xid = ++this.#xid): Promise<Reply> {
    if (this.connection.isClosed) return Promise.reject(new ConnectionLost('The connection is closed'))
    this.connection.write(frame(bytes().int(xid).int(type).raw(body).done()))
    return new Promise((resolve, reject) => this.#pending.set(xid, { resolve, reject }))
  }

  async ok(type: number, body: Uint8Array, what: string): Promise<Reply> {
    const reply = await this.request(type, body)
    if (reply.err !== 0) throw new ErrorReply(reply.err, what)
    return reply
  }

  async create(
    path: string,
    data: string | Uint8Array | null = '',
    flags = 0,
    acl: readonly Acl[] = openAcl,
  ): Promise<string> {
    const reply = await this.ok(op.create, createBody(path, data, flags, acl), `create ${path}`)
    return reply.body.str() ?? ''
  }

  async set(path: string, data: string | Uint8Array | null, version = -1): Promise<Stat> {
    return readStat(
      (await this.ok(op.setData, bytes().str(path).buffer(data).int(version).done(), `set ${path}`)).body,
    )
  }

  async delete(path: string, version = -1): Promise<void> {
    await this.ok(op.delete, bytes().str(path).int(version).done(), `delete ${path}`)
  }

  async get(path: string): Promise<{ data: Buffer | null; stat: Stat }> {
    const { body } = await this.ok(op.getData, bytes().str(path).bool(false).done(), `get ${path}`)
    return { data: body.buffer(), stat: readStat(body) }
  }

  async exists(path: string): Promise<Stat | undefined> {
    const reply = await this.request(op.exists, bytes().str(path).bool(false).done())
    return reply.err === 0 ? readStat(reply.body) : undefined
  }

  async children(path: string): Promise<string[]> {
    const { body } = await this.ok(
      op.getChildren,
      bytes().str(path).bool(false).done(),
      `children of ${path}`,
    )
    return (body.strings() ?? []).map(String).sort()
  }

  async addAuth(scheme: string, auth: string): Promise<void> {
    const reply = await this.request(op.auth, bytes().int(0).str(scheme).buffer(auth).done(), -4)
    if (reply.err !== 0) throw new ErrorReply(reply.err, `auth ${scheme}`)
  }

  /** Closes the session, which deletes its ephemeral nodes. */
  async close(): Promise<void> {
    if (this.connection.isClosed) return
    await this.request(op.closeSession).catch(() => undefined)
    this.connection.destroy()
  }

  /** Closes the connection and leaves the session open. */
  drop(): void {
    this.connection.destroy()
  }
}

export function createBody(
  path: string | null,
  data: string | Uint8Array | null = '',
  flags = 0,
  acl: readonly Acl[] | null = openAcl,
): Buffer {
  return bytes().str(path).buffer(data).acl(acl).int(flags).done()
}

export type MultiPart = readonly [type: number, body: Uint8Array]

export function multiBody(parts: readonly MultiPart[]): Buffer {
  const body = bytes()
  for (const [type, record] of parts) body.int(type).bool(false).int(-1).raw(record)
  return body.int(-1).bool(true).int(-1).done()
}

/**
 * Sends a four-letter word and resolves to the reply. Apache ZooKeeper sometimes resets the connection instead of closing it, which
 * loses the reply, so this retries after a reset.
 */
export async function fourLetterWord(
  port: number,
  command: string | Uint8Array,
  { tries = 3, timeoutMs = 10_000 } = {},
): Promise<string> {
  for (let left = tries; ; left--) {
    try {
      return await sendFourLetterWord(port, command, timeoutMs)
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'ECONNRESET' || left <= 1) throw error
    }
  }
}

function sendFourLetterWord(port: number, command: string | Uint8Array, timeoutMs: number): Promise<string> {
  return new Promise((resolve, reject) => {
    const chunks: Buffer[] = []
    const socket = connect({ host: '127.0.0.1', port }, () => socket.write(command))
    socket.setTimeout(timeoutMs, () =>
      socket.destroy(new Error(`No answer to the four-letter word within ${timeoutMs} ms`)),
    )
    socket.on('data', (chunk) => chunks.push(chunk))
    socket.once('close', () => resolve(Buffer.concat(chunks).toString()))
    socket.once('error', reject)
  })
}
