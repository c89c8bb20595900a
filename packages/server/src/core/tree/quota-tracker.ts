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
 * Keeps the use of each limited subtree in its stats node. That is bookkeeping and no transaction: no version, no zxid, no
 * event; and no digest, which leaves out all that lies below `/zookeeper`.
 */
export class QuotaTracker {
  readonly #store: NodeStore
  readonly #quotas: QuotaIndex
  /** Subtrees to be counted by `count`; undefined while each is counted at once. */
  #deferred: Set<string> | undefined

  constructor(store: NodeStore, quotas: QuotaIndex) {
    this.#store = store
    this.#quotas = quotas
  }

  /** A limits node makes its subtree count; a stats node is born with the true use, whatever it was created with. */
  created(path: string, bytes: number): void {
    if (path.startsWith(QUOTA_ROOT)) {
      const limited = quotaTarget(path, LIMITS_NAME)
      if (limited !== undefined) this.#quotas.add(limited)
      const counted = quotaTarget(path, STATS_NAME)
      if (counted !== undefined) this.#recount(counted)
    }
    this.#add(path, 1, bytes)
  }

  /** Call it when the node is gone. */
  deleted(path: string, bytes: number): void {
    const limited = path.startsWith(QUOTA_ROOT) ? quotaTarget(path, LIMITS_NAME) : undefined
    if (limited !== undefined) this.#quotas.delete(limited)
    this.#add(path, -1, -bytes)
  }

  resized(path: string, bytes: number): void {
    this.#add(path, 0, bytes)
  }

  /** Has the use of every limited subtree counted anew: what a snapshot holds was written while the tree changed. */
  recount(): void {
    for (const subject of this.#quotas.subjects()) this.#recount(subject)
  }

  /** From here on subtrees are only noted when they are to be counted, until `count` is through. */
  deferRecounts(): void {
    this.#deferred = new Set()
  }

  /** Counts what was put off, so many nodes in a step. The tree must not change meanwhile. */
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
      // A client wrote something else into the node. The use is counted anew instead of guessed.
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
