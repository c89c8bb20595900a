import { formatZxid, OpCode } from '@zabra/protocol'
import { invariant } from '@zabra/runtime'
import { RingBuffer } from '../core/ring-buffer.ts'
import type { Preparer } from '../core/prepare/index.ts'
import { STEP } from '../core/steps.ts'
import { applyInSteps, appliesInSteps, type PartCallback } from '../core/tree/index.ts'
import type { LoggedTxn, SessionId, Txn, Zxid } from '../core/types.ts'
import type { NotifiedWatcher } from '../core/watches/index.ts'
import type { AcceptedWrite, WriteCallback, PipelineContext } from './types.ts'
import { DigestHistory } from './digest-history.ts'
import { SlicedQueue } from './sliced-queue.ts'

/** Transactions that are applied in one turn, and for how long, in milliseconds, looked at once in so many. */
const APPLIED_IN_A_TURN = 500
const APPLYING_MS = 3
const LOOK = 16

export interface ApplyQueueOptions<L extends NotifiedWatcher> extends Pick<
  PipelineContext<L>,
  'tree' | 'watchNotifier' | 'defer' | 'clock'
> {
  readonly preparer: Preparer
  /** The last transaction before the first entry. */
  readonly lastZxid: Zxid
  /** What a transaction is to the sessions. Called before its requester is told. */
  readonly applySession: (id: SessionId, txn: Txn, requester: WriteCallback | undefined) => void
}

/**
 * What is accepted and not yet applied: it is applied in order once it is committed, a large transaction in steps, and then told
 * to who waits for it.
 */
export class ApplyQueue<L extends NotifiedWatcher> {
  readonly #parts: ApplyQueueOptions<L>
  readonly digests: DigestHistory
  readonly #queue = new RingBuffer<AcceptedWrite | undefined>(undefined)
  /** Entries in the queue without a client of this server: learners bound what they forward, and the server what it writes itself. */
  #foreign = 0
  /** Who waits until all up to a zxid is applied. */
  #syncs: { readonly after: Zxid; readonly done: () => void }[] = []
  readonly #applying: SlicedQueue
  /** Whether what is committed is gone on with in a later turn. */
  #isLater = false
  #committed: Zxid
  /** The last transaction whose requester was told. */
  #answered: Zxid
  #ended = false

  constructor(parts: ApplyQueueOptions<L>) {
    this.#parts = parts
    this.digests = new DigestHistory(parts.tree)
    this.#committed = this.#answered = parts.lastZxid
    this.#applying = new SlicedQueue(parts)
  }

  get outstanding(): number {
    return this.#queue.length - this.#foreign
  }

  get pendingSyncs(): number {
    return this.#syncs.length
  }

  /** Whether something that is committed is still to be applied. */
  get isBusy(): boolean {
    return this.#applying.isBusy || this.#isNextCommitted
  }

  enqueue(entry: AcceptedWrite): void {
    if (entry.callback === undefined) this.#foreign++
    this.#queue.push(entry)
  }

  /** Everything up to a zxid is committed. */
  commit(zxid: Zxid): void {
    if (this.#ended) return
    this.#committed = zxid
    if (!this.#isLater) this.#advance()
  }

  /** Applies in this turn all that is committed. */
  drain(): void {
    while (this.isBusy) {
      this.#applying.drain()
      this.#advance()
    }
  }

  /** What is not committed never happens: gives it back. */
  discardAfter(durable: Zxid): AcceptedWrite[] {
    this.#committed = Math.max(this.#committed, durable)
    this.drain()
    const lost = [...this.#queue] as AcceptedWrite[]
    this.#queue.clear()
    this.#foreign = 0
    return lost
  }

  /** Tells all who wait, since nothing comes any more. */
  releaseAll(): void {
    this.#releaseSyncs(Infinity)
  }

  /** Nobody is told any more, but the tree is left as it is after a transaction, not within one. */
  end(): void {
    this.#ended = true
    this.#queue.clear()
    this.#foreign = 0
    this.#syncs = []
    this.#applying.drainCurrent()
  }

  /** Calls back once all that is committed now is applied. */
  afterCommitted(done: () => void): void {
    if (this.notifyWhenApplied(this.#committed, done)) done()
  }

  /** Has somebody told once all up to a zxid is applied; true when it is so already. */
  notifyWhenApplied(after: Zxid, done: () => void): boolean {
    if (this.#applied >= after) return true
    this.#syncs.push({ after, done })
    return false
  }

  #advanceLater(): void {
    if (this.#isLater) return
    this.#isLater = true
    this.#parts.defer(() => {
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
    for (let applied = 0; this.#isNextCommitted && !this.#applying.isBusy; applied++) {
      if (applied === APPLIED_IN_A_TURN || (applied % LOOK === LOOK - 1 && clock.monotonic() >= end)) {
        this.#advanceLater()
        break
      }
      const entry = this.#queue.shift()!
      if (entry.callback === undefined) this.#foreign--
      if (appliesInSteps(this.#parts.tree, entry.logged.txn)) this.#beginSteps(entry)
      else this.#apply(entry)
    }
    this.#tell()
  }

  /** Tells who waits for what is applied, unless the tree is halfway: they read it, and have waiting reads answered. */
  #tell(): void {
    if (this.#syncs.length > 0 && !this.#applying.isBusy) this.#releaseSyncs(this.#applied)
  }

  get #isNextCommitted(): boolean {
    const { first } = this.#queue
    return first !== undefined && first.logged.header.zxid <= this.#committed
  }

  /** Up to where everything that is committed is applied. */
  get #applied(): Zxid {
    return this.#applying.isBusy || this.#isNextCommitted ? this.#answered : this.#committed
  }

  #apply(entry: AcceptedWrite): void {
    const { tree, watchNotifier: firing } = this.#parts
    const { header, txn } = entry.logged
    firing.zxid = header.zxid
    const err = tree.apply(header, txn, firing, partsOf(entry), entry.hint)
    this.#parts.preparer.forgetApplied(header.zxid)
    this.#isApplied(entry, err)
  }

  /** Applies a small transaction at once. The rest of a large one is applied in later turns, and what follows it after that. */
  #beginSteps(entry: AcceptedWrite): void {
    const steps = this.#applyInSteps(entry)
    if (steps.next().done !== true) this.#applying.add({ begin: () => this.#resume(steps) })
  }

  *#resume(steps: Generator<void>): Generator<void> {
    yield* steps
    this.#advanceLater()
  }

  *#applyInSteps(entry: AcceptedWrite): Generator<void> {
    const { tree, watchNotifier: firing } = this.#parts
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
    while (!this.#parts.preparer.forgetApplied(header.zxid, STEP * 10)) yield
    if (!this.#ended) this.#isApplied(entry, err)
  }

  #isApplied(entry: AcceptedWrite, err: number): void {
    const { tree } = this.#parts
    const { header, txn, digest } = entry.logged
    this.#parts.applySession(header.sessionId, txn, entry.callback)
    this.digests.record(header.zxid)
    // What is told of a failure is put together only when there is one.
    if (digest !== undefined && !tree.matches(digest)) strayed(entry.logged)
    entry.callback?.onApplied(entry, err)
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
const partsOf = ({ logged, callback: requester }: AcceptedWrite): PartCallback | undefined =>
  logged.txn.type === OpCode.multi && requester !== undefined
    ? (sub, isApplied) => requester.onPart(sub, isApplied)
    : undefined
