import { connect, type Client } from '@zabra/client'
import type { Prng } from '../harness/prng.ts'
import type { History } from './history.ts'

const text = (value: number): Uint8Array => new TextEncoder().encode(String(value))
const number = (data: Uint8Array): number => Number(new TextDecoder().decode(data))

/** Numbered writes of one kind: those acknowledged, and those with an unknown result. */
interface NumberedWrites {
  sent: number
  /** The highest acknowledged number. */
  highest: number
  readonly acknowledged: Set<number>
  readonly unknown: Set<number>
}
const numberedWrites = (): NumberedWrites => ({
  sent: 0,
  highest: 0,
  acknowledged: new Set(),
  unknown: new Set(),
})

/**
 * `never`: a call whose connection is lost fails, and its write has an unknown outcome. `idempotent`: writes are versioned or declared
 * idempotent and retried by the client, as those of an application that must not lose any; no call may fail.
 */
export type Retries = 'never' | 'idempotent'

/** Returns whether a write may be refused with an error now. */
export type MayRefuse = (error: unknown) => boolean

/** How fast a writer works, and which of its calls may fail, and how. */
export interface WriterOptions {
  /** `never` by default. */
  readonly retries?: Retries
  /** None may by default. */
  readonly mayRefuse?: MayRefuse
  /** Milliseconds between two requests; none by default. */
  readonly pauseMs?: number
  /**
   * Whether a sync commits a transaction; not by default. A leader of Apache ZooKeeper treats another sync of its own client as a read, and
   * may not have applied yet what a follower has acknowledged.
   */
  readonly commitsSyncs?: boolean
}

/** A client of an ensemble that writes and reads sequentially and records the result of each request. */
export class Writer {
  readonly name: string
  readonly #client: Client
  readonly #history: History
  readonly #prng: Prng
  readonly #created = numberedWrites()
  readonly #counted = numberedWrites()
  readonly #paired = numberedWrites()
  readonly #retries: Retries
  readonly #mayRefuse: MayRefuse
  readonly #pauseMs: number
  readonly #commitsSyncs: boolean
  /** The options of every call. */
  readonly #call: { readonly retry?: false; readonly timeoutMs: number }
  #lastRead = 0
  /** The versions of the znodes that retried writes change. */
  readonly #versions = { counter: 0, left: 0, right: 0 }

  private constructor(
    name: string,
    client: Client,
    history: History,
    prng: Prng,
    { retries = 'never', mayRefuse = () => false, pauseMs = 0, commitsSyncs = false }: WriterOptions,
  ) {
    this.name = name
    this.#client = client
    this.#history = history
    this.#prng = prng
    this.#retries = retries
    this.#mayRefuse = mayRefuse
    this.#pauseMs = pauseMs
    this.#commitsSyncs = commitsSyncs
    this.#call = retries === 'never' ? { retry: false, timeoutMs: 20_000 } : { timeoutMs: 60_000 }
  }

  static async start(
    name: string,
    servers: readonly string[],
    history: History,
    prng: Prng,
    sessionTimeout: number,
    options: WriterOptions = {},
  ): Promise<Writer> {
    const client = await connect({ servers, sessionTimeoutMs: sessionTimeout, waitForever: true })
    const writer = new Writer(name, client, history, prng, options)
    await client.createMissing(['/live'])
    for (const path of ['', '/created', '/pairs', '/counter', '/left', '/right'])
      await client.create(writer.#path(path), { data: text(0) })
    await client.create(`/live/${name}`, { data: null, mode: 'ephemeral' })
    return writer
  }

  #path(rest = ''): string {
    return `/${this.name}${rest}`
  }

  /** Number of times that its session expired and was replaced. */
  get newSessions(): number {
    return this.#client.session.generation - 1
  }

  /** The highest acknowledged value of its counter. */
  get acknowledgedCount(): number {
    return this.#counted.highest
  }

  /** Writes and reads until `signal` aborts. */
  async run(others: readonly Writer[], signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      const kind = this.#prng.int(10)
      if (kind < 3) await this.#create()
      else if (kind < 6) await this.#count()
      else if (kind < 7) await this.#pair()
      else if (kind < 9) await this.#readOwn()
      else await this.#readOther(others[this.#prng.int(others.length)]!)
      if (this.#pauseMs > 0) await new Promise((done) => setTimeout(done, this.#pauseMs))
    }
  }

  async #create(): Promise<void> {
    await this.#write(this.#created, async (n) => {
      const idempotent = this.#retries === 'idempotent'
      const options = { ...this.#call, protected: false, idempotent } as const
      return (await this.#client.create(this.#path(`/created/${n}`), { ...options, data: text(n) })).stat
        .czxid
    })
  }

  async #count(): Promise<void> {
    await this.#write(this.#counted, async (n) => {
      const version =
        this.#retries === 'idempotent' ? { version: this.#versions.counter, idempotent: true } : {}
      const stat = await this.#client.setData(this.#path('/counter'), text(n), { ...this.#call, ...version })
      this.#versions.counter = stat.version
      return stat.mzxid
    })
  }

  async #pair(): Promise<void> {
    await this.#write(this.#paired, async (n) => {
      const idempotent = this.#retries === 'idempotent'
      const version = (name: 'left' | 'right') => (idempotent ? { version: this.#versions[name] } : {})
      try {
        const [left, , right] = await this.#client.multi(
          [
            { op: 'setData', path: this.#path('/left'), data: text(n), ...version('left') },
            { op: 'create', path: this.#path(`/pairs/${n}`), data: null },
            { op: 'setData', path: this.#path('/right'), data: text(n), ...version('right') },
          ],
          this.#call,
        )
        this.#versions.left = left.version
        this.#versions.right = right.version
        return left.mzxid
      } catch (error) {
        if (!idempotent || (error as { maybeApplied?: boolean }).maybeApplied !== true) throw error
        // A multi is applied once or not at all: its new znode says which.
        const stat = await this.#client.exists(this.#path(`/pairs/${n}`), this.#call)
        if (stat === undefined) throw error
        this.#versions.left++
        this.#versions.right++
        return stat.czxid
      }
    })
  }

  async #write(kind: NumberedWrites, act: (n: number) => Promise<bigint>): Promise<void> {
    const n = ++kind.sent
    const began = performance.now()
    try {
      const zxid = await act(n)
      kind.acknowledged.add(n)
      kind.highest = n
      this.#history.addWrite({ by: this.name, began, ended: performance.now(), zxid })
    } catch (error) {
      if ((error as { maybeApplied?: boolean }).maybeApplied === true) {
        kind.unknown.add(n)
        this.#history.unknown++
      } else if (!this.#mayFail(error) && !this.#mayRefuse(error))
        this.#history.addViolation(`${this.name}: write ${n} failed with ${String(error)}`)
    }
  }

  /** Checks that a session reads its own writes and never an older value, at any member. */
  async #readOwn(): Promise<void> {
    const least = Math.max(this.#lastRead, this.acknowledgedCount)
    const seen = await this.#read(this.#path('/counter'))
    if (seen === undefined) return
    if (seen < least) this.#history.addViolation(`${this.name} saw its counter at ${seen} after ${least}`)
    if (seen > this.#counted.sent)
      this.#history.addViolation(`${this.name} saw ${seen}, which it never wrote`)
    this.#lastRead = seen
  }

  /** Checks that a read after a sync sees the writes of others acknowledged before the sync. */
  async #readOther(other: Writer): Promise<void> {
    const least = other.acknowledgedCount
    const sync = this.#sync().then(
      () => true,
      (error: unknown) => {
        if (!this.#mayFail(error))
          this.#history.addViolation(`${this.name}: sync failed with ${String(error)}`)
        return false
      },
    )
    // Sent in one turn of the event loop, one member processes them in order, or both fail. The retries of both would have any order.
    if (this.#retries === 'idempotent') await sync
    const [synced, seen] = await Promise.all([sync, this.#read(other.#path('/counter'))])
    if (synced && seen !== undefined && seen < least)
      this.#history.addViolation(`${this.name} synced and saw ${other.name} at ${seen} after ${least}`)
  }

  #sync(): Promise<unknown> {
    return this.#commitsSyncs ? this.#client.syncCommitted(this.#call) : this.#client.sync('/', this.#call)
  }

  async #read(path: string): Promise<number | undefined> {
    try {
      return number((await this.#client.getData(path, this.#call)).data)
    } catch (error) {
      if (!this.#mayFail(error))
        this.#history.addViolation(`${this.name}: a read failed with ${String(error)}`)
      return undefined
    }
  }

  #mayFail(error: unknown): boolean {
    return this.#retries === 'never' && isConnectionFailure(error)
  }

  /** Checks the final tree against the results of the writes. `reader` must be synchronized. */
  async check(reader: Client): Promise<void> {
    const created = new Set((await reader.getChildren(this.#path('/created'))).children.map(Number))
    this.#checkNumbers('created', created, this.#created)
    this.#checkNumbers(
      'paired',
      new Set((await reader.getChildren(this.#path('/pairs'))).children.map(Number)),
      this.#paired,
    )
    const [left, right, counter] = await Promise.all(
      ['/left', '/right', '/counter'].map(async (name) =>
        number((await reader.getData(this.#path(name))).data),
      ),
    )
    if (left !== right)
      this.#history.addViolation(`${this.name}: a multi was applied in part: ${left} and ${right}`)
    if (counter! < this.acknowledgedCount)
      this.#history.addViolation(
        `${this.name}: its counter is at ${counter}, and ${this.acknowledgedCount} was acknowledged`,
      )
    const live = await reader.exists(`/live/${this.name}`)
    if (this.newSessions === 0 && live === undefined)
      this.#history.addViolation(`${this.name}: its session lives, and its ephemeral node is gone`)
  }

  #checkNumbers(
    what: string,
    found: ReadonlySet<number>,
    { sent, acknowledged, unknown }: NumberedWrites,
  ): void {
    for (const n of acknowledged)
      if (!found.has(n)) this.#history.addViolation(`${this.name}: ${what} ${n} was acknowledged and is lost`)
    for (const n of found)
      if (n > sent || (!acknowledged.has(n) && !unknown.has(n)))
        this.#history.addViolation(`${this.name}: ${what} ${n} is there, and was refused or never sent`)
  }

  /** Closes its session, which deletes its ephemeral node. */
  async stop(): Promise<void> {
    await this.#client.close()
  }
}

/** Returns whether an error is a connection loss, an expiry or a timeout, which faults may cause. */
function isConnectionFailure(error: unknown): boolean {
  const name = error instanceof Error ? error.name : ''
  return /^(ConnectionLoss|OperationTimeout|SessionExpired|SessionMoved)Error$/.test(name)
}
