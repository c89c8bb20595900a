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
  readonly pipeline: () => Pick<RequestPipeline, 'outstanding' | 'unprepared' | 'unapplied'>
}

/**
 * Measures each turn in which transactions were applied, as Apache ZooKeeper measures a batch of its commit processor. All figures are
 * differences of counters, and one look at the clock: a request costs no more for them.
 */
export class CommitTurns {
  readonly #options: CommitTurnsOptions
  #applied: number
  /** Each returns how much a counter has grown since the last such turn. */
  readonly #reads: () => number
  readonly #writes: () => number
  readonly #left: () => number
  readonly #drained: () => number
  readonly #readsLeft: () => number

  constructor(options: CommitTurnsOptions) {
    const { tree, stats, lines } = options
    this.#options = options
    this.#applied = tree.lastZxid
    this.#reads = growthOf(() => stats.readLatency.totalCount)
    this.#writes = growthOf(() => stats.updateLatency.totalCount)
    this.#left = growthOf(() => lines.left)
    this.#drained = growthOf(() => lines.drained)
    this.#readsLeft = growthOf(() => lines.readsLeft)
  }

  /** Called at the end of each turn, which began at `begunAt`. */
  ended(begunAt: number): void {
    if (this.#options.tree.lastZxid !== this.#applied) this.#measure(begunAt)
  }

  #measure(begunAt: number): void {
    const { tree, clock, stats, lines, pipeline } = this.#options
    const { commits } = stats
    const applied = appliedBetween(this.#applied, tree.lastZxid)
    this.#applied = tree.lastZxid
    const writes = this.#writes()
    const drained = this.#drained()
    const readsLeft = this.#readsLeft()

    const ms = clock.monotonic() - begunAt
    commits.batchTime.add(ms)
    commits.timeOfOne.add(ms / applied)
    // What waited when the commits came has left since, or waits still.
    commits.lines.add(lines.lines + drained)
    commits.requestsInLines.add(lines.requests + this.#left())
    commits.readsInLines.add(lines.reads + readsLeft)
    commits.readsLeft.add(readsLeft)
    if (lines.firstWaitMs !== undefined) commits.readWait.add(lines.firstWaitMs)
    lines.firstWaitMs = undefined
    commits.linesDrained.add(drained)
    commits.readsAnswered.add(this.#reads())
    commits.writesAnswered.add(writes)
    const { outstanding, unprepared, unapplied } = pipeline()
    commits.writesInFlight.add(outstanding + writes)
    commits.commitsWaiting.add(unapplied + applied)
    if (unprepared === undefined) commits.waitingForLeader.add(outstanding + writes)
    else commits.waitingForPreparation.add(unprepared)
  }
}

/** Returns a function that returns how much a counter has grown since the last call. */
function growthOf(counter: () => number): () => number {
  let last = counter()
  return () => {
    const before = last
    last = counter()
    return last - before
  }
}

/** Returns how many transactions of an epoch follow one that may be of an earlier epoch, at least 1. */
const appliedBetween = (before: number, last: number): number =>
  Math.max(1, last - counterOf(last) < before ? last - before : counterOf(last))
