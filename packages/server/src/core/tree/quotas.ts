import { NONE, type NodeStore } from './node-store.ts'

/** Limits and usage of a subtree are stored below this node, at the path of the subtree. */
export const QUOTA_ROOT = '/zookeeper/quota'
export const LIMITS_NAME = 'zookeeper_limits'
export const STATS_NAME = 'zookeeper_stats'

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
  readonly #subjects = new Set<string>()

  get size(): number {
    return this.#subjects.size
  }

  subjects(): IterableIterator<string> {
    return this.#subjects.values()
  }

  add(subject: string): void {
    this.#subjects.add(subject)
  }

  delete(subject: string): void {
    this.#subjects.delete(subject)
  }

  /** Returns the deepest subtree with a quota that contains `path`, or undefined. */
  deepest(path: string): string | undefined {
    if (this.#subjects.size === 0) return undefined
    for (let end = path.length; end > 0; end = path.lastIndexOf('/', end - 1)) {
      const prefix = path.slice(0, end)
      if (this.#subjects.has(prefix)) return prefix
    }
    return undefined
  }
}

/**
 * Maintains the usage of each subtree with a quota in its stats node. This is not a transaction: versions and zxids do not change,
 * no event fires, and the digest excludes everything below `/zookeeper`.
 */
export class QuotaTracker {
  readonly #store: NodeStore
  readonly #quotas: QuotaIndex
  /** Subtrees to recount in `runDeferredRecounts`; undefined while recounts run at once. */
  #deferred: Set<string> | undefined

  constructor(store: NodeStore, quotas: QuotaIndex) {
    this.#store = store
    this.#quotas = quotas
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
    if (limited !== undefined) this.#quotas.delete(limited)
    this.#add(path, -1, -bytes)
  }

  resized(path: string, bytes: number): void {
    this.#add(path, 0, bytes)
  }

  /** Recounts the usage of every quota: the stats nodes of a fuzzy snapshot may be inexact. */
  recount(): void {
    for (const subject of this.#quotas.subjects()) this.#recount(subject)
  }

  /** Defers recounts until `runDeferredRecounts`. */
  deferRecounts(): void {
    this.#deferred = new Set()
  }

  /** Runs the deferred recounts, `nodes` nodes a step. The tree must not change meanwhile. */
  *runDeferredRecounts(nodes: number): Generator<void> {
    for (const subject of this.#deferred ?? []) yield* this.#counting(subject, nodes)
    this.#deferred = undefined
  }

  #add(path: string, nodes: number, bytes: number): void {
    const subject = this.#quotas.size === 0 ? undefined : this.#quotas.deepest(path)
    if (subject === undefined) return
    const stats = this.#store.find(`${QUOTA_ROOT}${subject}/${STATS_NAME}`)
    if (stats === NONE) return
    try {
      const use = parseQuota(this.#store.data(stats))
      this.#store.setData(stats, quotaStats(use.count + nodes, use.bytes + bytes))
    } catch (error) {
      // A client has overwritten the node. The usage is recounted.
      if (!(error instanceof SyntaxError)) throw error
      this.#recount(subject)
    }
  }

  #recount(subject: string): void {
    if (this.#deferred !== undefined) this.#deferred.add(subject)
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
    if (stats !== NONE) store.setData(stats, quotaStats(count, bytes))
  }
}
