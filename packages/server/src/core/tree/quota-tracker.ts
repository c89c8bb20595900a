import { NONE, type NodeStore } from './node-store.ts'
import {
  LIMITS_NAME,
  parseQuota,
  QUOTA_ROOT,
  type QuotaIndex,
  quotaStats,
  quotaTarget,
  STATS_NAME,
} from './quotas.ts'

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
