import { OpCode } from '@zabra/protocol'
import { inSlices, type SliceTurns } from '../core/in-slices.ts'
import { RingBuffer } from '../core/ring-buffer.ts'
import type { ForwardedRequest } from '../core/zab/index.ts'

export interface LearnerRequestOptions extends Pick<SliceTurns, 'now' | 'runLater'> {
  /** Executes a sync of a learner, and calls back when it is done. */
  sync(learner: object, done: () => void): void
  process(learner: object, request: ForwardedRequest): void
}

/** A learner with syncs in flight, or with requests behind them. */
interface SyncingLearner {
  syncs: number
  /** Requests and actions that arrived behind the syncs. */
  readonly waiting: RingBuffer<ForwardedRequest | (() => void) | undefined>
  /** Whether later turns pass on what has waited: it may be very much. */
  isReleasing: boolean
}

/**
 * Passes on the requests of each learner in their order; requests behind a sync wait until the sync is done. A learner matches
 * answers with its oldest request, syncs included. If a commit overtook the answer to an older sync, a learner that runs
 * Apache ZooKeeper would never match it, and all its clients would hang.
 */
export class LearnerRequestOrder {
  readonly #options: LearnerRequestOptions
  readonly #syncing = new Map<object, SyncingLearner>()

  constructor(options: LearnerRequestOptions) {
    this.#options = options
  }

  submit(learner: object, request: ForwardedRequest): void {
    const syncing = this.#syncing.get(learner)
    const isSync = request.type === OpCode.sync
    if (syncing === undefined && !isSync) return this.#options.process(learner, request)
    const own = syncing ?? this.#begin(learner)
    if (isSync && !hasWaiting(own)) this.#sync(learner, own)
    else own.waiting.push(request)
  }

  /** Runs an action after all waiting requests of a learner; now if the learner is removed. */
  runInOrder(learner: object, action: () => void): void {
    const syncing = this.#syncing.get(learner)
    if (syncing === undefined || !hasWaiting(syncing)) action()
    else syncing.waiting.push(action)
  }

  /** Drops and returns the waiting requests of a learner, and runs the actions behind them: they may matter to other learners. */
  remove(learner: object): readonly ForwardedRequest[] {
    const dropped: ForwardedRequest[] = []
    const syncing = this.#syncing.get(learner)
    if (syncing === undefined) return dropped
    this.#syncing.delete(learner)
    for (const item of syncing.waiting)
      if (typeof item === 'function') item()
      else dropped.push(item!)
    return dropped
  }

  clear(): void {
    this.#syncing.clear()
  }

  #begin(learner: object): SyncingLearner {
    const syncing: SyncingLearner = { syncs: 0, waiting: new RingBuffer(undefined), isReleasing: false }
    this.#syncing.set(learner, syncing)
    return syncing
  }

  #sync(learner: object, syncing: SyncingLearner): void {
    syncing.syncs++
    this.#options.sync(learner, () => {
      if (--syncing.syncs === 0 && !syncing.isReleasing) this.#release(learner, syncing)
    })
  }

  /** Passes on what has waited, up to a request behind another sync. */
  #release(learner: object, syncing: SyncingLearner): void {
    const { now, runLater } = this.#options
    syncing.isReleasing = true
    inSlices(this.#released(learner, syncing), (pass) => pass(), {
      now,
      runLater,
      done: () => {
        syncing.isReleasing = false
        if (syncing.syncs === 0 && this.#syncing.get(learner) === syncing) this.#syncing.delete(learner)
      },
    })
  }

  *#released(learner: object, syncing: SyncingLearner): Generator<() => void> {
    const { waiting } = syncing
    while (this.#syncing.get(learner) === syncing && waiting.length > 0) {
      const item = waiting.first!
      const isFunction = typeof item === 'function'
      if (!isFunction && item.type !== OpCode.sync && syncing.syncs > 0) return
      waiting.shift()
      if (isFunction) yield item
      else if (item.type === OpCode.sync) yield () => this.#sync(learner, syncing)
      else yield () => this.#options.process(learner, item)
    }
  }
}

/** Whether what arrives has to wait: what arrived before it is not passed on. */
const hasWaiting = ({ waiting, isReleasing }: SyncingLearner): boolean => isReleasing || waiting.length > 0
