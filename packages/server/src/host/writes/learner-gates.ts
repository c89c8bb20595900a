import { OpCode } from '@zabra/protocol'
import type { LearnerRequest } from './leader-contract.ts'

export interface GateEvents {
  /** Does the sync of a learner and calls back when it is over. */
  sync(learner: object, done: () => void): void
  take(learner: object, request: LearnerRequest): void
}

interface Gate {
  /** Syncs that are on their way. */
  syncs: number
  /** What came behind them and changes something. */
  waiting: (LearnerRequest | (() => void))[]
}

/**
 * Lets the requests of each learner through in their order, with one pause: what comes behind a sync waits until the sync
 * is over. A learner matches answers with its oldest request, the syncs among them; a commit that overtakes the answer to an
 * older sync would never be matched by a learner that runs Apache ZooKeeper, and all its clients would hang.
 */
export class LearnerGates {
  readonly #events: GateEvents
  readonly #gates = new Map<object, Gate>()

  constructor(events: GateEvents) {
    this.#events = events
  }

  push(learner: object, request: LearnerRequest): void {
    const gate = this.#gates.get(learner)
    if (gate !== undefined && (gate.waiting.length > 0 || request.type !== OpCode.sync))
      gate.waiting.push(request)
    else if (request.type === OpCode.sync) this.#sync(learner)
    else this.#events.take(learner, request)
  }

  /** Does something behind all that has come from a learner before and still waits. */
  behind(learner: object, action: () => void): void {
    const gate = this.#gates.get(learner)
    if (gate === undefined || gate.waiting.length === 0) action()
    else gate.waiting.push(action)
  }

  forget(learner: object): void {
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
      if (typeof one === 'function') this.behind(learner, one)
      else this.push(learner, one)
  }
}
