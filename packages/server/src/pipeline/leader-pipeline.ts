import { ErrorCode, OpCode, Reader } from '@zabra/protocol'
import { sessionUserPath } from '../core/tree/index.ts'
import type { SessionId, Zxid } from '../core/types.ts'
import type { NotifiedWatcher } from '../core/watches/index.ts'
import type { ForwardedRequest } from '../core/zab/index.ts'
import { ApplyQueue } from './apply-queue.ts'
import { LeaderSessions } from './leader-sessions.ts'
import { LearnerRequestOrder } from './learner-request-order.ts'
import { isLargeRequest, LEADER_OWNER, Proposer } from './proposer.ts'
import { SlicedQueue, type SlicedTask } from './sliced-queue.ts'
import type {
  AcceptedWrite,
  ClientWrite,
  LeaderPipelineOptions,
  RecordedDigests,
  RequestPipeline,
  RevalidationCallback,
  WriteCallback,
} from './types.ts'

/** Owners of ephemeral nodes that a new leader looks at in one turn. */
const OWNERS_AT_ONCE = 1000

/** A request of a client of this server that may wait until another one is prepared. */
interface DeferredRequest extends Pick<AcceptedWrite, 'xid' | 'type' | 'callback'> {
  /** The session that the request closes. */
  readonly closes?: SessionId
}

/**
 * Executes every write on the leader: prepare, log, propose, wait until it is committed, apply, notify watchers,
 * reply. A standalone server is a quorum of one. The rules that only this file and `Proposer` enforce:
 *
 * 1. A zxid is one above the last one appended; no other code assigns zxids.
 * 2. A prepared transaction is appended and proposed in the same turn, so that the log, the proposals and the pending tree have
 *    one order.
 * 3. A write is applied, and its client gets a reply, only after the write is committed.
 * 4. Transactions are applied in the order of their zxids.
 * 5. Watchers are notified while a transaction is applied, its client gets the reply after that.
 * 6. When the disk of a standalone server is full, transactions that were not durable are discarded: their clients get an error,
 *    and the pending tree is reset.
 * 7. Every request of a learner is answered by a transaction, by an error transaction if it cannot be decoded.
 * 8. A large request is prepared, and a large transaction applied, in steps. Requests that arrive meanwhile are queued, so that
 *    requests are prepared in the order of their arrival. Reads wait until the tree is consistent.
 * 9. Requests of a learner behind its sync wait until the sync is done, because a learner expects answers in order.
 */
export class LeaderPipeline<L extends NotifiedWatcher> implements RequestPipeline {
  readonly proposer: Proposer<L>
  readonly #options: LeaderPipelineOptions<L>
  readonly #learnerOrder: LearnerRequestOrder
  readonly #sessions: LeaderSessions<L>
  readonly #applyQueue: ApplyQueue<L>
  /** The request that is being prepared in steps, and those behind it. */
  readonly #preparing: SlicedQueue
  /** How many of the waiting requests have a client of this server. */
  #deferred = 0
  /** Syncs, and refusals of sessions, that wait for a confirmation of leadership. */
  #confirming = 0
  /** Those that are confirmed: one confirmation may be that of very many. */
  readonly #confirmed: SlicedQueue
  /** What a full disk has discarded, until it is answered: there may be very many requests. No write is accepted meanwhile. */
  readonly #discarded: SlicedQueue
  /** Answers to requests that were dropped before `discardAfter`, which come behind those that it discards. */
  readonly #dropped: (() => void)[] = []
  #hasEnded = false
  /** Learners whose connections are closed, while actions of theirs may still wait. */
  readonly #gone = new WeakSet<object>()

  constructor(options: LeaderPipelineOptions<L>) {
    this.#options = options
    this.#sessions = new LeaderSessions(options)
    this.proposer = new Proposer(options, this.#sessions, (write) => this.#applyQueue.enqueue(write))
    this.#applyQueue = new ApplyQueue({
      ...options,
      preparer: this.proposer.preparer,
      applySession: (id, txn, callback) => this.#sessions.apply(id, txn, callback),
    })
    this.#preparing = new SlicedQueue(options)
    // What is durable is applied, and answered, before.
    this.#discarded = new SlicedQueue({ ...options, isHeldUp: () => this.#applyQueue.isBusy })
    // A full disk also confirms the syncs behind what it discards, whose replies come first.
    const isHeldUp = (): boolean => this.#discarded.hasTasks
    this.#confirmed = new SlicedQueue({ ...options, isHeldUp })
    this.#learnerOrder = new LearnerRequestOrder({
      now: () => options.clock.monotonic(),
      runLater: options.defer,
      sync: (learner, done) =>
        this.#inOrder(undefined, () =>
          this.#confirmLeadership(() => (options.quorum.sendSync(learner), done())),
        ),
      process: (learner, request) => this.#preparing.add(new ForwardedTask(this, learner, request)),
    })
  }

  get outstanding(): number {
    return this.#applyQueue.outstanding + this.#deferred
  }

  get transactions(): number {
    return this.#preparing.length + this.#applyQueue.length
  }

  get unprepared(): number {
    return this.#preparing.length
  }

  get unapplied(): number {
    return this.#applyQueue.unapplied
  }

  get queues(): Readonly<Record<string, number>> {
    return {
      prepare: this.unprepared,
      commit: this.#applyQueue.length,
      apply: this.unapplied,
      sync: this.pendingSyncs,
    }
  }

  get isWritable(): boolean {
    return this.#options.log.state === 'open' && !this.#discarded.hasTasks
  }

  /** Whether `discardAfter` is about to discard writes. A log takes back what is not durable over turns. */
  get #isDiscardDue(): boolean {
    return this.#options.log.state !== 'open' && this.#applyQueue.hasUncommitted
  }

  get lastVisibleZxid(): Zxid {
    // Clients of other members see the first zxid of the epoch, which may be above all transactions.
    const { tree, lastZxid } = this.#options
    return Math.max(tree.lastZxid, lastZxid)
  }

  /** The number of pending syncs, those of learners included, and of refusals of sessions, which wait for the same. */
  get pendingSyncs(): number {
    return this.#applyQueue.pendingSyncs + this.#confirming
  }

  get digests(): RecordedDigests {
    return this.#applyQueue.digests.entries
  }

  // Clients of this server

  write(write: ClientWrite, body: Reader, callback: WriteCallback): number {
    if (!this.isWritable) return ErrorCode.SYSTEMERROR
    if (!this.#preparing.isBusy && !isLargeRequest(write.type, body))
      return this.proposer.submit(write, body, callback)
    // The connection reuses the bytes after this call.
    const ownBody = new Reader(body.raw(body.remaining).slice(), 0, undefined, body.maxElement)
    this.#inOrder({ ...write, callback }, () => this.proposer.submitDeferred(write, ownBody, callback))
    return ErrorCode.OK
  }

  createSession(id: SessionId, timeout: number, callback: WriteCallback): boolean {
    if (!this.isWritable) return false
    this.#inOrder({ xid: 0, type: OpCode.createSession, callback }, () =>
      this.proposer.createSession(id, 0, timeout, LEADER_OWNER, callback),
    )
    return true
  }

  closeSession(id: SessionId, xid: number, callback: WriteCallback | undefined): boolean {
    if (!this.isWritable) return false
    this.#inOrder({ xid, type: OpCode.closeSession, callback, closes: id }, () =>
      this.proposer.closeSession(id, xid, callback),
    )
    return true
  }

  deleteContainer(path: string, isDue: () => boolean): boolean {
    if (!this.isWritable) return false
    this.#inOrder(undefined, () => this.proposer.deleteContainer(path, isDue))
    return true
  }

  sync(_write: ClientWrite, callback: WriteCallback): number | undefined {
    if (this.#preparing.isBusy) {
      const confirm = (): undefined => {
        this.#confirmLeadership(() => callback.onSynced())
      }
      // A sync needs no space on the disk, so a full disk that discards the requests before it does not discard the sync.
      this.#preparing.add({ begin: confirm, onDropped: () => this.#answerDiscarded(confirm) })
      return undefined
    }
    let isDone = false
    let hasReturned = false
    this.#confirmLeadership(() => (hasReturned ? callback.onSynced() : (isDone = true)))
    hasReturned = true
    return isDone ? ErrorCode.OK : undefined
  }

  revalidate(id: SessionId, timeout: number, callback: RevalidationCallback): void {
    this.#revalidate(LEADER_OWNER, id, timeout, (valid) => callback.onRevalidated(valid))
  }

  canAnswerPing(): boolean {
    return true
  }

  /** Closes, over turns of the event loop, the unknown sessions that own ephemeral nodes, which otherwise would never be removed. */
  closeOrphanedSessions(): void {
    const { tree, sessions, defer } = this.#options
    const owners = tree.owners.sessions()
    const step = (): void => {
      // A session that ends in steps has nodes until the last one.
      for (let left = tree.isApplying ? 0 : OWNERS_AT_ONCE; left > 0; left--) {
        const { done, value: id } = owners.next()
        if (done === true || this.#hasEnded) return
        if (sessions.get(id) === undefined) this.closeSession(id, 0, undefined)
      }
      defer(step)
    }
    step()
  }

  // Learners

  /** Submits a request that a learner forwards. `learner` identifies the connection of the learner. Keeps a reference to the body. */
  submitForwarded(learner: object, request: ForwardedRequest): void {
    if (!this.#hasEnded) this.#learnerOrder.submit(learner, request)
  }

  /**
   * Answers whether a session is alive whose client has connected to a learner (REVALIDATE). If so, its requests must come through
   * that learner from then on. Waits for the requests that the learner has forwarded before. Otherwise a request of a session that
   * moved away from the learner and returned could be executed after the requests that the session sent elsewhere in between, because
   * it may still wait behind a sync.
   */
  revalidateForLearner(
    learner: object,
    id: SessionId,
    timeout: number,
    answer: (valid: boolean) => void,
  ): void {
    this.#learnerOrder.runInOrder(learner, () => this.#revalidate(learner, id, timeout, answer))
  }

  /**
   * Calls back when all requests and revalidations that these learners have sent until now are finished, or dropped with a learner that is
   * removed; never when this role ends before.
   */
  afterForwarded(learners: readonly object[], done: () => void): void {
    let left = learners.length
    const passedOn = (): void => {
      if (--left === 0) this.#inOrder(undefined, () => this.#confirmLeadership(done))
    }
    for (const learner of learners) this.#learnerOrder.runInOrder(learner, passedOn)
  }

  /**
   * Removes a learner whose connection is closed. Its sessions live until they expire, unless they move. Returns its requests that waited
   * behind a sync, which are dropped.
   */
  removeLearner(learner: object): readonly ForwardedRequest[] {
    this.#gone.add(learner)
    return this.#learnerOrder.remove(learner)
  }

  /** Moves the deadline of a session that a learner reports in its answer to a PING. Does nothing for an unknown or closing one. */
  touchSession(id: SessionId, timeout: number): void {
    this.#sessions.touch(id, timeout)
  }

  // Outcome

  /** Applies everything up to a zxid: it is durable on a quorum. */
  commit(zxid: Zxid): void {
    const { stages, clock } = this.#options
    stages.committed(zxid, clock.monotonic())
    this.#applyQueue.commit(zxid)
  }

  /**
   * Discards everything above this zxid, which was lost before it was durable, once the rest is applied. Accepts no write until all is
   * answered. Only a quorum of one can know what was lost.
   */
  discardAfter(durable: Zxid): void {
    const lost = this.#applyQueue.discardAfter(durable)
    const dropped = this.#dropped.splice(0)
    this.proposer.lastZxid = durable
    this.#answerDiscarded(() => {
      this.proposer.preparer.reset()
      this.#sessions.discardCreating()
    })
    for (const write of lost)
      this.#answerDiscarded(() => {
        const { txn, header } = write.logged
        if (txn.type === OpCode.closeSession) this.#sessions.reopen(header.sessionId)
        write.callback?.onLost(write)
      })
    for (const answer of dropped) this.#answerDiscarded(answer)
    this.#dropWaiting()
    this.#applyQueue.releaseAll((done) => this.#answerDiscarded(done))
  }

  end(): Generator<void> | undefined {
    this.#hasEnded = true
    this.#learnerOrder.clear()
    const steps = this.#applyQueue.end()
    this.#confirmed.abort()
    this.#discarded.abort()
    this.#dropWaiting()
    this.proposer.preparer.reset()
    return steps
  }

  // Order

  /** Runs an action that proposes a transaction: now, or once the request that is being prepared in steps is done. */
  #inOrder(request: DeferredRequest | undefined, action: () => Generator<void> | void): void {
    const hasClient = request?.callback !== undefined
    if (hasClient) this.#deferred++
    this.#preparing.add({
      begin: () => {
        if (hasClient) this.#deferred--
        // The disk may have become full while the request waited.
        if (!this.isWritable) return this.#drop(request)
        return action() ?? undefined
      },
      onDropped: () => this.#drop(request),
    })
  }

  #dropWaiting(): void {
    this.#deferred = 0
    this.#preparing.abort()
  }

  #drop(request: DeferredRequest | undefined): undefined {
    if (this.#hasEnded || request === undefined) return
    this.#answerDiscarded(() => {
      if (request.closes !== undefined) this.#sessions.reopen(request.closes)
      request.callback?.onLost(request)
    })
  }

  /** Answers a request that a full disk has discarded, after those before it. */
  #answerDiscarded(answer: () => void): void {
    // In an ensemble, others may commit meanwhile what those before it wait for; the role ends without an answer.
    if (this.#isDiscardDue || this.#dropped.length > 0) this.#dropped.push(answer)
    else if (!this.#hasEnded) this.#discarded.runInOrder(() => (this.#hasEnded ? undefined : answer()))
  }

  /**
   * Answers whether a session is alive, with `owner` as its owner from now on. Says that it is not only when a quorum has
   * confirmed that this server leads: a leader that has been replaced does not know the sessions of the next one. A session whose
   * user is not applied yet waits for that, so that every server knows the user before the answer.
   */
  #revalidate(owner: object, id: SessionId, timeout: number, answer: (valid: boolean) => void): void {
    const decide = (): void => this.#decideRevalidation(owner, id, timeout, answer)
    const decideBehindDiscarded = (): void => this.#answerDiscarded(decide)
    // The creation of the session, or its user, may be among the requests that wait, or that are discarded.
    if (this.#preparing.isBusy)
      this.#preparing.add({ begin: () => (decide(), undefined), onDropped: decideBehindDiscarded })
    else if (this.#discarded.hasTasks) decideBehindDiscarded()
    else decide()
  }

  #decideRevalidation(
    owner: object,
    id: SessionId,
    timeout: number,
    answer: (valid: boolean) => void,
    isConfirmed = false,
  ): void {
    // The session may have been created meanwhile through another server, which owns it then.
    if (this.#hasEnded || this.#gone.has(owner)) return
    const { preparer, lastZxid } = this.proposer
    if (this.#sessions.isCreating(id) || preparer.hasPendingChange(sessionUserPath(id))) {
      const decide = (): void => this.#decideRevalidation(owner, id, timeout, answer, isConfirmed)
      return void this.#applyQueue.notifyWhenApplied(lastZxid, decide)
    }
    const isValid = this.#sessions.revalidate(id, timeout, owner)
    if (isValid || isConfirmed) return answer(isValid)
    // The session may be created meanwhile.
    this.#confirmLeadership(() => this.#decideRevalidation(owner, id, timeout, answer, true))
  }

  /** Calls back when a quorum has confirmed that this server leads and everything committed by then is applied. */
  #confirmLeadership(done: () => void): void {
    this.#confirming++
    this.#options.quorum.confirmLeadership(() =>
      this.#confirmed.runInOrder(() => {
        if (this.#hasEnded || this.proposer.hasDropped) return
        this.#confirming--
        // A request may be discarded that was prepared when the disk was full already: no quorum waits for it.
        if (this.#isDiscardDue) this.#applyQueue.notifyWhenApplied(this.proposer.lastZxid, done)
        else this.#applyQueue.afterCommitted(done)
      }),
    )
  }
}

/** Prepares a request of a learner. One object for each request: closures would be three. */
class ForwardedTask<L extends NotifiedWatcher> implements SlicedTask {
  readonly #pipeline: LeaderPipeline<L>
  readonly #learner: object
  readonly #request: ForwardedRequest

  constructor(pipeline: LeaderPipeline<L>, learner: object, request: ForwardedRequest) {
    this.#pipeline = pipeline
    this.#learner = learner
    this.#request = request
  }

  begin(): Generator<void> | undefined {
    const { isWritable, proposer } = this.#pipeline
    // The disk may have become full while the request waited.
    return isWritable ? (proposer.processForwarded(this.#learner, this.#request) ?? undefined) : undefined
  }
}
