import { connect, type Socket } from 'node:net'
import {
  CreateMode,
  FrameSplitter,
  OPEN_ACL_UNSAFE,
  OpCode,
  Writer,
  writeConnectRequest,
  writeCreateRequest,
  writeExistsRequest,
  writeGetDataRequest,
  writeRequestHeader,
  writeSetDataRequest,
} from '@zabra/protocol'

/** What a load does. `mixed` is nine reads to one write. */
export type Work = 'get' | 'set' | 'create' | 'mixed'

export interface LoadOptions {
  readonly port: number
  readonly work: Work
  readonly connections: number
  /** Requests in flight on each connection. */
  readonly depth: number
  /** Bytes of data in each znode. */
  readonly size: number
  readonly seconds: number
  /** Tells this process's znodes from those of another. */
  readonly tag: string
}

export interface LoadResult {
  readonly operations: number
  readonly errors: number
  readonly seconds: number
  /** Latencies in microseconds of a sample of the requests, unsorted. */
  readonly samples: number[]
}

type ReplyHandler = (xid: number, err: number) => void

/** One session over a raw socket: no promise for each request, so that the generator is not what is measured. */
export class RawSession {
  readonly #socket: Socket
  readonly #writer = new Writer(1 << 16)
  onReply: ReplyHandler = () => {}
  onFailure: (cause: Error) => void = () => {}

  private constructor(socket: Socket) {
    this.#socket = socket
  }

  static open(port: number): Promise<RawSession> {
    return new Promise((resolve, reject) => {
      const socket = connect({ host: '127.0.0.1', port, noDelay: true })
      const session = new RawSession(socket)
      let ready = false
      const frames = new FrameSplitter({
        maxLength: 64 * 1024 * 1024,
        frame: (bytes, start) => {
          const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength)
          if (ready) session.onReply(view.getInt32(start), view.getInt32(start + 12))
          else {
            ready = true
            resolve(session)
          }
        },
      })
      socket.on('data', (chunk) => frames.push(chunk))
      socket.once('error', (error) => (ready ? session.onFailure(error) : reject(error)))
      socket.once('close', () => {
        const cause = new Error(`The server on port ${port} closed a connection during the load`)
        if (ready) session.onFailure(cause)
        else reject(cause)
      })
      const mark = session.#writer.beginFrame()
      writeConnectRequest(session.#writer, {
        protocolVersion: 0,
        lastZxidSeen: 0n,
        timeOut: 30_000,
        sessionId: 0n,
        passwd: new Uint8Array(16),
        readOnly: false,
      })
      session.#writer.endFrame(mark)
      session.flush()
    })
  }

  get(xid: number, path: string): void {
    const mark = this.#begin(xid, OpCode.getData)
    writeGetDataRequest(this.#writer, { path, watch: false })
    this.#writer.endFrame(mark)
  }

  /** Asks whether a node exists, and to be told once it changes. */
  watch(xid: number, path: string): void {
    const mark = this.#begin(xid, OpCode.exists)
    writeExistsRequest(this.#writer, { path, watch: true })
    this.#writer.endFrame(mark)
  }

  set(xid: number, path: string, data: Uint8Array): void {
    const mark = this.#begin(xid, OpCode.setData)
    writeSetDataRequest(this.#writer, { path, data, version: -1 })
    this.#writer.endFrame(mark)
  }

  create(xid: number, path: string, data: Uint8Array): void {
    const mark = this.#begin(xid, OpCode.create)
    writeCreateRequest(this.#writer, { path, data, acl: OPEN_ACL_UNSAFE, flags: CreateMode.PERSISTENT })
    this.#writer.endFrame(mark)
  }

  flush(): void {
    if (this.#writer.length > 0) this.#socket.write(this.#writer.take())
  }

  close(): void {
    this.onFailure = () => {}
    this.#socket.destroy()
  }

  #begin(xid: number, type: number): number {
    const mark = this.#writer.beginFrame()
    writeRequestHeader(this.#writer, { xid, type })
    return mark
  }
}

/** Creates one znode after another until `paths` are all there. */
export async function populate(port: number, paths: readonly string[], data: Uint8Array): Promise<void> {
  const session = await RawSession.open(port)
  await new Promise<void>((resolve, reject) => {
    let next = 0
    let answered = 0
    const pump = (): void => {
      while (next < paths.length && next - answered < 256) session.create(next + 1, paths[next++]!, data)
      session.flush()
    }
    session.onFailure = reject
    session.onReply = (xid, err) => {
      if (err !== 0 && err !== -110) reject(new Error(`Creating ${paths[xid - 1]} failed with ${err}`))
      answered++
      if (answered === paths.length) resolve()
      else if (next - answered < 128) pump()
    }
    if (paths.length === 0) resolve()
    else pump()
  })
  session.close()
}

/** Keeps `connections × depth` requests in flight for `seconds` after a warm-up of a quarter of that. */
export async function runLoad(options: LoadOptions): Promise<LoadResult> {
  const data = new Uint8Array(options.size).fill(120)
  const root = `/bench-${options.tag}`
  await populate(options.port, [root], data)
  const keys = Array.from({ length: options.connections }, (_, index) => `${root}/key-${index}`)
  await populate(options.port, keys, data)
  const sessions = await Promise.all(keys.map(() => RawSession.open(options.port)))

  let operations = 0
  let errors = 0
  let counting = false
  let stopping = false
  const samples: number[] = []

  const drive = (session: RawSession, index: number): Promise<void> =>
    new Promise((resolve, reject) => {
      const sentAt = new Map<number, bigint>()
      const key = keys[index]!
      let xid = 0
      let inFlight = 0
      const send = (): void => {
        xid++
        inFlight++
        if (xid % 64 === 0) sentAt.set(xid, process.hrtime.bigint())
        if (options.work === 'create') session.create(xid, `${root}/c-${index}-${xid}`, data)
        else if (options.work === 'set' || (options.work === 'mixed' && xid % 10 === 0))
          session.set(xid, key, data)
        else session.get(xid, key)
      }
      // Replies of one turn are answered by requests of one turn, so the socket sees few writes.
      let scheduled = false
      const refill = (): void => {
        scheduled = false
        if (!stopping) while (inFlight < options.depth) send()
        session.flush()
        if (inFlight === 0) resolve()
      }
      session.onFailure = reject
      session.onReply = (replyXid, err) => {
        inFlight--
        if (counting) {
          operations++
          if (err !== 0) errors++
        }
        const at = sentAt.get(replyXid)
        if (at !== undefined) {
          sentAt.delete(replyXid)
          if (counting) samples.push(Number(process.hrtime.bigint() - at) / 1000)
        }
        if (!scheduled) {
          scheduled = true
          queueMicrotask(refill)
        }
      }
      refill()
    })

  const all = Promise.all(sessions.map(drive))
  const wait = (ms: number): Promise<unknown> =>
    Promise.race([all, new Promise((done) => setTimeout(done, ms))])
  await wait(options.seconds * 250)
  counting = true
  const start = process.hrtime.bigint()
  await wait(options.seconds * 1000)
  counting = false
  const seconds = Number(process.hrtime.bigint() - start) / 1e9
  stopping = true
  await all
  for (const session of sessions) session.close()
  return { operations, errors, seconds, samples }
}
