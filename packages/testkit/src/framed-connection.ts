import { FrameSplitter, Reader, writeConnectRequest, Writer } from '@zabra/protocol'
import type { Connection } from '@zabra/runtime'

/** What a client says in its handshake. */
export interface Handshake {
  readonly timeoutMs?: number
  readonly sessionId?: bigint
  readonly password?: Uint8Array
  readonly lastZxidSeen?: bigint
  readonly readOnly?: boolean
}

/** What a framed connection reports. */
export interface FrameHandler {
  /** Receives a frame without its length. */
  frame(reader: Reader): void
  closed(): void
}

/** The client's side of a connection, in frames of the client protocol. */
export class FramedConnection {
  readonly connection: Connection
  readonly #writer = new Writer()
  #isBatching = false

  constructor(connection: Connection, handler: FrameHandler) {
    this.connection = connection
    const splitter = new FrameSplitter({
      maxLength: 2 ** 30,
      frame: (bytes, start, end) => handler.frame(new Reader(bytes.slice(start, end))),
    })
    connection.setHandler({
      data: (chunk) => splitter.push(chunk),
      drain() {},
      closed: () => handler.closed(),
    })
  }

  /** Sends the frames that an action writes in one piece. */
  batch(action: () => void): void {
    this.#isBatching = true
    action()
    this.#isBatching = false
    this.#flush()
  }

  sendHandshake({
    timeoutMs = 30_000,
    sessionId = 0n,
    password = new Uint8Array(16),
    lastZxidSeen = 0n,
    readOnly = false,
  }: Handshake): void {
    this.#frame((w) =>
      writeConnectRequest(w, {
        protocolVersion: 0,
        lastZxidSeen,
        timeOut: timeoutMs,
        sessionId,
        passwd: password,
        readOnly,
      }),
    )
  }

  sendRequest(xid: number, type: number, body: (w: Writer) => void = () => {}): void {
    this.#frame((w) => {
      w.int(xid)
      w.int(type)
      body(w)
    })
  }

  destroy(): void {
    this.connection.destroy()
  }

  #frame(body: (w: Writer) => void): void {
    const mark = this.#writer.beginFrame()
    body(this.#writer)
    this.#writer.endFrame(mark)
    if (!this.#isBatching) this.#flush()
  }

  #flush(): void {
    if (this.connection.canReuseBuffers !== true) return void this.connection.write(this.#writer.take())
    this.connection.write(this.#writer.bytes())
    this.#writer.reset()
  }
}
