import { epochOf } from '@zabra/protocol'
import { invariant } from '@zabra/runtime'
import type { Zxid } from '../../types.ts'
import type { Txn } from './txn.ts'

interface DiskWrite {
  readonly effect: () => void
  readonly done: () => void
}

/** The durable state of a server, and the queue of writes to it. */
export class SimulatedDisk {
  acceptedEpoch = 0
  currentEpoch = 0
  isTrusted = true
  /** All transactions, in the snapshot or in the log. */
  history: Txn[] = []
  /** Transactions up to this zxid are in the snapshot only. */
  base: Zxid = 0
  #writes: DiskWrite[] = []
  readonly #schedule: (run: () => void) => void

  /** `schedule` runs a function after the duration of a write. */
  constructor(schedule: (run: () => void) => void) {
    this.#schedule = schedule
  }

  get lastZxid(): Zxid {
    if (!this.isTrusted) return -1
    return this.history.at(-1)?.zxid ?? this.base
  }

  /** Number of queued writes. */
  get pending(): number {
    return this.#writes.length
  }

  /** Queues a write. Calls `effect` when it reaches the disk, then `done`. */
  enqueue(effect: () => void, done: () => void = () => {}): void {
    this.#writes.push({ effect, done })
    if (this.#writes.length === 1) this.#schedule(() => this.#writeNext())
  }

  append(txn: Txn): void {
    invariant(txn.zxid > this.lastZxid, `appends ${txn.zxid} after ${this.lastZxid}`)
    this.history.push(txn)
    invariant(
      epochOf(txn.zxid) <= this.acceptedEpoch,
      '2: logs a transaction of an epoch that it has not accepted',
    )
  }

  setEpoch(what: 'acceptedEpoch' | 'currentEpoch', epoch: number): void {
    invariant(epoch >= this[what], `2: ${what} decreases from ${this[what]} to ${epoch}`)
    this[what] = epoch
    invariant(this.currentEpoch <= this.acceptedEpoch, '2: is in an epoch that it has not accepted')
  }

  truncate(to: Zxid): void {
    if (this.base > to) return
    while (this.history.length > 0 && this.history.at(-1)!.zxid > to) this.history.pop()
  }

  /** The process crashes: queued writes are lost. */
  crash(): void {
    this.#writes = []
  }

  /** A role ends: all queued writes reach the disk, and none of the role after them. */
  drain(): void {
    const writes = this.#writes
    this.#writes = []
    for (const { effect } of writes) effect()
  }

  #writeNext(): void {
    const write = this.#writes[0]
    if (write === undefined) return
    write.effect()
    // The effect may have ended the role.
    if (this.#writes[0] !== write) return
    this.#writes.shift()
    if (this.#writes.length > 0) this.#schedule(() => this.#writeNext())
    write.done()
  }
}
