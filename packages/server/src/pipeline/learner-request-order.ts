import { OpCode } from '@zabra/protocol'
import type { ForwardedRequest } from './types.ts'

export interface LearnerRequestHandlers {
  /** Executes a sync of a learner, and calls back when it is done. */
  sync(learner: object, done: () => void): void
  process(learner: object, request: ForwardedRequest): void
}

/** A learner with syncs in flight. */
interface SyncingLearner {
  syncs: number
  /** Requests and actions that arrived behind the syncs. */
  waiting: (ForwardedRequest | (() => void))[]
}

/**
 * Passes on the requests of each learner in their order; requests behind a sync wait until the sync is done. A learner matches
 * answers with its oldest request, syncs included. If a commit overtook the answer to an older sync, a learner that runs
 * Apache ZooKeeper would never match it, and all its clients would hang.
 */
export class LearnerRequestOrder {
  readonly #handlers: LearnerRequestHandlers
  readonly #syncing = new Map<object, SyncingLearner>()

  constructor(handlers: LearnerRequestHandlers) {
    this.#handlers = handlers
  }

  submit(learner: object, request: ForwardedRequest): void {
    const syncing = this.#syncing.get(learner)
    if (syncing !== undefined && (syncing.waiting.length > 0 || request.type !== OpCode.sync))
      syncing.waiting.push(request)
    else if (request.type === OpCode.sync) this.#sync(learner)
    else this.#handlers.process(learner, request)
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

  #sync(learner: object): void {
    let syncing = this.#syncing.get(learner)
    if (syncing === undefined) this.#syncing.set(learner, (syncing = { syncs: 0, waiting: [] }))
    syncing.syncs++
    const own = syncing
    this.#handlers.sync(learner, () => {
      own.syncs--
      if (own.syncs === 0 && this.#syncing.get(learner) === own) this.#release(learner, own.waiting)
    })
  }

  #release(learner: object, waiting: SyncingLearner['waiting']): void {
    this.#syncing.delete(learner)
    for (const item of waiting)
      if (typeof item === 'function') this.runInOrder(learner, item)
      else this.submit(learner, item)
  }
}
