import { afterAll, beforeAll } from 'vitest'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setImmediate } from 'node:timers/promises'
import { PassThrough, Readable, Writable } from 'node:stream'
import type { HttpServer, System } from '@zabra/runtime'
import { httpServer, nodePlatform, tlsNetwork } from '@zabra/runtime/node'
import { parseConfiguration } from '@zabra/server'
import { createServer, defaults, type Server, type ServerSettings } from '@zabra/server/core'
import { freePorts } from '@zabra/testkit'
import type { Io } from '../io.ts'
import { openSession } from '../session/open.ts'
import { ClientTransport } from '../session/transport.ts'
import type { Client } from '@zabra/client'
import { run } from '../run.ts'

/** Captures output; `until` waits for a text. */
export class CapturedOutput extends Writable {
  readonly isTTY: boolean
  readonly columns = 100
  #chunks: Buffer[] = []
  readonly #waiters = new Set<{ test: RegExp; found: () => void }>()

  constructor(isTTY = false) {
    super()
    this.isTTY = isTTY
  }

  override _write(chunk: Buffer, _: BufferEncoding, done: () => void): void {
    this.#chunks.push(chunk)
    for (const waiter of this.#waiters) if (waiter.test.test(this.text)) waiter.found()
    done()
  }

  get bytes(): Buffer {
    return Buffer.concat(this.#chunks)
  }

  get text(): string {
    return this.bytes.toString()
  }

  /** Resolves when the text matches. */
  until(test: RegExp): Promise<void> {
    if (test.test(this.text)) return Promise.resolve()
    return new Promise((resolve) => {
      const waiter = {
        test,
        found: () => {
          this.#waiters.delete(waiter)
          resolve()
        },
      }
      this.#waiters.add(waiter)
    })
  }
}

/** Output and exit code of a command line. */
export interface RunResult {
  readonly code: number
  readonly out: string
  readonly err: string
  readonly bytes: Buffer
}

/** Environment of a command line. */
export interface RunOptions {
  readonly input?: string | Uint8Array
  readonly environment?: Record<string, string>
  readonly terminal?: boolean
  readonly stop?: AbortController
  /** Replaces parts of the system that the program sees. */
  readonly system?: Partial<System>
}

/** A running command line with accessible streams. */
export class CommandRun {
  readonly stdin: Readable & { isTTY?: boolean }
  readonly stdout: CapturedOutput
  readonly stderr: CapturedOutput
  readonly stop: AbortController
  readonly ended: Promise<RunResult>

  constructor(argv: readonly string[], address: string | undefined, options: RunOptions = {}) {
    const { input, environment = {}, terminal = false, stop = new AbortController(), system = {} } = options
    const platform = nodePlatform()
    this.stdin = input === undefined ? new PassThrough() : Readable.from([Buffer.from(input)])
    this.stdout = new CapturedOutput(terminal)
    this.stderr = new CapturedOutput(terminal)
    this.stop = stop
    const io: Io = {
      stdin: this.stdin,
      stdout: this.stdout,
      stderr: this.stderr,
      environment: { ...(address === undefined ? {} : { ZABRA_SERVER: address }), ...environment },
      version: '1.2.3',
      signal: stop.signal,
      platform: { ...platform, system: { ...platform.system, ...system } },
    }
    this.ended = run(argv, io).then((code) => ({
      code,
      out: this.stdout.text,
      err: this.stderr.text,
      bytes: this.stdout.bytes,
    }))
  }
}

/** A server for the tests of a file, and command lines that connect to it. */
export class CliFixture {
  readonly folder = mkdtempSync(join(tmpdir(), 'zabra-cli-'))
  server!: Server
  zk!: Client
  /** The HTTP port; empty unless the settings have `adminPort`. */
  adminUrl = ''

  static async start(settings: Partial<ServerSettings> = {}): Promise<CliFixture> {
    const fixture = new CliFixture()
    fixture.server = await fixture.#startServer(settings)
    // A member of an ensemble elects its leader first.
    while (!fixture.server.serving) await setImmediate()
    const clientTransport = new ClientTransport()
    const options = { server: fixture.address, auth: [], timeoutMs: 10_000, clientTransport }
    fixture.zk = await openSession(options, new AbortController().signal)
    return fixture
  }

  /** Starts a member that is an ensemble alone, with an HTTP port and the super user `super:admin`. */
  static async startMember(): Promise<CliFixture> {
    const [quorum, election] = await freePorts(2)
    return CliFixture.start({
      adminPort: 0,
      serverId: 1,
      ensemble: parseConfiguration(`server.1=127.0.0.1:${quorum}:${election}`),
      standaloneEnabled: false,
      reconfigEnabled: true,
      tickTimeMs: 200,
      superDigest: 'super:xQJmxLMiHGwaqBvst5y6rkB6HQs=',
    })
  }

  #startServer(settings: Partial<ServerSettings>): Promise<Server> {
    const dataDir = join(this.folder, 'data')
    const base = { dataDir, clientPort: 0, fourLetterWords: ['*'], extendedTypesEnabled: true }
    if (settings.adminPort === undefined)
      return createServer(defaults({ ...base, ...settings }), nodePlatform())
    const http = (options: Parameters<typeof httpServer>[0]): HttpServer => ({
      listen: async (...parameters) => {
        const listener = await httpServer(options).listen(...parameters)
        this.adminUrl = `http://127.0.0.1:${listener.address.port}`
        return listener
      },
    })
    const networkFactories = { tls: tlsNetwork, http }
    return createServer(defaults({ ...base, ...settings }), nodePlatform({ networkFactories }))
  }

  /** Restarts the server on the same data, on `clientPort`. */
  async restart(clientPort: number): Promise<void> {
    await this.server.close()
    this.server = await this.#startServer({ clientPort })
  }

  get address(): string {
    return `127.0.0.1:${this.server.addresses.client.port}`
  }

  start(argv: readonly string[], options: RunOptions = {}): CommandRun {
    const environment = { ...(this.adminUrl && { ZABRA_ADMIN: this.adminUrl }), ...options.environment }
    return new CommandRun(argv, this.address, { ...options, environment })
  }

  /** Runs a command line until it exits. */
  run(argv: readonly string[], options: RunOptions = {}): Promise<RunResult> {
    return this.start(argv, { input: '', ...options }).ended
  }

  /** Creates nodes with their data in the given order, parents first. */
  async createNodes(nodes: Readonly<Record<string, string | Uint8Array | null>>): Promise<void> {
    for (const [path, data] of Object.entries(nodes)) await this.zk.create(path, { data })
  }

  async stop(): Promise<void> {
    await this.zk.close()
    await this.server.close()
    rmSync(this.folder, { recursive: true })
  }
}

/** The server of the running test file. */
export let stage: CliFixture

/** Starts a server before the tests of a file, and stops it after them. */
export function setupStage(settings?: Partial<ServerSettings>): void {
  beforeAll(async () => void (stage = await CliFixture.start(settings)))
  afterAll(() => stage.stop())
}
