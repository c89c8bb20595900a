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

/** A client on any network that sends requests and waits for what comes. */
export class NetworkClient {
  readonly connection: Connection
  readonly #frames: Uint8Array[] = []
  readonly #splitter: FrameSplitter
  #text = ''
  #words = false
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
        if (this.#words) this.#text += new TextDecoder().decode(chunk)
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

  /** The next frame, or undefined once the connection is closed. */
  async next(): Promise<Reader | undefined> {
    await this.#until(() => this.#frames.length > 0 || this.#closed)
    const frame = this.#frames.shift()
    return frame && new Reader(frame)
  }

  /** What the server says before it closes. */
  async command(word: string): Promise<string> {
    this.#words = true
    this.connection.write(new TextEncoder().encode(word))
    await this.#until(() => this.#closed)
    return this.#text
  }

  /**
   * Opens a session that lives so many milliseconds without a word. Gives its id, or undefined when the server closes the
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

  /** Sends a request and gives its error and body. */
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

  /** Sends a request without waiting. */
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
