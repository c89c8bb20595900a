import {
  FatalError,
  NoNodeError,
  SessionExpiredError,
  AsyncQueue,
  UsageError,
  type Bytes,
  type Client,
  type Codec,
  type StateChange,
  type Watcher,
  type WatchedEvent,
} from '@zabra/client/core'
import { isFinished, orMissing } from '../waiting/errors.ts'
import { Gate } from '../waiting/gate.ts'
import { spread } from '../waiting/spread.ts'
import { below, depthBelow, Entries, type Entry, type NodeChange } from './entries.ts'

export interface TreeCacheOptions<T> {
  /** How bytes become values (default: they stay bytes). */
  readonly codec?: Codec<T>
  /** Levels below the root that are kept (default: all). */
  readonly depth?: number
  /** Znodes at which the cache gives up with a `TreeTooLargeError` (default: no limit). */
  readonly maxNodes?: number
  /** Paths that are kept; below one that is not nothing is. */
  readonly filter?: (path: string) => boolean
}

/**
 * What a cache tells. `initialized`: everything was read once. `stale`: the connection is lost, and what the cache holds is
 * old. `resynced`: it is right again. `unreadable`: a znode could not be read or decoded; an older value stays.
 */
export type CacheEvent<T> =
  | NodeChange<T>
  | { readonly type: 'initialized' | 'stale' | 'resynced' }
  | { readonly type: 'unreadable'; readonly path: string; readonly cause: unknown }

/** A tree has more znodes than its cache may hold. */
export class TreeTooLargeError extends UsageError {
  static override readonly tag = 'TreeTooLargeError'
}

/** Requests in flight at a time: enough to keep a server busy, and far below what one lets queue up. */
const WINDOW = 256
/** Visits at a time that ask for data and children at once. */
const FEW = 16
/** Events that may wait for a slow consumer. */
const WAITING_EVENTS = 65_536

interface Reading {
  /** Answers older than this are worthless: the znode was deleted since. */
  since: number
  again: boolean
}

/** A copy of a tree that follows it. */
export class TreeCache<T = Bytes> implements AsyncDisposable {
  readonly root: string
  /** Everything was read once; also for a root that does not exist. */
  readonly ready: Promise<void>
  readonly #client: Client
  readonly #options: TreeCacheOptions<T>
  readonly #entries = new Entries<T>()
  readonly #streams = new Set<AsyncQueue<CacheEvent<T>>>()
  readonly #reading = new Map<string, Reading>()
  readonly #gate = new Gate(WINDOW)
  readonly #states: AsyncIterableIterator<StateChange>
  #watcher: Watcher | undefined
  #settleReady: { resolve(): void; reject(error: unknown): void }
  #initialized = false
  #stale = true
  /** A full look that is asked for, by the order of what asked for it. */
  #wanted: number | undefined
  #looking = false
  /** Whether the last full look saw all, or lost its session in the midst. */
  #sawAll = false
  #over = false
  #error: unknown

  constructor(client: Client, root: string, options: TreeCacheOptions<T> = {}) {
    this.#client = client
    this.root = root
    this.#options = options
    this.#settleReady = { resolve: () => {}, reject: () => {} }
    this.ready = new Promise((resolve, reject) => (this.#settleReady = { resolve, reject }))
    // Nobody has to wait for it.
    this.ready.catch(() => {})
    this.#states = client.states()
    void this.#followStates()
    void this.#run().catch((error: unknown) => this.#end(error))
  }

  /** What it holds may be old: the connection is lost, or not everything has been read since. */
  get stale(): boolean {
    return this.#stale
  }

  /** Znodes that it holds. */
  get size(): number {
    return this.#entries.size
  }

  /** A znode as it was read last; undefined when there is none, or it is not kept. */
  get(path: string): Entry<T> | undefined {
    return this.#entries.get(path)
  }

  /** Names below a path, sorted; undefined when there is no such znode. */
  children(path: string): readonly string[] | undefined {
    return this.#entries.children(path)
  }

  /** All znodes, each before those below it. */
  entries(): IterableIterator<[string, Entry<T>]> {
    return this.#entries.all()
  }

  /** What is there now, as `added`, and then every change until the consumer leaves or the cache is closed. */
  events({ signal }: { readonly signal?: AbortSignal } = {}): AsyncIterableIterator<CacheEvent<T>> {
    const leave = (): void => {
      this.#streams.delete(stream)
      signal?.removeEventListener('abort', stop)
    }
    const stop = (): void => void stream.return()
    const tooSlow = (waiting: CacheEvent<T>[]): CacheEvent<T>[] => {
      stream.end(
        new UsageError(`Expected a consumer that keeps up, got one that ${waiting.length} events wait for`),
      )
      leave()
      return waiting
    }
    const stream: AsyncQueue<CacheEvent<T>> = new AsyncQueue(WAITING_EVENTS + this.size, tooSlow, leave)
    for (const [path, { value, stat }] of this.#entries.all())
      stream.push({ type: 'added', path, value, stat })
    if (this.#initialized) stream.push({ type: 'initialized' })
    if (this.#over) stream.end(this.#error)
    else this.#streams.add(stream)
    signal?.addEventListener('abort', stop, { once: true })
    if (signal?.aborted) stop()
    return stream
  }

  /** Ends it; what it holds stays readable. */
  async close(): Promise<void> {
    this.#end(undefined)
    await this.#watcher?.close()
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close()
  }

  async #run(): Promise<void> {
    const watcher = await this.#arm()
    this.#watcher = watcher
    if (this.#over) return watcher.close()
    this.#resync(0)
    for await (const event of watcher) this.#take(event)
    this.#end(undefined)
  }

  async #arm(): Promise<Watcher> {
    for (;;) {
      try {
        return await this.#client.watch(this.root, { mode: 'persistentRecursive' })
      } catch (error) {
        if (!(error instanceof SessionExpiredError) || isFinished(this.#client)) throw error
      }
    }
  }

  #take(event: WatchedEvent): void {
    if (this.#over) return
    if (event.type === 'resync' || this.#isStrange(event)) return this.#resync(event.order)
    if (!this.#keeps(event.path)) return
    if (event.type === 'nodeDeleted') this.#deleted(event.path, event.order)
    else void this.#read(event.path)
  }

  /** Some servers name the root whatever was made or removed below it: what they say of it is worth a full look. */
  #isStrange(event: WatchedEvent): boolean {
    if (event.type === 'resync' || event.path !== this.root) return false
    return event.type === 'nodeDeleted' || (event.type === 'nodeCreated' && this.get(this.root) !== undefined)
  }

  #keeps(path: string): boolean {
    const { depth = Infinity, filter } = this.#options
    const level = depthBelow(this.root, path)
    if (level === undefined || level > depth) return false
    if (filter === undefined) return true
    for (
      let at = path;
      depthBelow(this.root, at) !== undefined;
      at = at.slice(0, Math.max(1, at.lastIndexOf('/')))
    ) {
      if (!filter(at)) return false
      if (at === '/') break
    }
    return true
  }

  #deleted(path: string, order: number): void {
    for (const [other, reading] of this.#reading) {
      if (depthBelow(path, other) !== undefined) reading.since = order
    }
    this.#tellAll(this.#entries.removed(path))
  }

  /** One after the other; those that are asked for while one runs are one. */
  #resync(since: number): void {
    this.#stale = true
    const idle = this.#wanted === undefined && !this.#looking
    this.#wanted = since
    if (idle) void this.#lookWhileWanted().catch((error: unknown) => this.#end(error))
  }

  async #lookWhileWanted(): Promise<void> {
    this.#looking = true
    try {
      while (this.#wanted !== undefined && !this.#over) {
        const since = this.#wanted
        this.#wanted = undefined
        this.#sawAll = true
        await this.#lookAtAll(since)
      }
    } finally {
      this.#looking = false
    }
    if (this.#sawAll && !this.#over && this.#client.state !== 'suspended') this.#fresh()
  }

  #fresh(): void {
    const again = this.#initialized
    this.#initialized = true
    this.#stale = false
    this.#tell({ type: again ? 'resynced' : 'initialized' })
    this.#settleReady.resolve()
  }

  /** A session that ended brings another resync by itself. */
  #failed(error: unknown): void {
    if (!(error instanceof SessionExpiredError) || isFinished(this.#client)) this.#end(error)
    else this.#sawAll = false
  }

  async #lookAtAll(since: number): Promise<void> {
    const seen = new Set<string>()
    let visits = 0
    const visit = async (path: string): Promise<readonly string[]> => {
      // One round trip for each level of a deep tree, and one request for each leaf of a broad one.
      const early = visits++ < FEW ? this.#list(path) : undefined
      early?.catch(() => {})
      const before = this.#entries.get(path)
      if (await this.#read(path)) seen.add(path)
      visits--
      return early ?? (this.#isLeafSince(before, path) ? [] : this.#list(path))
    }
    try {
      if (this.#keeps(this.root)) await spread(this.root, WINDOW, visit)
      if (this.#sawAll) this.#tellAll(this.#entries.forget(seen, since))
    } catch (error) {
      this.#failed(error)
    }
  }

  /** Children that come later are told of, so that what has just been read will do; what was read before will not. */
  #isLeafSince(before: Entry<T> | undefined, path: string): boolean {
    const now = this.#entries.get(path)
    return now !== before && now?.stat.numChildren === 0
  }

  /** The paths below another that are kept. */
  async #list(path: string): Promise<string[]> {
    const { depth = Infinity } = this.#options
    if (depthBelow(this.root, path)! >= depth) return []
    const list = await this.#gate.through(() => orMissing(this.#client.getChildren(path)))
    return (list?.children ?? []).map((name) => below(path, name)).filter((each) => this.#keeps(each))
  }

  /** Reads a znode until what was read is not older than what was told of it. True when it is there. */
  async #read(path: string): Promise<boolean> {
    const pending = this.#reading.get(path)
    if (pending !== undefined) {
      // One read at a time; whoever asks meanwhile gets another one after it.
      pending.again = true
      return true
    }
    const reading: Reading = { since: 0, again: false }
    this.#reading.set(path, reading)
    try {
      for (;;) {
        reading.again = false
        const found = await this.#readOnce(path, reading)
        if (!reading.again || this.#over) return found
      }
    } finally {
      this.#reading.delete(path)
    }
  }

  async #readOnce(path: string, reading: Reading): Promise<boolean> {
    try {
      const { data, stat, order } = await this.#gate.through(() => this.#client.getData(path))
      if (order < reading.since || this.#over) return false
      const value = this.#decode(data)
      const change = this.#entries.read(path, { value, stat }, order)
      if (change !== undefined) this.#tell(change)
      this.#checkSize()
      return true
    } catch (error) {
      return this.#unread(path, error)
    }
  }

  #unread(path: string, error: unknown): boolean {
    if (error instanceof NoNodeError) {
      this.#tellAll(this.#entries.removed(path))
      return false
    }
    if (error instanceof TreeTooLargeError || error instanceof FatalError) this.#failed(error)
    else this.#tell({ type: 'unreadable', path, cause: error })
    // What is known of it stays.
    return true
  }

  #decode(data: Bytes): T {
    const { codec } = this.#options
    return codec === undefined ? (data as T) : codec.decode(data)
  }

  #checkSize(): void {
    const { maxNodes = Infinity } = this.#options
    if (this.#entries.size > maxNodes) {
      throw new TreeTooLargeError(`Expected at most ${maxNodes} znodes below ${this.root}, got more`, {
        path: this.root,
      })
    }
  }

  async #followStates(): Promise<void> {
    for await (const { state } of this.#states) {
      if (state === 'suspended' && this.#initialized && !this.#over) {
        this.#stale = true
        this.#tell({ type: 'stale' })
      }
    }
  }

  #tellAll(changes: readonly CacheEvent<T>[]): void {
    for (const change of changes) this.#tell(change)
  }

  #tell(event: CacheEvent<T>): void {
    for (const stream of this.#streams) stream.push(event)
  }

  #end(error: unknown): void {
    if (this.#over) return
    this.#over = true
    this.#error = error
    void this.#states.return?.()
    void this.#watcher?.close()
    for (const stream of this.#streams) stream.end(error)
    this.#streams.clear()
    this.#settleReady.reject(
      error ?? new UsageError('The cache was closed before it was ready', { path: this.root }),
    )
  }
}
