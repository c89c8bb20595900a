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
import { isFinished, undefinedIfMissing } from '../support/retry.ts'
import { ConcurrencyLimiter } from '../support/concurrency-limiter.ts'
import { visitConcurrently } from '../support/visit-concurrently.ts'
import { below, depthBelow, EntryTable, type Entry, type NodeChange } from './entries.ts'

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
const MAX_IN_FLIGHT = 256
/** Visits at a time that ask for data and children at once. */
const MAX_PARALLEL_LISTINGS = 16
/** Events that may wait for a slow consumer. */
const MAX_PENDING_EVENTS = 65_536

interface PendingRead {
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
  readonly #entries = new EntryTable<T>()
  readonly #streams = new Set<AsyncQueue<CacheEvent<T>>>()
  readonly #pendingReads = new Map<string, PendingRead>()
  readonly #limiter = new ConcurrencyLimiter(MAX_IN_FLIGHT)
  readonly #states: AsyncIterableIterator<StateChange>
  #watcher: Watcher | undefined
  #settleReady: { resolve(): void; reject(error: unknown): void }
  #initialized = false
  #stale = true
  /** A full look that is asked for, by the order of what asked for it. */
  #requestedSince: number | undefined
  #isReadingAll = false
  /** Whether the last full look saw all, or lost its session in the midst. */
  #isComplete = false
  #isClosed = false
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
    const stream: AsyncQueue<CacheEvent<T>> = new AsyncQueue(MAX_PENDING_EVENTS + this.size, tooSlow, leave)
    for (const [path, { value, stat }] of this.#entries.all())
      stream.push({ type: 'added', path, value, stat })
    if (this.#initialized) stream.push({ type: 'initialized' })
    if (this.#isClosed) stream.end(this.#error)
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
    const watcher = await this.#setWatch()
    this.#watcher = watcher
    if (this.#isClosed) return watcher.close()
    this.#resync(0)
    for await (const event of watcher) this.#handleEvent(event)
    this.#end(undefined)
  }

  async #setWatch(): Promise<Watcher> {
    for (;;) {
      try {
        return await this.#client.watch(this.root, { mode: 'persistentRecursive' })
      } catch (error) {
        if (!(error instanceof SessionExpiredError) || isFinished(this.#client)) throw error
      }
    }
  }

  #handleEvent(event: WatchedEvent): void {
    if (this.#isClosed) return
    if (event.type === 'resync' || this.#requiresFullRead(event)) return this.#resync(event.order)
    if (!this.#keeps(event.path)) return
    if (event.type === 'nodeDeleted') this.#onDeleted(event.path, event.order)
    else void this.#read(event.path)
  }

  /** Some servers name the root whatever was made or removed below it: what they say of it is worth a full look. */
  #requiresFullRead(event: WatchedEvent): boolean {
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

  #onDeleted(path: string, order: number): void {
    for (const [other, reading] of this.#pendingReads) {
      if (depthBelow(path, other) !== undefined) reading.since = order
    }
    this.#emitAll(this.#entries.removed(path))
  }

  /** One after the other; those that are asked for while one runs are one. */
  #resync(since: number): void {
    this.#stale = true
    const idle = this.#requestedSince === undefined && !this.#isReadingAll
    this.#requestedSince = since
    if (idle) void this.#readAllWhileRequested().catch((error: unknown) => this.#end(error))
  }

  async #readAllWhileRequested(): Promise<void> {
    this.#isReadingAll = true
    try {
      while (this.#requestedSince !== undefined && !this.#isClosed) {
        const since = this.#requestedSince
        this.#requestedSince = undefined
        this.#isComplete = true
        await this.#readAll(since)
      }
    } finally {
      this.#isReadingAll = false
    }
    if (this.#isComplete && !this.#isClosed && this.#client.state !== 'suspended') this.#markFresh()
  }

  #markFresh(): void {
    const again = this.#initialized
    this.#initialized = true
    this.#stale = false
    this.#emit({ type: again ? 'resynced' : 'initialized' })
    this.#settleReady.resolve()
  }

  /** A session that ended brings another resync by itself. */
  #onReadError(error: unknown): void {
    if (!(error instanceof SessionExpiredError) || isFinished(this.#client)) this.#end(error)
    else this.#isComplete = false
  }

  async #readAll(since: number): Promise<void> {
    const seen = new Set<string>()
    let visits = 0
    const visit = async (path: string): Promise<readonly string[]> => {
      // One round trip for each level of a deep tree, and one request for each leaf of a broad one.
      const early = visits++ < MAX_PARALLEL_LISTINGS ? this.#list(path) : undefined
      early?.catch(() => {})
      const before = this.#entries.get(path)
      if (await this.#read(path)) seen.add(path)
      visits--
      return early ?? (this.#isLeafSince(before, path) ? [] : this.#list(path))
    }
    try {
      if (this.#keeps(this.root)) await visitConcurrently(this.root, MAX_IN_FLIGHT, visit)
      if (this.#isComplete) this.#emitAll(this.#entries.removeUnseen(seen, since))
    } catch (error) {
      this.#onReadError(error)
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
    const list = await this.#limiter.run(() => undefinedIfMissing(this.#client.getChildren(path)))
    return (list?.children ?? []).map((name) => below(path, name)).filter((each) => this.#keeps(each))
  }

  /** Reads a znode until what was read is not older than what was told of it. True when it is there. */
  async #read(path: string): Promise<boolean> {
    const pending = this.#pendingReads.get(path)
    if (pending !== undefined) {
      // One read at a time; whoever asks meanwhile gets another one after it.
      pending.again = true
      return true
    }
    const reading: PendingRead = { since: 0, again: false }
    this.#pendingReads.set(path, reading)
    try {
      for (;;) {
        reading.again = false
        const found = await this.#readOnce(path, reading)
        if (!reading.again || this.#isClosed) return found
      }
    } finally {
      this.#pendingReads.delete(path)
    }
  }

  async #readOnce(path: string, reading: PendingRead): Promise<boolean> {
    try {
      const { data, stat, order } = await this.#limiter.run(() => this.#client.getData(path))
      if (order < reading.since || this.#isClosed) return false
      const value = this.#decode(data)
      const change = this.#entries.read(path, { value, stat }, order)
      if (change !== undefined) this.#emit(change)
      this.#checkSize()
      return true
    } catch (error) {
      return this.#onUnreadable(path, error)
    }
  }

  #onUnreadable(path: string, error: unknown): boolean {
    if (error instanceof NoNodeError) {
      this.#emitAll(this.#entries.removed(path))
      return false
    }
    if (error instanceof TreeTooLargeError || error instanceof FatalError) this.#onReadError(error)
    else this.#emit({ type: 'unreadable', path, cause: error })
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
      if (state === 'suspended' && this.#initialized && !this.#isClosed) {
        this.#stale = true
        this.#emit({ type: 'stale' })
      }
    }
  }

  #emitAll(changes: readonly CacheEvent<T>[]): void {
    for (const change of changes) this.#emit(change)
  }

  #emit(event: CacheEvent<T>): void {
    for (const stream of this.#streams) stream.push(event)
  }

  #end(error: unknown): void {
    if (this.#isClosed) return
    this.#isClosed = true
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
