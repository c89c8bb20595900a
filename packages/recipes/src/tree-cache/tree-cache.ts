import {
  NoNodeError,
  ZooKeeperError,
  SessionExpiredError,
  UsageError,
  type Bytes,
  type Client,
  type Codec,
  type Ordered,
  type Stat,
  type StateChange,
  type Watcher,
  type WatchedEvent,
} from '@zabra/client/core'
import {
  AsyncQueue,
  childPath,
  onAbort,
  parentOf,
  syncResult,
  withCodecErrors,
  withoutTimeout,
} from '@zabra/client/recipe-kit'
import type { Abortable } from '../handles/types.ts'
import { isFinished, undefinedIfMissing } from '../support/retry.ts'
import { ConcurrencyLimiter } from '../support/concurrency-limiter.ts'
import { visitConcurrently } from '../support/visit-concurrently.ts'
import { depthBelow, EntryTable, type Entry, type NodeChange } from './entries.ts'
import {
  abortable,
  aFunction,
  checkOptions,
  checkRecipe,
  codec as aCodec,
  count,
  positive,
  trueOrFalse,
  type Rules,
  checkArgument,
  text,
} from '../support/checks.ts'

export interface TreeCacheOptions<T> {
  /** Decodes data (default: raw bytes). */
  readonly codec?: Codec<T> | undefined
  /** False reads no data, only stats: values are empty, and the codec is not used (default true). */
  readonly data?: boolean | undefined
  /** Number of cached levels below the root (default: all). */
  readonly depth?: number | undefined
  /** Number of znodes above which the cache fails with a `TreeTooLargeError` (default: no limit). */
  readonly maxNodes?: number | undefined
  /** Selects the cached paths; children of an excluded path are excluded too. */
  readonly filter?: ((path: string) => boolean) | undefined
}

/**
 * An event of the cache. A parent is added before its children, or announced as `unreadable`, and removed after them.
 * `initialized`: everything was read once. `stale`: the connection is lost and the contents
 * may be outdated. `resynced`: the contents are up to date again. `unreadable`: a znode could not be read or
 * decoded; its older value stays.
 */
export type CacheEvent<T> =
  | NodeChange<T>
  | { readonly type: 'initialized' | 'stale' | 'resynced' }
  | { readonly type: 'unreadable'; readonly path: string; readonly cause: unknown }

/** The tree has more znodes than its cache may hold. */
export class TreeTooLargeError extends UsageError {
  static override readonly tag = 'TreeTooLargeError'
}

/** Maximum number of requests in flight: enough to keep a server busy, and far below its queue limit. */
const MAX_IN_FLIGHT = 256
/** Maximum number of visits that request data and children at once. */
const MAX_PARALLEL_LISTINGS = 16
/** Maximum number of events buffered for a slow consumer. */
const MAX_PENDING_EVENTS = 65_536

const NO_DATA: Bytes = new Uint8Array(0)

interface PendingRead {
  /** Replies older than this are ignored: the znode was deleted since. */
  since: number
  again: boolean
}

const rules: Rules<TreeCacheOptions<unknown>> = {
  codec: aCodec,
  data: trueOrFalse,
  depth: count,
  maxNodes: positive,
  filter: aFunction,
}

/** A local copy of a tree that follows its changes. */
export class TreeCache<T = Bytes> implements AsyncDisposable {
  readonly root: string
  /** Resolves when everything was read once, also for a missing root. */
  readonly ready: Promise<void>
  readonly #client: Client
  readonly #options: TreeCacheOptions<T>
  readonly #entries: EntryTable<T>
  readonly #streams = new Set<AsyncQueue<CacheEvent<T>>>()
  readonly #pendingReads = new Map<string, PendingRead>()
  readonly #limiter = new ConcurrencyLimiter(MAX_IN_FLIGHT)
  readonly #states: AsyncIterableIterator<StateChange>
  #watcher: Watcher | undefined
  #settleReady: { resolve(): void; reject(error: unknown): void }
  #initialized = false
  #stale = true
  #revision = 0
  /** Order of the event that requested a full read; undefined if none is requested. */
  #requestedSince: number | undefined
  #isReadingAll = false
  /** False when the session expired during the last full read. */
  #isComplete = false
  #isClosed = false
  #error: unknown

  constructor(client: Client, root: string, options: TreeCacheOptions<T> = {}) {
    checkRecipe('TreeCache', client, root, options, rules)
    this.#client = withoutTimeout(client)
    this.root = root
    this.#entries = new EntryTable(root)
    const codec = options.codec && withCodecErrors(options.codec, { operation: 'tree cache', path: root })
    this.#options = { ...options, ...(codec && { codec }) }
    this.#settleReady = { resolve: () => {}, reject: () => {} }
    this.ready = new Promise((resolve, reject) => (this.#settleReady = { resolve, reject }))
    // The caller may ignore it.
    this.ready.catch(() => {})
    this.#states = client.states()
    void this.#followStates()
    void this.#run().catch((error: unknown) => this.#end(error))
  }

  /** True while the connection is lost, until everything has been read again, and once the cache has ended or is closed. */
  get stale(): boolean {
    return this.#stale
  }

  /**
   * Number of events so far: what a consumer has made of the contents is up to date while it has not grown.
   * @internal
   */
  get revision(): number {
    return this.#revision
  }

  /** Number of cached znodes. */
  get size(): number {
    return this.#entries.size
  }

  /** Returns a znode as last read; undefined when it does not exist or is not cached. */
  get(path: string): Entry<T> | undefined {
    checkArgument('treeCache.get', 'a path', path, text)
    return this.#entries.get(path)
  }

  /** Returns the sorted child names; undefined when the znode does not exist. */
  children(path: string): readonly string[] | undefined {
    checkArgument('treeCache.children', 'a path', path, text)
    return this.#entries.children(path)
  }

  /** Yields all znodes, parents before children. */
  entries(): IterableIterator<[string, Entry<T>]> {
    return this.#entries.all()
  }

  /**
   * Yields the current znodes as `added`, and then every change until the consumer leaves the loop or the cache is
   * closed. Rejects with the error that has ended the cache.
   */
  events(options: Abortable = {}): AsyncIterableIterator<CacheEvent<T>> {
    checkOptions(`events ${this.root}`, options, abortable)
    const { signal } = options
    let stopListening = (): void => {}
    const leave = (): void => {
      this.#streams.delete(stream)
      stopListening()
    }
    const tooSlow = (waiting: CacheEvent<T>[]): CacheEvent<T>[] => {
      stream.end(
        new UsageError(
          `Expected a consumer that keeps up with events, got one with ${waiting.length} events wait for`,
        ),
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
    stopListening = onAbort(signal, () => void stream.return())
    return stream
  }

  /** Stops following; the contents stay readable. */
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

  /** Some servers send the root's path for changes below it: an event on the root may require a full read. */
  #requiresFullRead(event: WatchedEvent): boolean {
    if (event.type === 'resync' || event.path !== this.root) return false
    return event.type === 'nodeDeleted' || (event.type === 'nodeCreated' && this.get(this.root) !== undefined)
  }

  #keeps(path: string): boolean {
    const { depth = Infinity, filter } = this.#options
    const level = depthBelow(this.root, path)
    if (level === undefined || level > depth) return false
    if (filter === undefined) return true
    for (let at = path; depthBelow(this.root, at) !== undefined; at = parentOf(at)) {
      if (!syncResult('the filter of a cache', filter(at))) return false
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

  /** Full reads run one at a time; requests that arrive meanwhile are merged. */
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

  /** A session expiry triggers another resync. */
  #onReadError(error: unknown): void {
    if (!(error instanceof SessionExpiredError) || isFinished(this.#client)) this.#end(error)
    else this.#isComplete = false
  }

  async #readAll(since: number): Promise<void> {
    const seen = new Set<string>()
    let visits = 0
    const visit = async (path: string): Promise<readonly string[]> => {
      // Costs one round trip per level of a deep tree, and one request per leaf of a broad one.
      const listing = visits++ < MAX_PARALLEL_LISTINGS ? this.#list(path) : undefined
      listing?.catch(() => {})
      const before = this.#entries.get(path)
      if (await this.#read(path)) seen.add(path)
      visits--
      return listing ?? (this.#isLeafSince(before, path) ? [] : this.#list(path))
    }
    try {
      if (this.#keeps(this.root)) await visitConcurrently(this.root, MAX_IN_FLIGHT, visit)
      if (this.#isComplete) this.#emitAll(this.#entries.removeUnseen(seen, since))
    } catch (error) {
      this.#onReadError(error)
    }
  }

  /** Later children trigger events, so a fresh stat without children is enough; an older one is not. */
  #isLeafSince(before: Entry<T> | undefined, path: string): boolean {
    const now = this.#entries.get(path)
    return now !== before && now?.stat.numChildren === 0
  }

  /** Returns the cached children of a path. */
  async #list(path: string): Promise<string[]> {
    const { depth = Infinity } = this.#options
    if (depthBelow(this.root, path)! >= depth) return []
    const list = await this.#limiter.run(() => undefinedIfMissing(this.#client.getChildren(path)))
    return (list?.children ?? []).map((name) => childPath(path, name)).filter((each) => this.#keeps(each))
  }

  /** Reads a znode until the result is not older than its last event. Returns true when it exists. */
  async #read(path: string): Promise<boolean> {
    const pending = this.#pendingReads.get(path)
    if (pending !== undefined) {
      // One read at a time; a request during it triggers another read after it.
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
      const { data, stat, order } = await this.#limiter.run(() => this.#fetch(path))
      if (order < reading.since || this.#isClosed) return false
      const value = this.#decode(data)
      this.#emitAll(this.#entries.read(path, { value, stat }, order))
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
    const isEnd = ZooKeeperError.is(error) && error.scope !== 'request'
    if (isEnd || error instanceof TreeTooLargeError) this.#onReadError(error)
    else {
      this.#emit({ type: 'unreadable', path, cause: error })
      // A lost connection is followed by another full read.
      if (!ZooKeeperError.is(error) || !error.retryable) this.#emitAll(this.#entries.unreadable(path))
    }
    // The last known value stays.
    return true
  }

  /** Reads a znode, its data only if they are cached. Rejects with a `NoNodeError` when it does not exist. */
  async #fetch(path: string): Promise<{ data: Bytes; stat: Stat } & Ordered> {
    if (this.#options.data !== false) return this.#client.getData(path)
    const found = await this.#client.exists(path)
    if (found === undefined)
      throw new NoNodeError(`exists ${path}: there is no such znode`, 'NO_NODE', { path })
    const { order, ...stat } = found
    return { data: NO_DATA, stat, order }
  }

  #decode(data: Bytes): T {
    const { codec } = this.#options
    return codec === undefined || this.#options.data === false ? (data as T) : codec.decode(data)
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
    this.#revision++
    for (const stream of this.#streams) stream.push(event)
  }

  #end(error: unknown): void {
    if (this.#isClosed) return
    this.#isClosed = true
    this.#stale = true
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
