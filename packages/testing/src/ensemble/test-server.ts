import { MemoryDisk, NetworkError, type Connection, type Disk, type Platform } from '@zabra/runtime'
import { nodePlatform } from '@zabra/runtime/node'
import { createServer, defaults, type Server, type ServerSettings } from '@zabra/server'
import { ChildServer, type ChildServerOptions } from './child-server.ts'
import { ServerIncarnation, type ConnectionPolicy } from './server-incarnation.ts'
import type { Role, TestMember } from './test-member.ts'

export interface TestServerOptions {
  /** Where it runs: in the test's own process. */
  readonly process?: 'own'
  /** Settings that differ from those for tests, which are quick: ticks of 100 ms, everything on loopback. */
  readonly settings?: Partial<ServerSettings>
  /** Where it keeps its data: `memory` (the default) or a folder, which should be empty. */
  readonly data?: 'memory' | (string & {})
  /** Ports that differ from the platform's: a logger, most of all. */
  readonly ports?: Partial<Platform>
}

/** A server in the process of a test. */
export class TestServer implements TestMember {
  address = ''
  readonly #options: TestServerOptions
  readonly #disk: Disk
  readonly #opened = new Set<Connection>()
  #cut: ReadonlySet<number> = new Set()
  readonly #ways: ConnectionPolicy = {
    assertAllowed: (port) => {
      if (!this.#cut.has(port)) return
      throw new NetworkError(
        `Cannot connect to 127.0.0.1:${port} (EHOSTUNREACH): the test cut the way`,
        'EHOSTUNREACH',
      )
    },
    opened: (connection) => void this.#opened.add(connection),
    closed: (connection) => void this.#opened.delete(connection),
  }
  #life: ServerIncarnation | undefined
  #server: Server | undefined
  #port = 0

  /** Use `startServer` or `startEnsemble`. */
  constructor(options: TestServerOptions) {
    this.#options = options
    this.#disk =
      options.data === undefined || options.data === 'memory' ? new MemoryDisk() : nodePlatform().disk
  }

  /** The server itself. Throws while it is down. */
  get server(): Server {
    if (this.#server === undefined)
      throw new Error('Expected a server that runs, got one that is down: call start()')
    return this.#server
  }

  get isRunning(): boolean {
    return this.#server !== undefined
  }

  get role(): Role | undefined {
    return this.#server?.role
  }

  get isServing(): boolean {
    return this.#server?.serving ?? false
  }

  /** Starts it, on what its disk has. Rejects as `createServer` does. */
  async start(): Promise<this> {
    if (this.#server !== undefined) return this
    const life = new ServerIncarnation(
      { ...nodePlatform(), disk: this.#disk, ...this.#options.ports },
      this.#ways,
    )
    this.#life = life
    const { data = 'memory' } = this.#options
    const settings = defaults({
      dataDir: data === 'memory' ? '/data' : data,
      clientPort: this.#port,
      clientPortAddress: '127.0.0.1',
      tickTimeMs: 100,
      minSessionTimeoutMs: 200,
      maxSessionTimeoutMs: 60_000,
      preAllocSizeBytes: 0,
      extendedTypesEnabled: true,
      fourLetterWords: ['*'],
      ...this.#options.settings,
    })
    this.#server = await createServer(settings, life.ports)
    const { port } = this.#server.addresses.client
    this.#port = port
    this.address = `127.0.0.1:${port}`
    return this
  }

  /** Ends it at once, as `kill -9` does: connections break, and what is on its way is lost. A memory disk loses what was not synced. */
  async kill(): Promise<void> {
    this.#server = undefined
    await this.#life?.end()
    if (this.#disk instanceof MemoryDisk) this.#disk.powerCut()
  }

  /** Lets it stand still: it holds its connections and does nothing, until `resume`. */
  pause(): void {
    this.#life?.pause()
  }

  resume(): void {
    this.#life?.resume()
  }

  blockPorts(ports: readonly number[]): void {
    this.#cut = new Set(ports)
    for (const connection of this.#opened) if (this.#cut.has(connection.remote.port)) connection.destroy()
  }

  /** Stops it in good order. */
  async close(): Promise<void> {
    this.resume()
    await this.#server?.close()
    this.#server = undefined
    await this.#life?.end()
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close()
  }
}

/**
 * Starts a server on a free port of loopback, on a disk in memory unless told otherwise. Close it, or use `await using`. With
 * `process: 'child'` it runs in a process of its own, with files for its data.
 */
export function startServer(options: ChildServerOptions): Promise<ChildServer>
export function startServer(options?: TestServerOptions): Promise<TestServer>
export async function startServer(options: TestServerOptions | ChildServerOptions = {}): Promise<TestMember> {
  const server = options.process === 'child' ? new ChildServer(options) : new TestServer(options)
  try {
    return await server.start()
  } catch (error) {
    await server.close()
    throw error
  }
}
