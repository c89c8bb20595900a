import type { Clock } from '@zabra/runtime'
import type { MemberConfiguration, ServerId } from '../../../core/quorum/index.ts'
import type { ReportReason, ReportsResult } from '../../../core/zab/index.ts'
import type { AdminTarget } from '../../admin-target.ts'
import type { SlicedAnswers } from '../../sliced-answers.ts'
import { clientPortOf, type ClusterProbe, type MemberAnswer } from './cluster-probe.ts'
import { decodeReport, EMPTY_REPORT, notReady, type ReceivedReport } from './member-report.ts'

/** What is known of another member, and since when. */
export interface KnownMember {
  readonly report: ReceivedReport
  /** How it is known; undefined where nothing is. */
  readonly source: 'report' | 'srvr' | undefined
  /** When it was known, on the monotonic clock; undefined where nothing is. */
  readonly at: number | undefined
  /** Why there is no new report; null where there is one. */
  readonly reason: string | null
  /** Whether it was known right now. */
  readonly isCurrent: boolean
  /** What is wrong with the member; null where nothing is. */
  readonly problem: string | null
}

type LastKnown = Pick<KnownMember, 'report' | 'source'> & { readonly at: number }

const REASONS: Readonly<Record<ReportReason, string>> = {
  silent: 'it has not reported to the leader within a second',
  syncing: 'the leader is bringing it up to date',
  foreign: 'it runs Apache ZooKeeper, which makes no reports',
  'left-out': 'the answer of the leader has no room for its report',
}

/**
 * Finds out the state of the other members: by the reports that the leader collects, and of those without one by `srvr`, which every
 * ZooKeeper server answers. Remembers what each was known to be last.
 */
export class ClusterReports {
  readonly #clock: Pick<Clock, 'monotonic'>
  readonly #probe: Pick<ClusterProbe, 'ask'>
  readonly #answers: Pick<SlicedAnswers, 'run'>
  readonly #last = new Map<ServerId, LastKnown>()

  constructor(
    clock: Pick<Clock, 'monotonic'>,
    probe: Pick<ClusterProbe, 'ask'>,
    answers: Pick<SlicedAnswers, 'run'>,
  ) {
    this.#clock = clock
    this.#probe = probe
    this.#answers = answers
  }

  /** Resolves to what is known of the members of an ensemble but `target`. */
  async read(target: AdminTarget): Promise<ReadonlyMap<ServerId, KnownMember>> {
    const members = target.configuration?.members ?? new Map<ServerId, MemberConfiguration>()
    for (const id of this.#last.keys()) if (!members.has(id)) this.#last.delete(id)
    const others = [...members.values()].filter(({ id }) => id !== target.settings.serverId)
    const result = await target.memberReports()
    const known = others.map(async (member) => [member.id, await this.#know(target, member, result)] as const)
    return new Map(await Promise.all(known))
  }

  async #know(target: AdminTarget, member: MemberConfiguration, result: ReportsResult): Promise<KnownMember> {
    if ('unavailable' in result) return this.#ask(target, member, result.unavailable)
    const found = result.members.find(({ id }) => id === member.id)
    if (found?.report === undefined)
      return this.#ask(
        target,
        member,
        found === undefined ? 'it is not connected to the leader' : REASONS[found.reason],
      )
    // One that is made to take long takes half a millisecond.
    const { report, problem } = await this.#answers.run(() => decodeReport(found.report))
    if (report === EMPTY_REPORT) return this.#ask(target, member, problem!, problem)
    const last = { report, source: 'report', at: result.receivedAt - found.ageMs } as const
    this.#last.set(member.id, last)
    const problems = [problem, notReady(report)].filter((one) => one !== null)
    return {
      ...last,
      isCurrent: true,
      reason: null,
      problem: problems.length === 0 ? null : problems.join('; '),
    }
  }

  /** Asks a member without a report by `srvr`. `wrong` says what is wrong with its report. */
  async #ask(
    target: AdminTarget,
    member: MemberConfiguration,
    reason: string,
    wrong: string | null = null,
  ): Promise<KnownMember> {
    const { answer, answeredAt, problem } = await this.#probe.ask(member, clientPortOf(target, member))
    const before = this.#last.get(member.id)
    if (answer !== undefined && answeredAt >= (before?.at ?? -Infinity))
      this.#last.set(member.id, { report: reportOf(answer), source: 'srvr', at: answeredAt })
    const last = this.#last.get(member.id)
    return {
      report: last?.report ?? EMPTY_REPORT,
      source: last?.source,
      at: last?.at,
      isCurrent: problem === undefined,
      reason,
      problem: problem === undefined ? wrong : `${reason}; ${problem}`,
    }
  }

  /** How long ago something was known, in milliseconds; null for never. */
  ageOf({ at }: KnownMember): number | null {
    return at === undefined ? null : Math.max(0, Math.floor(this.#clock.monotonic() - at))
  }
}

const reportOf = ({ mode, zxid, version, connections, znodes }: MemberAnswer): ReceivedReport => ({
  ...EMPTY_REPORT,
  state: mode,
  zxid,
  softwareVersion: version,
  connections,
  znodes,
})
