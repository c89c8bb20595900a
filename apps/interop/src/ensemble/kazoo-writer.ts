import { resolve } from 'node:path'
import { createInterface } from 'node:readline'
import type { Client } from '@zabra/client'
import { python } from '../harness/requirements.ts'
import { spawnOwned } from '../harness/servers.ts'
import type { History } from './history.ts'

const script = resolve(import.meta.dirname, '../../python/writer.py')
/** Milliseconds that the process may take to exit. */
const STOP_TIMEOUT_MS = 90_000

type WriteKind = 'created' | 'counted'

/** A line that the process prints: `ready` first, then the result of each write, at last the number of writes. */
interface Line {
  readonly kind?: WriteKind
  readonly n?: number
  readonly zxid?: string
  readonly began?: number
  readonly ended?: number
  readonly unknown?: boolean
  readonly refused?: string
}

/** A kazoo process that writes to an ensemble and records the result of each write. */
export class KazooWriter {
  readonly name: string
  readonly #history: History
  readonly #child: ReturnType<typeof spawnOwned>
  readonly #ended: Promise<void>
  #errors = ''
  readonly #acknowledged: Record<WriteKind, Set<number>> = { created: new Set(), counted: new Set() }
  readonly #unknown: Record<WriteKind, Set<number>> = { created: new Set(), counted: new Set() }

  private constructor(name: string, history: History, child: ReturnType<typeof spawnOwned>) {
    this.name = name
    this.#history = history
    this.#child = child
    child.stderr.on(
      'data',
      (chunk: Buffer) => (this.#errors = (this.#errors + chunk.toString()).slice(-5000)),
    )
    this.#ended = new Promise((done) => child.once('exit', () => done()))
  }

  /** Starts the process. Resolves when it is connected and begins to write. */
  static async start(
    name: string,
    servers: readonly string[],
    history: History,
    sessionTimeoutMs: number,
  ): Promise<KazooWriter> {
    const args = [script, name, servers.join(','), String(sessionTimeoutMs / 1000)]
    const writer = new KazooWriter(name, history, spawnOwned(python, args))
    const lines = createInterface({ input: writer.#child.stdout })
    await new Promise<void>((ready, failed) => {
      lines.once('line', () => {
        lines.on('line', (line) => writer.#receive(JSON.parse(line) as Line))
        ready()
      })
      void writer.#ended.then(() => failed(new Error(`kazoo did not start:\n${writer.#errors}`)))
    })
    return writer
  }

  /** Stops the process after its current write. Resolves when it has exited. */
  async stop(): Promise<void> {
    this.#child.stdin.end()
    const timer = setTimeout(() => {
      this.#history.addViolation(`${this.name}: kazoo did not exit:\n${this.#errors}`)
      this.#child.kill('SIGKILL')
    }, STOP_TIMEOUT_MS)
    await this.#ended
    clearTimeout(timer)
    if (this.#child.exitCode !== 0)
      this.#history.addViolation(`${this.name}: kazoo exited with ${this.#child.exitCode}:\n${this.#errors}`)
  }

  #receive({ kind, n, zxid, began, ended, unknown, refused }: Line): void {
    if (kind === undefined || n === undefined) return
    if (refused !== undefined)
      this.#history.addViolation(`${this.name}: ${kind} ${n} was refused: ${refused}`)
    else if (unknown === true) {
      this.#unknown[kind].add(n)
      this.#history.unknown++
    } else {
      this.#acknowledged[kind].add(n)
      // Both clocks are the machine's monotonic clock with different origins.
      const since = Number(process.hrtime.bigint()) / 1e6 - performance.now()
      const times = { began: began! - since, ended: ended! - since }
      this.#history.addWrite({ by: this.name, ...times, zxid: BigInt(zxid!) })
    }
  }

  /** Checks the final tree against the results of the writes. `reader` must be synchronized. */
  async check(reader: Client): Promise<void> {
    const found = new Set((await reader.getChildren(`/${this.name}/created`)).children.map(Number))
    const { created, counted } = this.#acknowledged
    for (const n of created)
      if (!found.has(n)) this.#history.addViolation(`${this.name}: created ${n} was acknowledged and is lost`)
    for (const n of found)
      if (!created.has(n) && !this.#unknown.created.has(n))
        this.#history.addViolation(`${this.name}: created ${n} is there, and was never sent`)
    const { data } = await reader.getData(`/${this.name}/counter`)
    const counter = Number(new TextDecoder().decode(data))
    const certain = Math.max(0, ...counted)
    if (counter < certain)
      this.#history.addViolation(
        `${this.name}: its counter is at ${counter}, and ${certain} was acknowledged`,
      )
    if (created.size === 0) this.#history.addViolation(`${this.name}: nothing that it wrote was acknowledged`)
  }
}
