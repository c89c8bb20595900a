import { MemoryDisk, NetworkError, type Connection, type Disk, type Platform } from '@zabra/runtime'
import { nodePlatform } from '@zabra/runtime/node'
import type { GivenServerSettings } from '@zabra/server'
import { createServer, defaults, type Server } from '@zabra/server/core'
import { withGiven } from '../given-settings.ts'
import { ServerIncarnation, type ConnectionPolicy } from './server-incarnation.ts'
import type { Role, TestMember } from './test-member.ts'

export interface TestServerOptions {
  /** Runs the server in the test's own process. */
  readonly process?: 'own' | undefined
  /** Settings that override the defaults for tests: ticks of 100 ms, loopback addresses, an in-memory disk. */
  readonly settings?: GivenServerSettings | undefined
  /** Where the data is stored: `memory` (the default) or a folder, which should be empty. */
  readonly data?: 'memory' | (string & {}) | undefined
  /** Parts of the platform to replace, such as the logger. */
  readonly platform?: Partial<Platform> | undefined
}

/** A server in the process of the test. */
export class TestServer implements TestMember {
  address = ''
  readonly #options: TestServerOptions
  readonly #disk: Disk
  readonly #opened = new Set<Connection>()
  #blockedPorts: ReadonlySet<number> = new Set()
  readonly #policy: ConnectionPolicy = {
    assertAllowed: (port) => {
      if (!this.#blockedPorts.has(port)) return
      throw new NetworkError(
        `Cannot connect to 127.0.0.1:${port} (EHOSTUNREACH): the test cut the way`,
        'EHOSTUNREACH',
      )
    },
    opened: (connection) => void this.#opened.add(connection),
    closed: (connection) => void this.#opened.delete(connection),
  }
  #incarnation: ServerIncarnation | undefined
  #server: Server | undefined
  #port = 0

  /** Created by `startServer` and `startEnsemble`. */
  constructor(options: TestServerOptions) {
    this.#options = options
    this.#disk =
      options.data === undefined || options.data === 'memory' ? new MemoryDisk() : nodePlatform().disk
  }

  /** Returns the server. Throws while it is down. */
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

  /** Starts the server on the data that its disk holds. Rejects as `createServer` does. */
  async start(): Promise<this> {
    if (this.#server !== undefined) return this
    const incarnation = new ServerIncarnation(
      { ...nodePlatform(), disk: this.#disk, ...this.#options.platform },
      this.#policy,
    )
    this.#incarnation = incarnation
    const { data = 'memory' } = this.#options
    const ofTests = {
      dataDir: data === 'memory' ? '/data' : data,
      clientPort: this.#port,
      clientPortAddress: '127.0.0.1',
      tickTimeMs: 100,
      minSessionTimeoutMs: 200,
      maxSessionTimeoutMs: 60_000,
      preAllocSizeBytes: 0,
      extendedTypesEnabled: true,
      fourLetterWords: ['*'],
    }
    const settings = defaults(withGiven(ofTests, this.#options.settings))
    this.#server = await createServer(settings, incarnation.platform)
    const { port } = this.#server.addresses.client
    this.#port = port
    this.address = `127.0.0.1:${port}`
    return this
  }

  /**
   * Ends the server at once, as SIGKILL does: connections break and requests in flight are lost. A memory disk loses
   * unsynced writes.
   */
  async kill(): Promise<void> {
    this.#server = undefined
    await this.#incarnation?.end()
    if (this.#disk instanceof MemoryDisk) this.#disk.powerCut()
  }

  /** Pauses the server until `resume`: it keeps its connections and does nothing. */
  pause(): void {
    this.#incarnation?.pause()
  }

  resume(): void {
    this.#incarnation?.resume()
  }

  blockPorts(ports: readonly number[]): void {
    this.#blockedPorts = new Set(ports)
    for (const connection of this.#opened)
      if (this.#blockedPorts.has(connection.remote.port)) connection.destroy()
  }

  /** Shuts the server down. */
  async close(): Promise<void> {
    this.resume()
    await this.#server?.close()
    this.#server = undefined
    await this.#incarnation?.end()
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close()
  }
}
