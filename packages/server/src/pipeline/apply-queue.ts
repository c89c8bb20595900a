import { formatZxid, OpCode } from '@zabra/protocol'
import { invariant } from '@zabra/runtime'
import type { Preparer } from '../core/prepare/index.ts'
import { RingBuffer } from '../core/ring-buffer.ts'
import { STEP } from '../core/steps.ts'
import {
  applyInSteps,
  appliesInSteps,
  DigestHistory,
  SESSION_USER_XID,
  type PartCallback,
} from '../core/tree/index.ts'
import type { LoggedTxn, SessionId, Txn, Zxid } from '../core/types.ts'
import type { NotifiedWatcher } from '../core/watches/index.ts'
import { isLongTxn, MANY_ANCESTORS, SlicedQueue } from './sliced-queue.ts'
import type { AcceptedWrite, PipelineContext, WriteCallback } from './types.ts'

/**
 * Most transactions that are applied in one turn, and the time limit of a turn. It is checked after every fourth transaction, and
 * after one whose path is long or has many watched ancestors: thousands of them take a millisecond.
 */
const MAX_PER_TURN = 500
const MAX_TURN_MS = 2
const CLOCK_INTERVAL = 4
/** The most syncs that are done in one turn: each has a reply, and may be followed by requests that waited for it. */
const MAX_SYNCS_PER_TURN = 100
/** The most pending changes that are dropped from the pending tree in one step. */
const FORGOTTEN_PER_STEP = STEP * 10

export interface ApplyQueueOptions<L extends NotifiedWatcher> extends Pick<
  PipelineContext<L>,
  'tree' | 'watchNotifier' | 'defer' | 'hasDeferredReads' | 'clock' | 'onSessionUserStored' | 'stages'
> {
  readonly preparer: Preparer
  /** The last transaction before the first write. */
  readonly lastZxid: Zxid
  /** Creates or closes the session of a createSession or closeSession transaction. Called before the write's callback. */
  readonly applySession: (id: SessionId, txn: Txn, callback: WriteCallback | undefined) => void
}

/**
 * Holds accepted writes until they are committed, then applies them in order, a large transaction in steps, and calls their
 * callbacks.
 */
export class ApplyQueue<L extends NotifiedWatcher> {
  readonly digests: DigestHistory
  readonly #options: ApplyQueueOptions<L>
  readonly #queue = new RingBuffer<AcceptedWrite | undefined>(undefined)
  /** Writes in the queue that no client of this server sent: those of learners, which limit what they forward, and of the server itself. */
  #foreign = 0
  /** Callbacks that wait until everything up to a zxid is applied. */
  readonly #syncs = new RingBuffer<{ readonly after: Zxid; readonly done: () => void } | undefined>(undefined)
  readonly #applying: SlicedQueue
  /** Whether a later turn continues to apply what is committed. */
  #isDeferred = false
  #committed: Zxid
  /** The last transaction that is applied and whose callback was called. */
  #answered: Zxid
  #hasEnded = false

  constructor(options: ApplyQueueOptions<L>) {
    this.#options = options
    this.digests = new DigestHistory(options.tree)
    this.#committed = this.#answered = options.lastZxid
    this.#applying = new SlicedQueue(options)
  }

  /** Counts the writes of this server's clients that are not applied. */
  get outstanding(): number {
    return this.#queue.length - this.#foreign
  }

  /** Counts all writes that are not applied. */
  get length(): number {
    return this.#queue.length
  }

  get pendingSyncs(): number {
    return this.#syncs.length
  }

  /** Counts the committed transactions that are not applied. */
  get unapplied(): number {
    return this.isBusy ? Math.max(1, this.#committed - this.#answered) : 0
  }

  /** Whether a committed transaction is not applied yet. */
  get isBusy(): boolean {
    return this.#applying.isBusy || this.#isNextCommitted()
  }

  /** Whether there is a write that is not committed. */
  get hasUncommitted(): boolean {
    const { last } = this.#queue
    return last !== undefined && last.logged.header.zxid > this.#committed
  }

  enqueue(write: AcceptedWrite): void {
    if (write.callback === undefined) this.#foreign++
    this.#queue.push(write)
  }

  /** Applies everything up to a zxid: in this turn if there is little to apply, else in several. */
  commit(zxid: Zxid): void {
    if (this.#hasEnded) return
    this.#committed = zxid
    if (!this.#isDeferred) this.#advance()
  }

  /** Commits everything up to a zxid, and removes and returns the writes after it. */
  discardAfter(durable: Zxid): AcceptedWrite[] {
    const committed = Math.max(this.#committed, durable)
    const lost = ([...this.#queue] as AcceptedWrite[]).filter(({ logged }) => logged.header.zxid > committed)
    this.#queue.drop(lost.length)
    for (const { callback } of lost) if (callback === undefined) this.#foreign--
    this.commit(committed)
    return lost
  }

  /** Passes on all waiting callbacks, which wait no more. */
  releaseAll(call: (done: () => void) => void): void {
    while (this.#syncs.length > 0) call(this.#syncs.shift()!.done)
  }

  /** Calls no callback any more. Returns the steps that the transaction which is being applied has left. */
  end(): Generator<void> | undefined {
    this.#hasEnded = true
    this.#queue.clear()
    this.#foreign = 0
    this.#syncs.clear()
    return this.#applying.takeCurrent()
  }

  /** Calls back once everything that is committed now is applied. */
  afterCommitted(done: () => void): void {
    if (this.notifyWhenApplied(this.#committed, done)) done()
  }

  /** Calls back once everything up to a zxid is applied. Returns true, without a callback, if it is already. */
  notifyWhenApplied(after: Zxid, done: () => void): boolean {
    if (this.#applied() >= after) return true
    this.#syncs.push({ after, done })
    return false
  }

  /** Continues in a later turn; after a costly transaction in that of the next iteration of the event loop, not of this one. */
  #advanceLater(isCostly = false): void {
    if (this.#isDeferred) return
    this.#isDeferred = true
    const { defer } = this.#options
    const advance = (): void => {
      this.#isDeferred = false
      this.#advance()
    }
    defer(isCostly ? () => defer(advance) : advance)
  }

  /** Applies committed transactions until one takes several turns, or this turn has done enough. */
  #advance(): void {
    // Syncs and reads behind a large transaction are done before the next transaction begins.
    this.#releaseAppliedSyncs()
    if (this.#isNextCommitted() && this.#options.hasDeferredReads()) return this.#advanceLater(true)
    const { clock, watchNotifier } = this.#options
    const end = clock.monotonic() + MAX_TURN_MS
    let visited = watchNotifier.ancestorsVisited
    let isLong = false
    for (let applied = 0; this.#isNextCommitted() && !this.#applying.isBusy; applied++) {
      const isCostly = isLong || watchNotifier.ancestorsVisited - visited >= MANY_ANCESTORS
      const checksClock = isCostly || applied % CLOCK_INTERVAL === CLOCK_INTERVAL - 1
      if (checksClock) visited = watchNotifier.ancestorsVisited
      if (applied === MAX_PER_TURN || (checksClock && clock.monotonic() >= end)) {
        this.#advanceLater(isCostly)
        break
      }
      const write = this.#queue.shift()!
      isLong = isLongTxn(write.logged.txn)
      if (write.callback === undefined) this.#foreign--
      if (appliesInSteps(this.#options.tree, write.logged.txn, watchNotifier))
        this.#applying.run(this.#applyInSteps(write))
      else this.#apply(write)
    }
    if (!this.#isDeferred) this.#releaseAppliedSyncs()
  }

  /** Releases syncs only while the tree is consistent: their callbacks answer reads. */
  #releaseAppliedSyncs(): void {
    if (this.#syncs.length === 0 || this.#applying.isBusy) return
    const { clock } = this.#options
    const end = clock.monotonic() + MAX_TURN_MS
    const zxid = this.#applied()
    for (let left = MAX_SYNCS_PER_TURN; this.#hasSyncUpTo(zxid); left--) {
      if (left === 0 || clock.monotonic() >= end) return this.#advanceLater()
      this.#syncs.shift()!.done()
    }
  }

  #isNextCommitted(): boolean {
    const { first } = this.#queue
    return first !== undefined && first.logged.header.zxid <= this.#committed
  }

  /** The zxid up to which every committed transaction is applied. */
  #applied(): Zxid {
    return this.#applying.isBusy || this.#isNextCommitted() ? this.#answered : this.#committed
  }

  #apply(write: AcceptedWrite): void {
    const { tree, watchNotifier, preparer } = this.#options
    const { header, txn } = write.logged
    watchNotifier.zxid = header.zxid
    const err = tree.apply(header, txn, watchNotifier, undefined, write.hint)
    preparer.forgetApplied(header.zxid)
    this.#finish(write, err)
  }

  *#applyInSteps(write: AcceptedWrite): Generator<void> {
    const { tree, watchNotifier, preparer } = this.#options
    const { header, txn } = write.logged
    const steps = applyInSteps(tree, header, txn, watchNotifier, partCallback(write))
    let err: number | undefined
    let hasYielded = false
    while (err === undefined) {
      // Between two steps, notifications of other events may have changed it.
      watchNotifier.zxid = header.zxid
      const { done, value } = steps.next()
      if (done === true) err = value
      else {
        hasYielded = true
        yield
      }
    }
    while (!preparer.forgetApplied(header.zxid, FORGOTTEN_PER_STEP)) {
      hasYielded = true
      yield
    }
    this.#finish(write, err)
    if (hasYielded) this.#advanceLater()
  }

  #finish(write: AcceptedWrite, err: number): void {
    const { tree, applySession, onSessionUserStored, stages, clock } = this.#options
    const { header, txn, digest } = write.logged
    if (txn.type === OpCode.createSession || txn.type === OpCode.closeSession)
      applySession(header.sessionId, txn, write.callback)
    // The next role begins with this tree, and with its sessions.
    if (this.#hasEnded) return
    if (header.cxid === SESSION_USER_XID) onSessionUserStored(header.sessionId)
    this.digests.record(header.zxid)
    // The message is built only on failure.
    if (digest !== undefined && !tree.matches(digest)) failDigest(write.logged)
    if (write.callback !== undefined) write.callback.onApplied(write, err)
    else if (stages.isSampled(header.zxid)) stages.appliedOfOther(header.zxid, clock.monotonic())
    this.#answered = header.zxid
  }

  #hasSyncUpTo(zxid: Zxid): boolean {
    const { first } = this.#syncs
    return first !== undefined && first.after <= zxid
  }
}

function failDigest({ header, txn }: LoggedTxn): void {
  invariant(false, 'The tree after a transaction has the digest that was computed when it was prepared.', {
    zxid: formatZxid(header.zxid),
    type: txn.type,
    path: 'path' in txn ? txn.path : undefined,
  })
}

const partCallback = ({ logged, callback }: AcceptedWrite): PartCallback | undefined =>
  logged.txn.type === OpCode.multi && callback !== undefined
    ? (part, isApplied) => callback.onPart(part, isApplied)
    : undefined
