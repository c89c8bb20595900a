import {
  FrameSplitter,
  OpCode,
  readConnectResponse,
  Reader,
  readWhoAmIResponse,
  writeConnectRequest,
  Writer,
} from '@zabra/protocol'
import type { Connection } from '@zabra/runtime'

/** A client on any network that sends requests and waits for their replies. */
export class NetworkClient {
  readonly connection: Connection
  readonly #frames: Uint8Array[] = []
  readonly #splitter: FrameSplitter
  #text = ''
  #isCommand = false
  #closed = false
  #wake: () => void = () => {}

  constructor(connection: Connection) {
    this.connection = connection
    this.#splitter = new FrameSplitter({
      maxLength: 2 ** 30,
      frame: (bytes, start, end) => void this.#frames.push(bytes.slice(start, end)),
    })
    connection.setHandler({
      data: (chunk) => {
        if (this.#isCommand) this.#text += new TextDecoder().decode(chunk)
        else this.#splitter.push(chunk)
        this.#wake()
      },
      drain() {},
      closed: () => {
        this.#closed = true
        this.#wake()
      },
    })
  }

  /** Waits for the next frame. Resolves with undefined when the connection is closed. */
  async next(): Promise<Reader | undefined> {
    await this.#until(() => this.#frames.length > 0 || this.#closed)
    const frame = this.#frames.shift()
    return frame && new Reader(frame)
  }

  /** Sends a four-letter command. Resolves with the answer once the server has closed the connection. */
  async command(name: string): Promise<string> {
    this.#isCommand = true
    this.connection.write(new TextEncoder().encode(name))
    await this.#until(() => this.#closed)
    return this.#text
  }

  /**
   * Opens a session. `timeOut` is in milliseconds. Resolves with the session id, or with undefined when the server closes the
   * connection instead.
   */
  async session(timeOut = 10_000): Promise<bigint | undefined> {
    this.#send((w) =>
      writeConnectRequest(w, {
        protocolVersion: 0,
        lastZxidSeen: 0n,
        timeOut,
        sessionId: 0n,
        passwd: new Uint8Array(16),
        readOnly: false,
      }),
    )
    const greeting = await this.next()
    return greeting && readConnectResponse(greeting).sessionId
  }

  /** Sends a request. Resolves with the error and the body of its reply. */
  async request(
    xid: number,
    type: number,
    body: (w: Writer) => void = () => {},
  ): Promise<{ err: number; body: Reader }> {
    this.send(xid, type, body)
    const reply = await this.next()
    if (reply === undefined) throw new Error('Expected a reply, and the connection is closed')
    reply.int()
    reply.longNumber()
    return { err: reply.int(), body: reply }
  }

  /** Sends a request without waiting for its reply. */
  send(xid: number, type: number, body: (w: Writer) => void = () => {}): void {
    this.#send((w) => {
      w.int(xid)
      w.int(type)
      body(w)
    })
  }

  async whoAmI(): Promise<string[]> {
    const { body } = await this.request(1, OpCode.whoAmI)
    return (readWhoAmIResponse(body).clientInfo ?? []).map(({ authScheme, user }) => `${authScheme}:${user}`)
  }

  async closed(): Promise<void> {
    await this.#until(() => this.#closed)
  }

  #send(write: (w: Writer) => void): void {
    const w = new Writer()
    const mark = w.beginFrame()
    write(w)
    w.endFrame(mark)
    this.connection.write(w.take())
  }

  async #until(condition: () => boolean): Promise<void> {
    while (!condition()) await new Promise<void>((resolve) => (this.#wake = resolve))
  }
}
