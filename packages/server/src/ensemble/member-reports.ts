import type { Clock } from '@zabra/runtime'
import type { ServerId } from '../core/quorum/index.ts'
import type { LeaderReportPacket, ReportOfMember, ReportsResult } from '../core/zab/index.ts'
import { PendingAnswers } from './pending-answers.ts'

type Answer = Extract<LeaderReportPacket, { kind: 'answer' }>

/** The time for an answer in milliseconds: the leader begins a round after a second, and waits a second for the reports. */
const TIMEOUT_MS = 3000
/** For how long an answer is given again, in milliseconds: the leader collects no more often. */
const FRESH_MS = 1000

/** Passes requests for reports to the leader: by a connection, or at the leader itself. */
export interface ReportChannel {
  ask(number: number): void
}

/** Makes the report of this member, and asks the leader for those of all members, over roles and leaders (quorum-protocol 18.10). */
export class MemberReports {
  readonly #clock: Clock
  readonly #self: ServerId
  readonly #make: () => Promise<Uint8Array>
  readonly #pending: PendingAnswers<Answer>
  #channel: ReportChannel | undefined
  #running: Promise<ReportsResult> | undefined
  #last: Exclude<ReportsResult, { unavailable: string }> | undefined
  #isReporting = false

  /** `make` makes the report of this member, of at most 8 KiB. It never rejects. */
  constructor(clock: Clock, self: ServerId, make: () => Promise<Uint8Array>) {
    this.#clock = clock
    this.#self = self
    this.#make = make
    this.#pending = new PendingAnswers(clock, TIMEOUT_MS, 'reports of all members')
  }

  /** Makes the report of this member. */
  async own(): Promise<readonly ReportOfMember[]> {
    return [{ id: this.#self, report: await this.#make(), ageMs: 0 }]
  }

  /** Makes the report of this member for its leader. Ignores requests until it is made: one is sent at a time. */
  report(send: (members: readonly ReportOfMember[]) => void): void {
    if (this.#isReporting) return
    this.#isReporting = true
    void this.own().then((members) => {
      this.#isReporting = false
      send(members)
    })
  }

  /** Resolves to the reports of all members, or to why there are none. Requests within a second share one answer. */
  request(): Promise<ReportsResult> {
    if (this.#last !== undefined && this.#clock.monotonic() - this.#last.receivedAt < FRESH_MS)
      return Promise.resolve(this.#last)
    this.#running ??= this.#ask().finally(() => (this.#running = undefined))
    return this.#running
  }

  /** Resolves to what `request` resolves to, with the ages of this moment; to undefined where there are no reports. */
  async relay(): Promise<readonly ReportOfMember[] | undefined> {
    const result = await this.request()
    if ('unavailable' in result) return undefined
    const passedMs = this.#clock.monotonic() - result.receivedAt
    return result.members.map((member) =>
      member.report === undefined ? member : { ...member, ageMs: member.ageMs + passedMs },
    )
  }

  #ask(): Promise<ReportsResult> {
    const channel = this.#channel
    if (channel === undefined)
      return Promise.resolve({
        unavailable: 'the server asked follows no leader that collects reports',
      })
    return new Promise((resolve) => {
      this.#pending.request(
        (number) => channel.ask(number),
        (answer) => {
          if (typeof answer === 'string') return resolve({ unavailable: answer })
          this.#last = { members: answer.members, receivedAt: this.#clock.monotonic() }
          resolve(this.#last)
        },
      )
    })
  }

  /** Sends requests to this leader from now on. */
  connect(channel: ReportChannel): void {
    this.#channel = channel
  }

  /** Sends no more requests to this leader; those without an answer fail. */
  disconnect(channel: ReportChannel | undefined): void {
    if (channel === undefined || this.#channel !== channel) return
    this.#channel = this.#last = undefined
    this.#pending.fail('the leader was lost before it answered')
  }

  /** Takes the answer of the leader. */
  answered(answer: Answer): void {
    this.#pending.answered(answer)
  }
}
