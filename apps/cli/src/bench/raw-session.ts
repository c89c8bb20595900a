import {
  CreateMode,
  FrameSplitter,
  OPEN_ACL_UNSAFE,
  OpCode,
  Writer,
  Xid,
  writeAuthPacket,
  writeConnectRequest,
  writeCreateRequest,
  writeDeleteRequest,
  writeExistsRequest,
  writeGetDataRequest,
  writeRequestHeader,
  writeSetDataRequest,
} from '@zabra/protocol'
import type { Connection } from '@zabra/runtime'

export interface RawOptions {
  readonly timeoutMs: number
  readonly auth: readonly { readonly scheme: string; readonly credential: string }[]
}

/** What is sent as data and looked at by nobody. */
const MAX_FRAME = 1 << 28

/**
 * One session of a load generator: requests are written straight into a buffer and answers are only counted, without a
 * promise for each, so that what is measured is the server.
 */
export class RawSession {
  readonly #wire: Connection
  readonly #writer = new Writer(1 << 14)
  readonly #data: Uint8Array
  #xid = 0
  #isConnected = false
  #closing = false
  /** An answer, in the order of the requests; `err` is 0 for success. */
  onReply: (err: number) => void = () => {}
  /** A watch has fired. */
  onNotification: () => void = () => {}
  #onFailure: (cause: Error) => void = () => {}
  #closedCause: Error | undefined

  private constructor(wire: Connection, data: Uint8Array) {
    this.#wire = wire
    this.#data = data
  }

  /** Called when the connection is gone, and the load with it; at once when that is so already. */
  get onFailure(): (cause: Error) => void {
    return this.#onFailure
  }

  set onFailure(failed: (cause: Error) => void) {
    this.#onFailure = failed
    if (this.#closedCause !== undefined) failed(this.#closedCause)
  }

  /** Begins a session and proves its identities. `data` is what every node gets. Rejects when the server refuses. */
  static async open(
    wire: Connection,
    data: Uint8Array,
    { timeoutMs, auth }: RawOptions,
  ): Promise<RawSession> {
    const session = new RawSession(wire, data)
    await new Promise<void>((resolve, reject) => {
      session.onFailure = reject
      session.#listen(resolve, auth.length)
      session.#writeConnect(timeoutMs)
      for (const { scheme, credential } of auth) session.#writeAuth(scheme, credential)
      session.flush()
    })
    return session
  }

  get(path: string): void {
    const mark = this.#beginRequest(OpCode.getData)
    writeGetDataRequest(this.#writer, { path, watch: false })
    this.#writer.endFrame(mark)
  }

  /** Asks whether a node exists, and to be told once when it changes. */
  watch(path: string): void {
    const mark = this.#beginRequest(OpCode.exists)
    writeExistsRequest(this.#writer, { path, watch: true })
    this.#writer.endFrame(mark)
  }

  set(path: string): void {
    const mark = this.#beginRequest(OpCode.setData)
    writeSetDataRequest(this.#writer, { path, data: this.#data, version: -1 })
    this.#writer.endFrame(mark)
  }

  create(path: string, isEphemeral = false): void {
    const mark = this.#beginRequest(OpCode.create)
    const flags = isEphemeral ? CreateMode.EPHEMERAL : CreateMode.PERSISTENT
    writeCreateRequest(this.#writer, { path, data: this.#data, acl: OPEN_ACL_UNSAFE, flags })
    this.#writer.endFrame(mark)
  }

  delete(path: string): void {
    const mark = this.#beginRequest(OpCode.delete)
    writeDeleteRequest(this.#writer, { path, version: -1 })
    this.#writer.endFrame(mark)
  }

  /** Says that the client lives. The answer is one like any other. */
  ping(): void {
    const mark = this.#writer.beginFrame()
    writeRequestHeader(this.#writer, { xid: Xid.ping, type: OpCode.ping })
    this.#writer.endFrame(mark)
  }

  /** Sends what was asked; once for many requests. */
  flush(): void {
    if (this.#writer.length > 0) this.#wire.write(this.#writer.take())
  }

  /** Ends the session; its ephemeral nodes go. Resolves when the server has said so. */
  async close(): Promise<void> {
    await new Promise<void>((resolve) => {
      this.#closing = true
      this.onFailure = () => resolve()
      this.onReply = () => {}
      this.#writer.endFrame(this.#beginRequest(OpCode.closeSession))
      this.flush()
    })
  }

  /** Drops the connection; the session goes on until it expires. */
  destroy(): void {
    this.#closing = true
    this.onFailure = () => {}
    this.#wire.destroy()
  }

  #listen(ready: () => void, proofs: number): void {
    let unproved = proofs
    const frames = new FrameSplitter({
      maxLength: MAX_FRAME,
      frame: (bytes, start) => {
        const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength)
        if (!this.#isConnected) {
          this.#isConnected = true
          if (view.getInt32(start + 4) <= 0) return this.#refuse('refused the session')
          return unproved === 0 ? ready() : undefined
        }
        const xid = view.getInt32(start)
        const err = view.getInt32(start + 12)
        if (xid === Xid.notification) return this.onNotification()
        if (xid !== Xid.auth) return this.onReply(err)
        if (err !== 0) return this.#refuse('refused an identity')
        if (--unproved === 0) ready()
      },
    })
    this.#wire.setHandler({
      data: (chunk) => frames.push(chunk),
      drain: () => {},
      closed: (cause) => {
        const { host, port } = this.#wire.remote
        const early = 'before there was a session; perhaps it takes no more from one address (maxClientCnxns)'
        const when = this.#closing ? 'at its end' : this.#isConnected ? 'during the load' : early
        this.#closedCause = new Error(`${host}:${port} closed a connection ${when}`, { cause })
        this.#onFailure(this.#closedCause)
      },
    })
  }

  #refuse(what: string): void {
    const { host, port } = this.#wire.remote
    this.onFailure(new Error(`${host}:${port} ${what}`))
    this.#wire.destroy()
  }

  #writeConnect(timeOut: number): void {
    const mark = this.#writer.beginFrame()
    writeConnectRequest(this.#writer, {
      protocolVersion: 0,
      lastZxidSeen: 0n,
      timeOut,
      sessionId: 0n,
      passwd: new Uint8Array(16),
      readOnly: false,
    })
    this.#writer.endFrame(mark)
  }

  #writeAuth(scheme: string, credential: string): void {
    const mark = this.#writer.beginFrame()
    writeRequestHeader(this.#writer, { xid: Xid.auth, type: OpCode.auth })
    writeAuthPacket(this.#writer, { type: 0, scheme, auth: new TextEncoder().encode(credential) })
    this.#writer.endFrame(mark)
  }

  #beginRequest(type: number): number {
    const mark = this.#writer.beginFrame()
    this.#xid = this.#xid === 0x7fff_ffff ? 1 : this.#xid + 1
    writeRequestHeader(this.#writer, { xid: this.#xid, type })
    return mark
  }
}
