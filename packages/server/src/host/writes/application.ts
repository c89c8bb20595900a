import { formatZxid, OpCode } from '@zabra/protocol'
import { invariant } from '@zabra/runtime'
import { Fifo } from '../../core/fifo.ts'
import type { Preparer } from '../../core/prepare/index.ts'
import { applyInSteps, isLarge, STEP, type PartDone } from '../../core/tree/index.ts'
import type { LoggedTxn, SessionId, Txn, Zxid } from '../../core/types.ts'
import type { Listener } from '../../core/watches/index.ts'
import type { Entry, Requester, WritesKit } from './contract.ts'
import { Digests } from './digests.ts'
import { Stepper } from './stepper.ts'

/** Transactions that are applied in one turn, and for how long, in milliseconds, looked at once in so many. */
const APPLIED_IN_A_TURN = 500
const APPLYING_MS = 3
const LOOK = 16

export interface ApplicationParts<L extends Listener> extends Pick<
  WritesKit<L>,
  'tree' | 'firing' | 'later' | 'clock'
> {
  readonly preparer: Preparer
  /** Whether entries without a requester are somebody else's, who bounds them. */
  readonly hasQuorum: boolean
  /** The last transaction before the first entry. */
  readonly lastZxid: Zxid
  /** What a transaction is to the sessions. Called before its requester is told. */
  readonly sessions: (id: SessionId, txn: Txn, requester: Requester | undefined) => void
}

/**
 * What is accepted and not yet applied: it is applied in order once it is committed, a large transaction in steps, and then told
 * to who waits for it.
 */
export class Application<L extends Listener> {
  readonly #parts: ApplicationParts<L>
  readonly digests: Digests
  readonly #queue = new Fifo<Entry | undefined>(undefined)
  /** Those in the queue that nobody here waits for, in an ensemble: learners bound what they send. */
  #foreign = 0
  /** Who waits until all up to a zxid is applied. */
  #syncs: { readonly after: Zxid; readonly done: () => void }[] = []
  readonly #applying: Stepper
  /** Whether what is committed is gone on with in a later turn. */
  #isLater = false
  #committed: Zxid
  /** The last transaction whose requester was told. */
  #answered: Zxid
  #ended = false

  constructor(parts: ApplicationParts<L>) {
    this.#parts = parts
    this.digests = new Digests(parts.tree)
    this.#committed = this.#answered = parts.lastZxid
    this.#applying = new Stepper(parts)
  }

  get outstanding(): number {
    return this.#queue.length - this.#foreign
  }

  get waiting(): number {
    return this.#syncs.length
  }

  /** Whether something that is committed is still to be applied. */
  get busy(): boolean {
    return this.#applying.busy || this.#isNextCommitted
  }

  push(entry: Entry): void {
    if (entry.requester === undefined && this.#parts.hasQuorum) this.#foreign++
    this.#queue.push(entry)
  }

  /** Everything up to a zxid is committed. */
  commit(zxid: Zxid): void {
    if (this.#ended) return
    this.#committed = zxid
    if (!this.#isLater) this.#advance()
  }

  /** Applies in this turn all that is committed. */
  finish(): void {
    while (this.busy) {
      this.#applying.finish()
      this.#advance()
    }
  }

  /** What is not committed never happens: gives it back. */
  lose(durable: Zxid): Entry[] {
    this.#committed = Math.max(this.#committed, durable)
    this.finish()
    const lost = [...this.#queue] as Entry[]
    this.#queue.clear()
    return lost
  }

  /** Tells all who wait, since nothing comes any more. */
  release(): void {
    this.#releaseSyncs(Infinity)
  }

  /** Nobody is told any more, but the tree is left as it is after a transaction, not within one. */
  end(): void {
    this.#ended = true
    this.#queue.clear()
    this.#foreign = 0
    this.#syncs = []
    this.#applying.finishCurrent()
  }

  /** Has somebody told, in a later turn, once all up to a zxid is applied. */
  wait(after: Zxid, done: () => void): void {
    this.#syncs.push({ after, done })
  }

  /** Calls back once all that is committed now is applied. */
  whenApplied(done: () => void): void {
    if (this.tell(this.#committed, done)) done()
  }

  /** Has somebody told once all up to a zxid is applied; true when it is so already. */
  tell(after: Zxid, done: () => void): boolean {
    if (this.#applied >= after) return true
    this.#syncs.push({ after, done })
    return false
  }

  #advanceLater(): void {
    if (this.#isLater) return
    this.#isLater = true
    this.#parts.later(() => {
      this.#isLater = false
      this.#advance()
    })
  }

  /** Applies what is committed, up to a transaction that takes several turns or to as much as one turn may hold. */
  #advance(): void {
    // Who waited while a large one was applied, before the next one is begun.
    this.#tell()
    const { clock } = this.#parts
    const end = clock.monotonic() + APPLYING_MS
    for (let applied = 0; this.#isNextCommitted && !this.#applying.busy; applied++) {
      if (applied === APPLIED_IN_A_TURN || (applied % LOOK === LOOK - 1 && clock.monotonic() >= end)) {
        this.#advanceLater()
        break
      }
      const entry = this.#queue.shift()!
      if (entry.requester === undefined && this.#parts.hasQuorum) this.#foreign--
      if (isLarge(this.#parts.tree, entry.logged.header, entry.logged.txn))
        this.#applying.add({ begin: () => this.#applyInSteps(entry) })
      else this.#apply(entry)
    }
    this.#tell()
  }

  /** Tells who waits for what is applied, unless the tree is halfway: they read it, and have waiting reads answered. */
  #tell(): void {
    if (this.#syncs.length > 0 && !this.#applying.busy) this.#releaseSyncs(this.#applied)
  }

  get #isNextCommitted(): boolean {
    const { first } = this.#queue
    return first !== undefined && first.logged.header.zxid <= this.#committed
  }

  /** Up to where everything that is committed is applied. */
  get #applied(): Zxid {
    return this.#applying.busy || this.#isNextCommitted ? this.#answered : this.#committed
  }

  #apply(entry: Entry): void {
    const { tree, firing } = this.#parts
    const { header, txn } = entry.logged
    firing.zxid = header.zxid
    const err = tree.apply(header, txn, firing, partsOf(entry), entry.hint)
    this.#parts.preparer.committed(header.zxid)
    this.#isApplied(entry, err)
  }

  *#applyInSteps(entry: Entry): Generator<void> {
    const { tree, firing } = this.#parts
    const { header, txn } = entry.logged
    const steps = applyInSteps(tree, header, txn, firing, partsOf(entry))
    let err: number | undefined
    while (err === undefined) {
      // Between two steps others may have had events.
      firing.zxid = header.zxid
      const { done, value } = steps.next()
      if (done === true) err = value
      else yield
    }
    while (!this.#parts.preparer.committed(header.zxid, STEP * 10)) yield
    if (!this.#ended) this.#isApplied(entry, err)
    this.#advanceLater()
  }

  #isApplied(entry: Entry, err: number): void {
    const { tree } = this.#parts
    const { header, txn, digest } = entry.logged
    this.#parts.sessions(header.sessionId, txn, entry.requester)
    this.digests.applied(header.zxid)
    // What is told of a failure is put together only when there is one.
    if (digest !== undefined && !tree.matches(digest)) strayed(entry.logged)
    entry.requester?.applied(entry, err)
    this.#answered = header.zxid
  }

  #releaseSyncs(zxid: Zxid): void {
    while (this.#syncs.length > 0 && this.#syncs[0]!.after <= zxid) this.#syncs.shift()!.done()
  }
}

function strayed({ header, txn }: LoggedTxn): void {
  invariant(false, 'The tree after a transaction has the digest that was foreseen.', {
    zxid: formatZxid(header.zxid),
    type: txn.type,
    path: 'path' in txn ? txn.path : undefined,
  })
}

/** Who hears of the parts of a multi. */
const partsOf = ({ logged, requester }: Entry): PartDone | undefined =>
  logged.txn.type === OpCode.multi && requester !== undefined
    ? (sub, isApplied) => requester.part(sub, isApplied)
    : undefined
