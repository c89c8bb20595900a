import type { Cancel, Clock } from '@zabra/runtime'
import type { ServerId } from '../core/quorum/index.ts'
import {
  encodeLeaderReportPacket,
  NO_ZXID,
  PacketType,
  setReportNumber,
  type LeaderReportPacket,
  type LearnerReportPacket,
  type ReportOfMember,
  type ReportReason,
} from '../core/zab/index.ts'
import type { LearnerConnection } from './learner-connection.ts'

/** The shortest time from one round to the next, in milliseconds. */
const INTERVAL_MS = 1000
/** The time for the reports of a round at a leader, in milliseconds. */
export const COLLECT_MS = 1000
/** The same at an observer master, which reports to its leader then. */
export const OBSERVERS_MS = 600
/** The time for the answer of the leader to an observer master: the leader may wait for the end of its interval first. */
export const RELAY_MS = INTERVAL_MS + COLLECT_MS + 500

/** A learner as far as rounds need it. */
export type ReportingLearner = Pick<LearnerConnection, 'serverId' | 'extension' | 'isUpToDate' | 'send'>

export interface ReportRoundsOptions {
  readonly clock: Pick<Clock, 'monotonic' | 'after'>
  readonly learners: () => Iterable<ReportingLearner>
  /** Returns whether the configuration names a server. Others are not asked, and get no answer. */
  readonly isMember: (id: ServerId) => boolean
  /** Returns whether a learner may report about another server: an observer that follows it. */
  readonly speaksFor: (learner: ReportingLearner, id: ServerId) => boolean
  /** Resolves to the report of this server, or those of all members that it knows of; undefined where nothing is known to answer. */
  readonly own: () => Promise<readonly ReportOfMember[] | undefined>
  /** The time for the reports of a round, in milliseconds. */
  readonly collectMs: number
}

/** The reports that are being collected. */
interface Round {
  readonly number: number
  /** The learners that have not reported; this server as `own`. */
  readonly missing: Set<ReportingLearner | 'own'>
  readonly received: Map<ServerId, { readonly report: Uint8Array; readonly at: number } | ReportReason>
  readonly cancelTimeout: Cancel
}

type Answer = Extract<LeaderReportPacket, { kind: 'answer' }>

/** A request for reports, and what takes the answer. */
interface Asker {
  readonly number: number
  /** `encoded` returns the packet of the answer, which the next asker gets with another number. */
  readonly take: (answer: Answer, encoded: () => Uint8Array) => void
}

/**
 * Collects the reports of members at a leader, or at a follower that keeps observers, for those that ask (quorum-protocol 18.10). However
 * often they do, there is one round a second at most, in which each learner is asked once and each asker is answered once.
 */
export class ReportRounds {
  readonly #options: ReportRoundsOptions
  /** What takes the answer of the next round, by asker. */
  readonly #askers = new Map<ReportingLearner | 'own', Asker>()
  #round: Round | undefined
  #nextNumber = 1
  #begunAt = -Infinity
  #cancelStart: Cancel | undefined
  #hasEnded = false

  constructor(options: ReportRoundsOptions) {
    this.#options = options
  }

  /** Takes the packet of a learner. */
  receive(learner: ReportingLearner, packet: LearnerReportPacket): void {
    if (packet.kind === 'report') return this.#received(learner, packet.number, packet.members)
    if (!this.#options.isMember(learner.serverId) || !learner.isUpToDate) return
    const { number } = packet
    const take: Asker['take'] = (_, encoded) => learner.send(PacketType.memberReport, NO_ZXID, encoded())
    this.#add(learner, { number, take })
  }

  /** Collects for this server itself. */
  askOwn(number: number, take: (answer: Answer) => void): void {
    this.#add('own', { number, take })
  }

  /** The connection of a learner is lost. */
  remove(learner: ReportingLearner): void {
    this.#askers.delete(learner)
    if (this.#round?.missing.delete(learner) === true) this.#finishIfComplete()
  }

  /** Sends no more answers: the role ends. */
  end(): void {
    this.#hasEnded = true
    this.#cancelStart?.()
    this.#round?.cancelTimeout()
    this.#round = undefined
    this.#askers.clear()
  }

  /** A member that asks again before it is answered gets one answer. */
  #add(asker: ReportingLearner | 'own', request: Asker): void {
    if (this.#hasEnded) return
    this.#askers.set(asker, request)
    if (this.#round !== undefined || this.#cancelStart !== undefined) return
    const { clock } = this.#options
    const waitMs = this.#begunAt + INTERVAL_MS - clock.monotonic()
    if (waitMs <= 0) return this.#begin()
    this.#cancelStart = clock.after(waitMs, 'next collection of reports', () => {
      this.#cancelStart = undefined
      this.#begin()
    })
  }

  #begin(): void {
    const { clock, learners, isMember, own, collectMs } = this.#options
    const number = this.#nextNumber++
    const round: Round = {
      number,
      missing: new Set(['own']),
      received: new Map(),
      cancelTimeout: clock.after(collectMs, 'reports of members', () => this.#finish()),
    }
    this.#round = round
    this.#begunAt = clock.monotonic()
    const asked = []
    for (const learner of learners()) {
      const { serverId, extension, isUpToDate } = learner
      if (!isMember(serverId)) continue
      if (extension === undefined) round.received.set(serverId, 'foreign')
      else if (!isUpToDate) round.received.set(serverId, 'syncing')
      else asked.push(learner)
    }
    for (const learner of asked) round.missing.add(learner)
    // A send that fails removes its learner at once.
    for (const learner of asked)
      learner.send(PacketType.memberReport, NO_ZXID, encodeLeaderReportPacket({ kind: 'collect', number }))
    void own().then((members) => {
      if (this.#round !== round || members === undefined) return
      this.#keep(members)
      round.missing.delete('own')
      this.#finishIfComplete()
    })
  }

  /** Takes the report of a learner that was asked for it; ignores others, and a second one. */
  #received(learner: ReportingLearner, number: number, members: readonly ReportOfMember[]): void {
    const round = this.#round
    if (round?.number !== number || !round.missing.has(learner)) return
    const { serverId } = learner
    this.#keep(members.filter(({ id }) => id === serverId || this.#options.speaksFor(learner, id)))
    // One that says nothing of itself is waited for.
    if (round.received.has(serverId)) round.missing.delete(learner)
    this.#finishIfComplete()
  }

  /** What two know of a member is what the first one says that has its report. */
  #keep(members: readonly ReportOfMember[]): void {
    const { received } = this.#round!
    const now = this.#options.clock.monotonic()
    for (const member of members)
      if (typeof received.get(member.id) !== 'object')
        received.set(
          member.id,
          member.report === undefined ? member.reason : { report: member.report, at: now - member.ageMs },
        )
  }

  #finishIfComplete(): void {
    if (this.#round?.missing.size === 0) this.#finish()
  }

  /** Answers all that wait, also those that have asked since the round began. */
  #finish(): void {
    const { cancelTimeout, missing, received } = this.#round!
    cancelTimeout()
    this.#round = undefined
    const askers = [...this.#askers.values()]
    this.#askers.clear()
    // Without what this server knows itself, members would seem to be away.
    if (missing.delete('own')) return
    for (const { serverId } of missing as Set<ReportingLearner>)
      if (!received.has(serverId)) received.set(serverId, 'silent')
    const now = this.#options.clock.monotonic()
    const members = [...received].map(([id, found]): ReportOfMember =>
      typeof found === 'string'
        ? { id, report: undefined, reason: found }
        : { id, report: found.report, ageMs: now - found.at },
    )
    let packet: Uint8Array | undefined
    for (const { number, take } of askers) {
      const answer = { kind: 'answer', number, members } as const
      // All get the same, of up to 256 KiB: it is made once, and copied into the buffer of each connection.
      take(answer, () => setReportNumber((packet ??= encodeLeaderReportPacket(answer)), number))
    }
  }
}
