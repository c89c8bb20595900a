import type { Cancel } from '@zabra/runtime'
import type { FinalizePlan, FinalizeResult, MemberLevel } from '../admin/index.ts'
import { requiredLevel, type FeatureState, type ServerId } from '../core/quorum/index.ts'
import type { MemberContext } from './context.ts'
import { FeatureReports } from './feature-reports.ts'
import type { FinalizesLevels } from './feature-levels.ts'
import type { LearnerConnection } from './learner-connection.ts'

/** How long all members have been connected, with a level that is not finalized, when `feature.auto` finalizes it. */
const AUTO_AFTER_MS = 24 * 3_600_000

/** How long the answer to a request may take, in milliseconds: less than callers wait. */
const ANSWER_MS = 5000

/** A member of the configuration, and what it has stored. */
interface KnownMember extends MemberLevel {
  readonly stored: FeatureState | undefined
}

/**
 * Finalizes feature levels at a leader, or on a standalone server (quorum-protocol 18.9). A level is proposed once all members of the
 * configuration are connected and read it, and final once all have stored it.
 */
export class FeatureAuthority implements FinalizesLevels {
  readonly reports: FeatureReports
  readonly #context: MemberContext
  readonly #learners: () => Iterable<LearnerConnection>
  #isLeading = false
  #isConfirming = false
  /** The callers of `finalize` that wait. */
  readonly #waiting = new Set<() => void>()
  /** The level that could be finalized without a break since a time on the monotonic clock; 0 where none could. */
  #ready = { level: 0, since: 0 }
  #cancelAuto: Cancel = () => {}

  /** `learners` are the connections of the leader; a standalone server has none. */
  constructor(context: MemberContext, learners: () => Iterable<LearnerConnection>) {
    this.#context = context
    this.#learners = learners
    this.reports = new FeatureReports(context, learners, () => this.changed())
  }

  /** The leader is established. Goes on with a level that an earlier leader has proposed. */
  begin(): void {
    this.#isLeading = true
    this.#context.features.connect(this)
    this.changed()
  }

  end(): void {
    this.#isLeading = false
    this.#cancelAuto()
    this.#context.features.disconnect(this)
    this.#wake()
  }

  /** Decides anew: connections, reports or the configuration have changed. */
  changed(): void {
    if (!this.#isLeading) return
    const { proposed } = this.#context.features
    const members = this.#members()
    if (
      proposed > 0 &&
      members.every(({ stored }) => stored !== undefined && requiredLevel(stored) >= proposed)
    )
      void this.#confirm(proposed)
    this.#noteReady()
  }

  plan(level?: number): FinalizePlan {
    const { finalized, proposed } = this.#context.features
    const members = this.#members()
    const releases = members.filter(({ obstacle }) => obstacle === undefined).map(({ release }) => release!)
    const wanted = level ?? Math.max(finalized, proposed, Math.min(...releases))
    const judged = members.map(({ id, release, obstacle }) => ({
      id,
      release,
      obstacle: obstacle ?? (release! < wanted ? tooLow(id, release!, wanted) : undefined),
    }))
    const before =
      proposed > wanted
        ? [`level ${proposed} was asked for before, and is final once all members have stored it`]
        : []
    const obstacles = [...before, ...judged.flatMap(({ obstacle }) => obstacle ?? [])]
    return {
      level: wanted,
      finalized,
      members: judged,
      obstacles: wanted <= finalized ? [] : obstacles,
      readyForMs:
        this.#ready.level === 0 ? undefined : this.#context.platform.clock.monotonic() - this.#ready.since,
    }
  }

  async finalize(level?: number): Promise<FinalizeResult> {
    const { features, failed, platform } = this.#context
    const plan = this.plan(level)
    if (plan.level <= features.finalized) return { plan, isFinalized: true, waitsFor: [] }
    if (plan.obstacles.length > 0) return { plan, isFinalized: false, waitsFor: undefined }
    platform.logger.info(
      { featureLevel: plan.level },
      'The members are asked to store a feature level for good',
    )
    try {
      await features.propose(plan.level)
    } catch (error) {
      failed(error)
      throw error
    }
    this.reports.send()
    this.changed()
    await this.#waitFor(plan.level)
    const isFinalized = features.finalized >= plan.level
    const missing = this.#members().filter(
      ({ stored }) => stored === undefined || requiredLevel(stored) < plan.level,
    )
    return { plan, isFinalized, waitsFor: isFinalized ? [] : missing.map(({ id }) => id) }
  }

  async #confirm(level: number): Promise<void> {
    const { features, platform, failed } = this.#context
    if (this.#isConfirming) return
    this.#isConfirming = true
    try {
      await features.confirm(level)
    } catch (error) {
      return failed(error)
    } finally {
      this.#isConfirming = false
    }
    // A higher one may have been proposed meanwhile.
    if (features.finalized !== level) return this.changed()
    platform.logger.info(
      { featureLevel: level },
      'A feature level is finalized: no member can go back to Apache ZooKeeper or a release below it',
    )
    this.reports.send()
    this.#wake()
    this.changed()
  }

  /** Resolves when a level is final, when this server does not lead any more, and after `ANSWER_MS`. */
  async #waitFor(level: number): Promise<void> {
    const { features, platform } = this.#context
    if (!this.#isLeading || features.finalized >= level) return
    await new Promise<void>((resolve) => {
      const done = (): void => {
        cancel()
        this.#waiting.delete(done)
        resolve()
      }
      const cancel = platform.clock.after(ANSWER_MS, 'members that store a feature level', done)
      this.#waiting.add(done)
    })
  }

  #wake(): void {
    for (const done of this.#waiting) done()
  }

  /** Notes since when a higher level could be finalized, and finalizes it in time where the settings ask for it. */
  #noteReady(): void {
    const { features, platform, settings } = this.#context
    const { level: wanted, obstacles } = this.plan()
    const level = obstacles.length === 0 && wanted > features.finalized ? wanted : 0
    if (level === this.#ready.level) return
    this.#ready = { level, since: platform.clock.monotonic() }
    this.#cancelAuto()
    if (level === 0 || !settings.featureAuto) return
    this.#cancelAuto = platform.clock.after(
      AUTO_AFTER_MS,
      'automatic finalization of a feature level',
      () => {
        // What goes wrong has stopped the server.
        this.finalize(level).catch(() => {})
      },
    )
  }

  #members(): readonly KnownMember[] {
    const { membership, features } = this.#context
    const { self, active, proposed } = membership
    // The leader stores the level too, also where the configuration does not name it any more.
    return [...new Set([...active.members.keys(), ...(proposed?.members.keys() ?? []), self])].map((id) =>
      id === self
        ? { id, release: features.release, stored: features.state, obstacle: undefined }
        : this.#learner(id),
    )
  }

  #isVoter(id: ServerId): boolean {
    return this.#context.membership.member(id)?.role === 'participant'
  }

  #learner(id: ServerId): KnownMember {
    const synced = [...this.#learners()].filter(({ isSynced }) => isSynced)
    const isVoter = this.#isVoter(id)
    const obstructed = (reason: string, release?: number): KnownMember => ({
      id,
      release,
      stored: undefined,
      obstacle: `server ${id} ${reason}`,
    })
    // The last one: an earlier connection may be dead.
    const learner = synced.findLast(({ serverId }) => serverId === id)
    if (learner?.extension === undefined && learner !== undefined)
      return obstructed('runs Apache ZooKeeper', 0)
    // Its acknowledgements may come from a later epoch than that of this leader.
    if (isVoter && learner?.isObserver === true)
      return obstructed(
        'follows without a vote: hand leadership over (zabra transfer), or restart the leader where that is refused, until it votes',
      )
    if (learner !== undefined && learner.extension?.features === undefined)
      return obstructed('runs a release from before feature levels', 0)
    // An observer reports to the follower that it observes, which reports of no other server.
    const followers = synced.filter((one) => !one.isObserver && this.#isVoter(one.serverId))
    const reports = learner === undefined ? (isVoter ? [] : followers) : [learner]
    const known = reports.flatMap(({ levels = [] }) => levels).findLast((member) => member.id === id)
    if (known === undefined)
      return obstructed(learner === undefined ? 'is away' : 'has not reported its level yet')
    const { stored } = known
    const release = Math.min(known.release, learner?.extension?.level ?? known.release)
    if (release === 0) return obstructed('runs Apache ZooKeeper, or a release from before feature levels', 0)
    return { id, release, stored, obstacle: undefined }
  }
}

const tooLow = (id: ServerId, release: number, level: number): string =>
  `server ${id} has feature level ${release}: install a release of level ${level} or later on it`
