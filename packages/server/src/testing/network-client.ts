import {
  OpCode,
  readConnectResponse,
  readWhoAmIResponse,
  type ConnectResponse,
  type Reader,
  type Writer,
} from '@zabra/protocol'
import type { Connection } from '@zabra/runtime'
import { FramedConnection, type Reply } from '@zabra/testkit'

/** A client on any network that sends requests and waits for their replies. */
export class NetworkClient {
  readonly connection: Connection
  readonly #framed: FramedConnection
  readonly #frames: Reader[] = []
  #closed = false
  #wake: () => void = () => {}

  constructor(connection: Connection) {
    this.connection = connection
    this.#framed = new FramedConnection(connection, {
      frame: (reader) => {
        this.#frames.push(reader)
        this.#wake()
      },
      closed: () => this.#onClosed(),
    })
  }

  /** Waits for the next frame. Resolves with undefined when the connection is closed. */
  async next(): Promise<Reader | undefined> {
    await this.#until(() => this.#frames.length > 0 || this.#closed)
    return this.#frames.shift()
  }

  /** Sends a four-letter command. Resolves with the answer once the server has closed the connection. */
  async command(name: string): Promise<string> {
    let text = ''
    this.connection.setHandler({
      data: (chunk) => void (text += new TextDecoder().decode(chunk)),
      drain() {},
      closed: () => this.#onClosed(),
    })
    this.connection.write(new TextEncoder().encode(name))
    await this.closed()
    return text
  }

  /**
   * Opens a session. `timeOut` is in milliseconds. Resolves with the session id, or with undefined when the server closes the
   * connection instead.
   */
  async session(timeOut = 10_000): Promise<bigint | undefined> {
    return (await this.handshake(undefined, timeOut))?.sessionId
  }

  /** Opens a session, or resumes one. Resolves with the response, or with undefined when the server closes the connection instead. */
  async handshake(resume?: ConnectResponse, timeoutMs = 10_000): Promise<ConnectResponse | undefined> {
    const session =
      resume === undefined
        ? {}
        : { sessionId: resume.sessionId, password: resume.passwd ?? new Uint8Array(16) }
    this.#framed.sendHandshake({ timeoutMs, ...session })
    const greeting = await this.next()
    return greeting && readConnectResponse(greeting)
  }

  /** Sends a request. Resolves with the error and the body of its reply. */
  async request(xid: number, type: number, body?: (w: Writer) => void): Promise<Pick<Reply, 'err' | 'body'>> {
    this.send(xid, type, body)
    const reply = await this.next()
    if (reply === undefined) throw new Error('Expected a reply, and the connection is closed')
    reply.int()
    reply.longNumber()
    return { err: reply.int(), body: reply }
  }

  /** Sends a request without waiting for its reply. */
  send(xid: number, type: number, body?: (w: Writer) => void): void {
    this.#framed.sendRequest(xid, type, body)
  }

  async whoAmI(): Promise<string[]> {
    const { body } = await this.request(1, OpCode.whoAmI)
    return (readWhoAmIResponse(body).clientInfo ?? []).map(({ authScheme, user }) => `${authScheme}:${user}`)
  }

  async closed(): Promise<void> {
    await this.#until(() => this.#closed)
  }

  #onClosed(): void {
    this.#closed = true
    this.#wake()
  }

  async #until(condition: () => boolean): Promise<void> {
    while (!condition()) await new Promise<void>((resolve) => (this.#wake = resolve))
  }
}
