import { connect, type Socket } from 'node:net'
import {
  FrameSplitter,
  OpCode,
  readConnectResponse,
  Reader,
  writeConnectRequest,
  Writer,
  Xid,
  type ConnectResponse,
} from '@zabra/protocol'

/** One session whose requests are written byte by byte, for what no client library sends. */
export class RawClient {
  readonly #socket: Socket
  readonly #writer = new Writer(1 << 16)
  readonly #waiting: (() => void)[] = []
  #xid = 0
  #greeted: (response: ConnectResponse) => void = () => {}

  private constructor(socket: Socket) {
    this.#socket = socket
    const splitter = new FrameSplitter({
      maxLength: 2 ** 30,
      frame: (bytes, start, end) => this.#frame(new Reader(bytes, start, end)),
    })
    socket.on('data', (chunk: Buffer) => splitter.push(chunk))
    // Whoever waits for an answer runs into the time limit of the run.
    socket.on('error', () => {})
  }

  static async open(port: number, timeOut = 30_000): Promise<RawClient> {
    const client = new RawClient(connect({ host: '127.0.0.1', port, noDelay: true }))
    const greeted = new Promise<ConnectResponse>((resolve) => (client.#greeted = resolve))
    const w = client.#writer
    const mark = w.beginFrame()
    const passwd = new Uint8Array(16)
    const request = { protocolVersion: 0, lastZxidSeen: 0n, timeOut, sessionId: 0n, passwd, readOnly: false }
    writeConnectRequest(w, request)
    w.endFrame(mark)
    client.#flush()
    if ((await greeted).sessionId === 0n) throw new Error('The server refused a session')
    return client
  }

  /** Sends a request. Resolves when its answer has come, whatever it says. */
  ask(type: number, body: (writer: Writer) => void): Promise<void> {
    this.#write(type, body)
    this.#flush()
    return new Promise((resolve) => this.#waiting.push(resolve))
  }

  /** Many requests of one kind, a few hundred on their way at a time. */
  async askMany(count: number, type: number, body: (writer: Writer, index: number) => void): Promise<void> {
    for (let i = 0; i < count; i += 500) {
      const batch = Array.from({ length: Math.min(500, count - i) }, (_, k) => {
        this.#write(type, (writer) => body(writer, i + k))
        return new Promise<void>((resolve) => this.#waiting.push(resolve))
      })
      this.#flush()
      await Promise.all(batch)
    }
  }

  close(): Promise<void> {
    return this.ask(OpCode.closeSession, () => {})
  }

  /** Goes without a word: the session is left to its end. */
  vanish(): void {
    this.#socket.destroy()
  }

  #write(type: number, body: (writer: Writer) => void): void {
    const mark = this.#writer.beginFrame()
    this.#writer.int(type === OpCode.setWatches ? Xid.setWatches : ++this.#xid)
    this.#writer.int(type)
    body(this.#writer)
    this.#writer.endFrame(mark)
  }

  #flush(): void {
    this.#socket.write(this.#writer.take())
  }

  #frame(reader: Reader): void {
    const greeted = this.#greeted
    if (this.#waiting.length === 0 && this.#xid === 0) return greeted(readConnectResponse(reader))
    if (reader.int() !== Xid.notification) this.#waiting.shift()?.()
  }
}
