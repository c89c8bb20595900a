import type { Clock } from '@zabra/runtime'
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

/** Returns reports that were received a while ago with their ages at `now`. */
export const agedReports = (
  { members, receivedAt }: Exclude<ReportsResult, { unavailable: string }>,
  now: number,
): readonly ReportOfMember[] =>
  members.map((member) =>
    member.report === undefined ? member : { ...member, ageMs: member.ageMs + now - receivedAt },
  )

/** Makes the report of this member, and asks the leader for those of all members, over roles and leaders (quorum-protocol 18.10). */
export class MemberReports {
  readonly #clock: Clock
  readonly #make: () => Promise<Uint8Array>
  readonly #pending: PendingAnswers<Answer>
  #channel: ReportChannel | undefined
  #running: Promise<ReportsResult> | undefined
  #last: Exclude<ReportsResult, { unavailable: string }> | undefined
  #isReporting = false

  /** `make` makes the report of this member, of at most 8 KiB. It never rejects. */
  constructor(clock: Clock, make: () => Promise<Uint8Array>) {
    this.#clock = clock
    this.#make = make
    this.#pending = new PendingAnswers(clock, TIMEOUT_MS, 'reports of all members')
  }

  /** Makes the report of this member. */
  make(): Promise<Uint8Array> {
    return this.#make()
  }

  /** Makes the report of this member for its leader. Ignores requests until it is made: one is sent at a time. */
  report(send: (report: Uint8Array) => void): void {
    if (this.#isReporting) return
    this.#isReporting = true
    void this.#make().then((report) => {
      this.#isReporting = false
      send(report)
    })
  }

  /** Resolves to the reports of all members, or to why there are none. Requests within a second share one answer. */
  request(): Promise<ReportsResult> {
    if (this.#last !== undefined && this.#clock.monotonic() - this.#last.receivedAt < FRESH_MS)
      return Promise.resolve(this.#last)
    this.#running ??= this.#ask().finally(() => (this.#running = undefined))
    return this.#running
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
