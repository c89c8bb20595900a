import { beginsWith } from '../begins-with.ts'
import { PathPrefixes } from '../path-prefixes.ts'
import { TextMap } from '../text-map.ts'
import { NONE, type NodeStore } from './node-store.ts'

/** Limits and usage of a subtree are stored below this node, at the path of the subtree. */
export const QUOTA_ROOT = '/zookeeper/quota'
export const LIMITS_NAME = 'zookeeper_limits'
export const STATS_NAME = 'zookeeper_stats'

/** Data of a limits or stats node that is longer, in bytes, is malformed: six numbers with their names are shorter. */
const MAX_QUOTA_BYTES = 1024

/** The numbers of a quota or of its usage; -1 is "none". */
export interface QuotaNumbers {
  readonly count: number
  readonly bytes: number
  readonly countHardLimit: number
  readonly byteHardLimit: number
}

/**
 * Parses a limits or stats node (`StatsTrack`). Throws a SyntaxError when a number is malformed: requests below such a quota
 * are refused rather than allowed.
 */
export function parseQuota(data: Uint8Array | null): QuotaNumbers {
  if (data !== null && data.length > MAX_QUOTA_BYTES)
    throw new SyntaxError(
      `Expected a quota node of at most ${MAX_QUOTA_BYTES} bytes, got one of ${data.length}`,
    )
  const values = new Map<string, number>()
  if (data === null) throw new SyntaxError('Expected count=N,bytes=M in a quota node, got null')
  for (const part of new TextDecoder().decode(data).split(/[,;]+/)) {
    const [key, value] = part.split('=')
    if (key === undefined || key === '') continue
    if (value === undefined || !/^[+-]?\d+$/.test(value)) {
      throw new SyntaxError(
        `Expected count=N,bytes=M in a quota node, got ${JSON.stringify(part.slice(0, 80))}`,
      )
    }
    values.set(key, Number(value))
  }
  const get = (key: string): number => values.get(key) ?? -1
  return {
    count: get('count'),
    bytes: get('bytes'),
    countHardLimit: get('countHardLimit'),
    byteHardLimit: get('byteHardLimit'),
  }
}

/** A limit that a write would exceed. */
export interface QuotaBreach {
  readonly what: 'nodes' | 'bytes'
  readonly isHard: boolean
  readonly limit: number
  /** The usage after the write. */
  readonly use: number
}

/** Returns the limit that adding `nodes` and `bytes` would exceed, hard limits first. */
export function quotaBreach(
  allowed: QuotaNumbers,
  used: QuotaNumbers,
  nodes: number,
  bytes: number,
): QuotaBreach | undefined {
  const checks: [QuotaBreach['what'], boolean, number, number, number][] = [
    ['nodes', true, allowed.countHardLimit, used.count, nodes],
    ['bytes', true, allowed.byteHardLimit, used.bytes, bytes],
    ['nodes', false, allowed.count, used.count, nodes],
    ['bytes', false, allowed.bytes, used.bytes, bytes],
  ]
  for (const [what, isHard, limit, before, more] of checks) {
    // Apache checks bytes also when they shrink, and nodes only when one is added.
    const counts = what === 'nodes' ? more > 0 : more !== 0
    if (counts && limit > -1 && before + more > limit) return { what, isHard, limit, use: before + more }
  }
  return undefined
}

/** Encodes the contents of a stats node. */
export const quotaStats = (count: number, bytes: number): Uint8Array =>
  new TextEncoder().encode(`count=${count},bytes=${bytes}`)

/** Returns the subtree that the limits or stats node at `path` is for; undefined for other paths. */
export function quotaTarget(path: string, name: string): string | undefined {
  if (!path.startsWith(`${QUOTA_ROOT}/`) || !path.endsWith(`/${name}`)) return undefined
  return path.slice(QUOTA_ROOT.length, path.length - name.length - 1)
}

/** Holds the paths of the subtrees that have a quota. */
export class QuotaIndex {
  readonly #subjects: PathPrefixes<true>

  /** `hashKey` is the secret key of `PathPrefixes`. */
  constructor(hashKey?: number) {
    this.#subjects = new PathPrefixes(hashKey)
  }

  get size(): number {
    return this.#subjects.size
  }

  subjects(): Iterable<string> {
    return this.#subjects.keys()
  }

  add(subject: string): void {
    this.#subjects.set(subject, true)
  }

  delete(subject: string): void {
    this.#subjects.delete(subject)
  }

  /** Returns the deepest subtree with a quota that contains `path`, or undefined. */
  deepest(path: string): string | undefined {
    if (this.#subjects.size === 0) return undefined
    if (this.#subjects.get(path) !== undefined) return path
    const candidates: string[] = []
    this.#subjects.forEachCandidate(path, (candidate) => void candidates.push(candidate))
    // Nearly always the last one: quotas may be on thousands of the ancestors of a path.
    return candidates.findLast((candidate) => candidate !== '/' && beginsWith(path, candidate))
  }
}

/**
 * Maintains the usage of each subtree with a quota in its stats node. This is not a transaction: versions and zxids do not change,
 * no event fires, and the digest excludes everything below `/zookeeper`.
 */
export class QuotaTracker {
  readonly #store: NodeStore
  readonly #quotas: QuotaIndex
  /** The usage of each subtree as it was written last. */
  readonly #usage: TextMap<{ readonly count: number; readonly bytes: number }>
  readonly #isDeferring: () => boolean
  /** Subtrees to recount in `runDeferredRecounts`. */
  #deferred: TextMap<true>

  readonly #hashKey: number | undefined

  /**
   * Recounts run at once, or in `runDeferredRecounts` while `isDeferring` returns true. `hashKey` is the secret key of `TextMap`.
   */
  constructor(store: NodeStore, quotas: QuotaIndex, isDeferring: () => boolean, hashKey?: number) {
    this.#hashKey = hashKey
    this.#usage = new TextMap(hashKey)
    this.#deferred = new TextMap(hashKey)
    this.#store = store
    this.#quotas = quotas
    this.#isDeferring = isDeferring
  }

  /** Counts a created node. A limits node starts the quota; a stats node gets the true usage, whatever it was created with. */
  created(path: string, bytes: number): void {
    if (path.startsWith(QUOTA_ROOT)) {
      const limited = quotaTarget(path, LIMITS_NAME)
      if (limited !== undefined) this.#quotas.add(limited)
      const counted = quotaTarget(path, STATS_NAME)
      if (counted !== undefined) this.#recount(counted)
    }
    this.#add(path, 1, bytes)
  }

  /** Counts a removed node. Call it after the removal. */
  deleted(path: string, bytes: number): void {
    const limited = path.startsWith(QUOTA_ROOT) ? quotaTarget(path, LIMITS_NAME) : undefined
    if (limited !== undefined) {
      this.#quotas.delete(limited)
      this.#usage.delete(limited)
    }
    this.#add(path, -1, -bytes)
  }

  resized(path: string, bytes: number): void {
    this.#add(path, 0, bytes)
  }

  /** Recounts the usage of every quota: the stats nodes of a fuzzy snapshot may be inexact. */
  recount(): void {
    for (const subject of this.#quotas.subjects()) this.#recount(subject)
  }

  /** Runs the deferred recounts, `nodes` nodes a step. The tree must not change meanwhile. */
  *runDeferredRecounts(nodes: number): Generator<void> {
    for (const subject of this.#deferred.keys()) yield* this.#counting(subject, nodes)
    this.#deferred = new TextMap(this.#hashKey)
  }

  #add(path: string, nodes: number, bytes: number): void {
    const subject = this.#quotas.size === 0 ? undefined : this.#quotas.deepest(path)
    if (subject === undefined) return
    const stats = this.#store.find(`${QUOTA_ROOT}${subject}/${STATS_NAME}`)
    if (stats === NONE) return
    const use = this.#readUsage(subject, stats)
    if (use === undefined) this.#recount(subject)
    else this.#write(subject, stats, use.count + nodes, use.bytes + bytes)
  }

  /** Returns the usage that a stats node holds; the last one that was written where a client has overwritten it. */
  #readUsage(subject: string, stats: number): { readonly count: number; readonly bytes: number } | undefined {
    try {
      return parseQuota(this.#store.data(stats))
    } catch (error) {
      if (!(error instanceof SyntaxError)) throw error
      return this.#usage.get(subject)
    }
  }

  #write(subject: string, stats: number, count: number, bytes: number): void {
    this.#usage.set(subject, { count, bytes })
    this.#store.setData(stats, quotaStats(count, bytes))
  }

  #recount(subject: string): void {
    if (this.#isDeferring()) this.#deferred.set(subject, true)
    else this.#counting(subject, Infinity).next()
  }

  *#counting(subject: string, nodes: number): Generator<void> {
    const store = this.#store
    const top = store.find(subject)
    let count = 0
    let bytes = 0
    for (let node = top; node !== NONE; node = store.successor(node, top)) {
      count++
      bytes += Math.max(0, store.columns(node).length[store.slot(node)]!)
      if (count % nodes === 0) yield
    }
    const stats = store.find(`${QUOTA_ROOT}${subject}/${STATS_NAME}`)
    if (stats !== NONE) this.#write(subject, stats, count, bytes)
  }
}
