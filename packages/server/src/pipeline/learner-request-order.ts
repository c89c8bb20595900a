import { OpCode } from '@zabra/protocol'
import { inSlices, type SliceTurns } from '../core/in-slices.ts'
import { RingBuffer } from '../core/ring-buffer.ts'
import type { ForwardedRequest } from './types.ts'

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
    if (isSync && own.waiting.length === 0) this.#sync(learner, own)
    else own.waiting.push(request)
  }

  /** Runs an action after all waiting requests of a learner. */
  runInOrder(learner: object, action: () => void): void {
    const syncing = this.#syncing.get(learner)
    if (syncing === undefined || syncing.waiting.length === 0) action()
    else syncing.waiting.push(action)
  }

  remove(learner: object): void {
    this.#syncing.delete(learner)
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
      if (typeof item === 'function') yield item
      else if (item.type === OpCode.sync) yield () => this.#sync(learner, syncing)
      else if (syncing.syncs > 0) return
      else yield () => this.#options.process(learner, item)
      waiting.shift()
    }
  }
}
