import { OpCode } from '@zabra/protocol'
import type { ForwardedRequest } from './leader-types.ts'

export interface LearnerRequestHandlers {
  /** Does the sync of a learner and calls back when it is over. */
  sync(learner: object, done: () => void): void
  process(learner: object, request: ForwardedRequest): void
}

interface Gate {
  /** Syncs that are on their way. */
  syncs: number
  /** What came behind them and changes something. */
  waiting: (ForwardedRequest | (() => void))[]
}

/**
 * Lets the requests of each learner through in their order, with one pause: what comes behind a sync waits until the sync
 * is over. A learner matches answers with its oldest request, the syncs among them; a commit that overtakes the answer to an
 * older sync would never be matched by a learner that runs Apache ZooKeeper, and all its clients would hang.
 */
export class LearnerRequestOrder {
  readonly #events: LearnerRequestHandlers
  readonly #gates = new Map<object, Gate>()

  constructor(events: LearnerRequestHandlers) {
    this.#events = events
  }

  submit(learner: object, request: ForwardedRequest): void {
    const gate = this.#gates.get(learner)
    if (gate !== undefined && (gate.waiting.length > 0 || request.type !== OpCode.sync))
      gate.waiting.push(request)
    else if (request.type === OpCode.sync) this.#sync(learner)
    else this.#events.process(learner, request)
  }

  /** Does something behind all that has come from a learner before and still waits. */
  runInOrder(learner: object, action: () => void): void {
    const gate = this.#gates.get(learner)
    if (gate === undefined || gate.waiting.length === 0) action()
    else gate.waiting.push(action)
  }

  remove(learner: object): void {
    this.#gates.delete(learner)
  }

  clear(): void {
    this.#gates.clear()
  }

  #sync(learner: object): void {
    let gate = this.#gates.get(learner)
    if (gate === undefined) this.#gates.set(learner, (gate = { syncs: 0, waiting: [] }))
    gate.syncs++
    const own = gate
    this.#events.sync(learner, () => {
      own.syncs--
      if (own.syncs === 0 && this.#gates.get(learner) === own) this.#open(learner, own.waiting)
    })
  }

  #open(learner: object, waiting: Gate['waiting']): void {
    this.#gates.delete(learner)
    for (const one of waiting)
      if (typeof one === 'function') this.runInOrder(learner, one)
      else this.submit(learner, one)
  }
}
