import { connect, createServer, type AddressInfo, type Server, type Socket } from 'node:net'

/** A TCP proxy in front of one server that can break its connections. */
export class Proxy {
  readonly #server: Server
  readonly #port: number
  readonly #pairs = new Set<readonly [Socket, Socket]>()
  #refusing = false

  private constructor(server: Server, port: number) {
    this.#server = server
    this.#port = port
  }

  static async start(port: number): Promise<Proxy> {
    const server = createServer({ noDelay: true })
    await new Promise<void>((listening) => server.listen(0, '127.0.0.1', listening))
    const proxy = new Proxy(server, port)
    server.on('connection', (socket) => proxy.#accept(socket))
    return proxy
  }

  get port(): number {
    return (this.#server.address() as AddressInfo).port
  }

  get address(): string {
    return `127.0.0.1:${this.port}`
  }

  /** Number of open connections. */
  get connections(): number {
    return this.#pairs.size
  }

  /** Closes all connections. */
  cut(): void {
    for (const pair of this.#pairs) for (const socket of pair) socket.destroy()
  }

  /** Closes all connections and refuses new ones until the returned function is called. */
  refuse(): () => void {
    this.#refusing = true
    this.cut()
    return () => (this.#refusing = false)
  }

  async close(): Promise<void> {
    this.cut()
    await new Promise((closed) => this.#server.close(closed))
  }

  #accept(client: Socket): void {
    if (this.#refusing) return void client.destroy()
    const server = connect({ host: '127.0.0.1', port: this.#port, noDelay: true })
    const pair = [client, server] as const
    this.#pairs.add(pair)
    for (const [from, to] of [
      [client, server],
      [server, client],
    ] as const) {
      from.pipe(to)
      from.on('error', () => {})
      from.on('close', () => {
        to.destroy()
        this.#pairs.delete(pair)
      })
    }
  }
}
