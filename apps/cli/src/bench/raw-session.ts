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

/** Limit of a reply in bytes. */
const MAX_FRAME = 1 << 28

/**
 * One session of a load generator. Writes requests straight into a buffer and only counts replies, without a promise per request,
 * so that the load generator is not the bottleneck.
 */
export class RawSession {
  readonly #wire: Connection
  readonly #writer = new Writer(1 << 14)
  readonly #data: Uint8Array
  #xid = 0
  #isConnected = false
  #closing = false
  /** Called for each reply, in the order of the requests; `err` is 0 for success. */
  onReply: (err: number) => void = () => {}
  /** Called when a watch fires. */
  onNotification: () => void = () => {}
  #onFailure: (cause: Error) => void = () => {}
  #closedCause: Error | undefined

  private constructor(wire: Connection, data: Uint8Array) {
    this.#wire = wire
    this.#data = data
  }

  /** Called when the connection closes, which ends the load; called at once if it is closed already. */
  get onFailure(): (cause: Error) => void {
    return this.#onFailure
  }

  set onFailure(handler: (cause: Error) => void) {
    this.#onFailure = handler
    if (this.#closedCause !== undefined) handler(this.#closedCause)
  }

  /** Opens a session and adds its identities. `data` is the data of every write. Rejects when the server refuses. */
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
    const frame = this.#beginRequest(OpCode.getData)
    writeGetDataRequest(this.#writer, { path, watch: false })
    this.#writer.endFrame(frame)
  }

  /** Sends an exists request with a one-shot watch. */
  watch(path: string): void {
    const frame = this.#beginRequest(OpCode.exists)
    writeExistsRequest(this.#writer, { path, watch: true })
    this.#writer.endFrame(frame)
  }

  set(path: string): void {
    const frame = this.#beginRequest(OpCode.setData)
    writeSetDataRequest(this.#writer, { path, data: this.#data, version: -1 })
    this.#writer.endFrame(frame)
  }

  create(path: string, isEphemeral = false): void {
    const frame = this.#beginRequest(OpCode.create)
    const flags = isEphemeral ? CreateMode.EPHEMERAL : CreateMode.PERSISTENT
    writeCreateRequest(this.#writer, { path, data: this.#data, acl: OPEN_ACL_UNSAFE, flags })
    this.#writer.endFrame(frame)
  }

  delete(path: string): void {
    const frame = this.#beginRequest(OpCode.delete)
    writeDeleteRequest(this.#writer, { path, version: -1 })
    this.#writer.endFrame(frame)
  }

  /** Sends a heartbeat, whose reply is not counted: it may come between those of a load. */
  ping(): void {
    const frame = this.#writer.beginFrame()
    writeRequestHeader(this.#writer, { xid: Xid.ping, type: OpCode.ping })
    this.#writer.endFrame(frame)
  }

  /** Sends the buffered requests in one write. */
  flush(): void {
    if (this.#writer.length > 0) this.#wire.write(this.#writer.take())
  }

  /** Closes the session. Resolves when the server has closed the connection. */
  async close(): Promise<void> {
    await new Promise<void>((resolve) => {
      this.#closing = true
      this.onFailure = () => resolve()
      this.onReply = () => {}
      this.#writer.endFrame(this.#beginRequest(OpCode.closeSession))
      this.flush()
    })
  }

  /** Closes the connection without closing the session, which expires later. */
  destroy(): void {
    this.#closing = true
    this.onFailure = () => {}
    this.#wire.destroy()
  }

  #listen(ready: () => void, identities: number): void {
    let pendingIdentities = identities
    const frames = new FrameSplitter({
      maxLength: MAX_FRAME,
      frame: (bytes, start) => {
        const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength)
        if (!this.#isConnected) {
          this.#isConnected = true
          if (view.getInt32(start + 4) <= 0) return this.#refuse('refused the session')
          return pendingIdentities === 0 ? ready() : undefined
        }
        const xid = view.getInt32(start)
        const err = view.getInt32(start + 12)
        if (xid === Xid.notification) return this.onNotification()
        if (xid === Xid.ping) return
        if (xid !== Xid.auth) return this.onReply(err)
        if (err !== 0) return this.#refuse('refused an identity')
        if (--pendingIdentities === 0) ready()
      },
    })
    this.#wire.setHandler({
      data: (chunk) => frames.push(chunk),
      drain: () => {},
      closed: (cause) => {
        const { host, port } = this.#wire.remote
        const early =
          'before the session was established; its limit per address may be reached (maxClientCnxns)'
        const when = this.#closing
          ? 'while closing the session'
          : this.#isConnected
            ? 'during the load'
            : early
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
    const frame = this.#writer.beginFrame()
    writeConnectRequest(this.#writer, {
      protocolVersion: 0,
      lastZxidSeen: 0n,
      timeOut,
      sessionId: 0n,
      passwd: new Uint8Array(16),
      readOnly: false,
    })
    this.#writer.endFrame(frame)
  }

  #writeAuth(scheme: string, credential: string): void {
    const frame = this.#writer.beginFrame()
    writeRequestHeader(this.#writer, { xid: Xid.auth, type: OpCode.auth })
    writeAuthPacket(this.#writer, { type: 0, scheme, auth: new TextEncoder().encode(credential) })
    this.#writer.endFrame(frame)
  }

  #beginRequest(type: number): number {
    const frame = this.#writer.beginFrame()
    this.#xid = this.#xid === 0x7fff_ffff ? 1 : this.#xid + 1
    writeRequestHeader(this.#writer, { xid: this.#xid, type })
    return frame
  }
}
