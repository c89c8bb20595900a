import { counterOf } from '@zabra/protocol'
import type { Clock } from '@zabra/runtime'
import type { Tree } from '../core/tree/index.ts'
import type { RequestPipeline } from '../pipeline/index.ts'
import type { LineCounts } from './line-counts.ts'
import type { ServerStats } from './stats.ts'

export interface CommitTurnsOptions {
  readonly tree: Pick<Tree, 'lastZxid'>
  readonly clock: Pick<Clock, 'monotonic'>
  readonly stats: Pick<ServerStats, 'commits' | 'readLatency' | 'updateLatency'>
  readonly lines: LineCounts
  readonly pipeline: () => Pick<RequestPipeline, 'outstanding' | 'queues'>
}

/**
 * Measures each turn in which transactions were applied, as Apache ZooKeeper measures a batch of its commit processor. All figures are
 * differences of counters, and one look at the clock: a request costs no more for them.
 */
export class CommitTurns {
  readonly #options: CommitTurnsOptions
  #applied: number
  /** The counters at the end of the last such turn. */
  #reads: number
  #writes: number
  #left = 0
  #drained = 0
  #readsLeft = 0

  constructor(options: CommitTurnsOptions) {
    const { tree, stats } = options
    this.#options = options
    this.#applied = tree.lastZxid
    this.#reads = stats.readLatency.totalCount
    this.#writes = stats.updateLatency.totalCount
  }

  /** Called at the end of each turn, which began at `begunAt`. */
  ended(begunAt: number): void {
    if (this.#options.tree.lastZxid !== this.#applied) this.#measure(begunAt)
  }

  #measure(begunAt: number): void {
    const { tree, clock, stats, lines, pipeline } = this.#options
    const { commits, readLatency, updateLatency } = stats
    const applied = appliedBetween(this.#applied, tree.lastZxid)
    const reads = readLatency.totalCount - this.#reads
    const writes = updateLatency.totalCount - this.#writes
    this.#applied = tree.lastZxid
    this.#reads = readLatency.totalCount
    this.#writes = updateLatency.totalCount
    const left = lines.left - this.#left
    const drained = lines.drained - this.#drained
    const readsLeft = lines.readsLeft - this.#readsLeft
    this.#left = lines.left
    this.#drained = lines.drained
    this.#readsLeft = lines.readsLeft

    const ms = clock.monotonic() - begunAt
    commits.batchTime.add(ms)
    commits.timeOfOne.add(ms / applied)
    // What waited when the commits came has left since, or waits still.
    commits.lines.add(lines.lines + drained)
    commits.requestsInLines.add(lines.requests + left)
    commits.readsInLines.add(lines.reads + readsLeft)
    commits.readsLeft.add(readsLeft)
    if (lines.firstWaitMs !== undefined) commits.readWait.add(lines.firstWaitMs)
    lines.firstWaitMs = undefined
    commits.linesDrained.add(drained)
    commits.readsAnswered.add(reads)
    commits.writesAnswered.add(writes)
    const { outstanding, queues } = pipeline()
    commits.writesInFlight.add(outstanding + writes)
    commits.commitsWaiting.add((queues['apply'] ?? 0) + applied)
    if (queues['prepare'] !== undefined) commits.waitingForPreparation.add(queues['prepare'])
    if (queues['forward'] !== undefined) commits.waitingForLeader.add(outstanding + writes)
  }
}

/** Returns how many transactions of an epoch follow one that may be of an earlier epoch, at least 1. */
const appliedBetween = (before: number, last: number): number =>
  Math.max(1, last - counterOf(last) < before ? last - before : counterOf(last))
