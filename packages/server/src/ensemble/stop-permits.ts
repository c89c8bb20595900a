import type { Clock } from '@zabra/runtime'
import type { ServerId } from '../core/quorum/index.ts'
import type { Leader, StopPermitAnswer, StopPermitRequest, StopPermitResult } from '../core/zab/index.ts'
import { PendingAnswers } from './pending-answers.ts'

/** Ticks within which the leader has heard a voter that counts. */
const HEARD_TICKS = 2

/** A learner with the permit that it holds. */
interface PermitHolder {
  readonly serverId: ServerId
  readonly isSynced: boolean
  stopsUntil: number
}

/** What a leader needs to grant permits. */
export interface StopPermitsOptions {
  readonly self: ServerId
  readonly leader: Pick<Leader, 'decideStop'>
  readonly clock: Clock
  /** The permit of the leader itself. */
  readonly own: Pick<StopPermit, 'isHeld'>
  readonly learners: () => Iterable<PermitHolder>
}

/**
 * Grants permits to stop at a leader (quorum-protocol 18.7), one request after the other: as many as leave a quorum. A permit belongs to
 * the connection of its holder: a holder that connects again, to this leader or another one, names it before it counts as synced, and
 * the next process of that member has none.
 */
export class StopPermits {
  readonly #options: StopPermitsOptions

  constructor(options: StopPermitsOptions) {
    this.#options = options
  }

  /** Takes the request of a learner. Returns the answer to send, or undefined where none is expected. */
  receive(learner: PermitHolder, { number, forMs }: StopPermitRequest): StopPermitAnswer | undefined {
    const until = this.#options.clock.monotonic() + forMs
    if (number === 0) learner.stopsUntil = until
    if (number === 0) return undefined
    const answer = this.decide(learner.serverId, number)
    learner.stopsUntil = answer.isGranted ? until : -Infinity
    return answer
  }

  /** Decides whether a server may stop now. */
  decide(server: ServerId, number: number): StopPermitAnswer {
    const { self, leader, own } = this.#options
    const stopping = this.#holders()
    if (own.isHeld) stopping.add(self)
    stopping.delete(server)
    const { isAllowed, missing } = leader.decideStop(server, stopping, HEARD_TICKS)
    return { number, isGranted: isAllowed, missing, stopping: [...stopping] }
  }

  /** Whether a learner holds a permit. */
  isHeldBy(server: ServerId): boolean {
    return this.#holders().has(server)
  }

  #holders(): Set<ServerId> {
    const now = this.#options.clock.monotonic()
    const holders = new Set<ServerId>()
    for (const { serverId, isSynced, stopsUntil } of this.#options.learners())
      if (isSynced && stopsUntil > now) holders.add(serverId)
    return holders
  }
}

/** Passes requests to the leader: by a connection, or at the leader itself. */
export interface StopPermitChannel {
  send(request: StopPermitRequest): void
}

/**
 * Holds the permit of this member to stop, over roles and leaders. Its time counts from the request on, so it ends no later than at the
 * leader.
 */
export class StopPermit {
  readonly #clock: Clock
  readonly #pending: PendingAnswers<StopPermitAnswer>
  #until = -Infinity
  #channel: StopPermitChannel | undefined

  /** `timeoutMs`: the time for an answer. */
  constructor(clock: Clock, timeoutMs: number) {
    this.#clock = clock
    this.#pending = new PendingAnswers(clock, timeoutMs, 'answer to a request to stop')
  }

  /** The milliseconds for which the permit is still held; 0 without one. */
  get remainingMs(): number {
    return Math.max(0, Math.floor(this.#until - this.#clock.monotonic()))
  }

  get isHeld(): boolean {
    return this.remainingMs > 0
  }

  /** Asks the leader for a permit to stop within `forMs`. A refusal ends a permit held before. */
  request(forMs: number): Promise<StopPermitResult> {
    const channel = this.#channel
    if (channel === undefined)
      return Promise.resolve({
        unavailable: 'this member follows no leader that grants permits: none, or one of Apache ZooKeeper',
      })
    const askedAt = this.#clock.monotonic()
    return new Promise((resolve) => {
      const settled = (answer: StopPermitAnswer | string): void => {
        if (typeof answer === 'string') {
          // The leader may have granted it.
          this.#channel?.send({ number: 0, forMs: this.remainingMs })
          return resolve({ unavailable: answer })
        }
        // At once: the permit is named to the next leader.
        this.#until = answer.isGranted ? askedAt + forMs : -Infinity
        resolve(answer)
      }
      this.#pending.request((number) => channel.send({ number, forMs }), settled)
    })
  }

  /** Gives the permit back, also one that the leader has yet to grant. */
  release(): void {
    this.#until = -Infinity
    this.#pending.fail('the permit was given back before the leader answered')
    this.#channel?.send({ number: 0, forMs: 0 })
  }

  /** Sends requests to this leader from now on, after the permit that is held. */
  connect(channel: StopPermitChannel): void {
    this.#channel = channel
    const { remainingMs } = this
    if (remainingMs > 0) channel.send({ number: 0, forMs: remainingMs })
  }

  /** Sends no more requests to this leader; those without an answer fail. */
  disconnect(channel: StopPermitChannel | undefined): void {
    if (channel === undefined || this.#channel !== channel) return
    this.#channel = undefined
    this.#pending.fail('the leader was lost before it answered')
  }

  /** Takes the answer of the leader. */
  answered(answer: StopPermitAnswer): void {
    this.#pending.answered(answer)
  }
}
