import { epochOf } from '@zabra/protocol'
import { invariant } from '@zabra/runtime'
import type { Zxid } from '../../types.ts'

/** A transaction of the simulation: what it is, and a number that tells two with the same zxid apart. */
export interface Txn {
  readonly zxid: Zxid
  readonly id: number
  readonly payload: Uint8Array
}

interface Op {
  readonly effect: () => void
  readonly done: () => void
}

/** What survives a crash, and the writes that are on their way to it, one after the other. */
export class SimulatedDisk {
  acceptedEpoch = 0
  currentEpoch = 0
  isTrusted = true
  /** All transactions, in the snapshot or in the log. */
  history: Txn[] = []
  /** Up to here history is in the snapshot alone. */
  base: Zxid = 0
  #ops: Op[] = []
  readonly #later: (run: () => void) => void

  constructor(later: (run: () => void) => void) {
    this.#later = later
  }

  get lastZxid(): Zxid {
    if (!this.isTrusted) return -1
    return this.history.at(-1)?.zxid ?? this.base
  }

  get pending(): number {
    return this.#ops.length
  }

  enqueue(effect: () => void, done: () => void = () => {}): void {
    this.#ops.push({ effect, done })
    if (this.#ops.length === 1) this.#later(() => this.#next())
  }

  append(txn: Txn): void {
    invariant(txn.zxid > this.lastZxid, `appends ${txn.zxid} after ${this.lastZxid}`)
    this.history.push(txn)
    invariant(
      epochOf(txn.zxid) <= this.acceptedEpoch,
      'logs a transaction of an epoch that it has not accepted',
    )
  }

  setEpoch(what: 'acceptedEpoch' | 'currentEpoch', epoch: number): void {
    invariant(epoch >= this[what], `${what} goes back from ${this[what]} to ${epoch}`)
    this[what] = epoch
    invariant(this.currentEpoch <= this.acceptedEpoch, 'is in an epoch that it has not accepted')
  }

  truncate(to: Zxid): void {
    if (this.base > to) return
    while (this.history.length > 0 && this.history.at(-1)!.zxid > to) this.history.pop()
  }

  contains(zxid: Zxid, id: number): boolean {
    return this.history.some((txn) => txn.zxid === zxid && txn.id === id)
  }

  /** The process dies: writes that have not come here are lost. */
  crash(): void {
    this.#ops = []
  }

  /** A role ends: everything that was given to the log gets there, and nothing after it. */
  drain(): void {
    const ops = this.#ops
    this.#ops = []
    for (const { effect } of ops) effect()
  }

  #next(): void {
    const op = this.#ops[0]
    if (op === undefined) return
    op.effect()
    // What the effect led to may have ended this role.
    if (this.#ops[0] !== op) return
    this.#ops.shift()
    if (this.#ops.length > 0) this.#later(() => this.#next())
    op.done()
  }
}
