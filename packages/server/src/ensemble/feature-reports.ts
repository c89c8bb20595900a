import { isSameState, NOT_FINALIZED, type FeatureState } from '../core/quorum/index.ts'
import {
  decodeFeatureReport,
  decodeFeatureState,
  encodeFeatureReport,
  encodeFeatureState,
  NO_ZXID,
  PacketType,
  type MemberFeatures,
} from '../core/zab/index.ts'
import type { MemberContext } from './context.ts'
import type { LearnerConnection } from './learner-connection.ts'

type FeatureContext = Pick<MemberContext, 'features' | 'membership'>

/**
 * Exchanges feature levels with the learners of a leader, or of a follower that serves observers (quorum-protocol 18.9): sends them those
 * of this server, and collects what they have stored.
 */
export class FeatureReports {
  readonly #context: FeatureContext
  readonly #learners: () => Iterable<LearnerConnection>
  readonly #changed: () => void

  /** `changed` is called when learners have reported something else. */
  constructor(context: FeatureContext, learners: () => Iterable<LearnerConnection>, changed: () => void) {
    this.#context = context
    this.#learners = learners
    this.#changed = changed
  }

  /** Takes the report of a learner. Throws a `ProtocolError` for malformed data. */
  receive(learner: LearnerConnection, data: Uint8Array | null): void {
    learner.levels = decodeFeatureReport(data)
    const own = learner.levels.find(({ id }) => id === learner.serverId)
    // This server may have changed its levels after it sent them in its info.
    if (own === undefined || !isSameState(own.stored, this.#context.features.state)) this.#send(learner)
    this.#changed()
  }

  /**
   * Sends the levels of this server, which have changed. Closes the connections of learners that cannot work with them, and of those that
   * are not up to date: the data that follow may need the levels, which a learner stores before data.
   */
  send(): void {
    for (const learner of this.#learners()) {
      const { serverId, extension, levels } = learner
      const reason = this.#context.features.refusalOf(serverId, extension)
      if (reason !== undefined) learner.fail(reason)
      else if (levels !== undefined) this.#send(learner)
      else if (extension?.features !== undefined)
        learner.fail('the feature levels have changed: it connects again, and gets them before data')
    }
  }

  /**
   * The levels of all learners that are up to date, without what they say of others. One of Apache ZooKeeper, or that stores no levels,
   * has level 0.
   */
  get all(): readonly MemberFeatures[] {
    return [...this.#learners()]
      .filter(({ isSynced }) => isSynced)
      .flatMap(
        ({ serverId, levels }) =>
          levels?.filter(({ id }) => id === serverId) ?? [
            { id: serverId, release: 0, stored: NOT_FINALIZED },
          ],
      )
  }

  #send(learner: LearnerConnection): void {
    learner.send(PacketType.featureLevel, NO_ZXID, encodeFeatureState(this.#context.features.state))
  }
}

/** The side of a learner: stores the levels of its leader, or of the follower that it observes, and reports what it has stored. */
export class FeatureRecipient {
  readonly #context: FeatureContext
  readonly #send: (data: Uint8Array) => void
  /** The levels of the leader; undefined for one that exchanges none. */
  #leader: FeatureState | undefined
  #isServing = false
  /** The observers of this server. */
  observers: FeatureReports | undefined

  /** `send` sends a report. */
  constructor(context: FeatureContext, send: (data: Uint8Array) => void) {
    this.#context = context
    this.#send = send
  }

  /** Takes the finalized level of the leader before its data: a release that does not read them must not start on them. */
  async introduced(leader: FeatureState): Promise<void> {
    this.#leader ??= leader
    await this.#context.features.join(leader)
  }

  /** Decodes levels that the leader has sent, which `follow` takes from then on. Throws a `ProtocolError` for malformed data. */
  receive(data: Uint8Array | null): FeatureState {
    return (this.#leader = decodeFeatureState(data))
  }

  /** Takes the levels of the leader, whose history this member has; durable when it resolves. */
  async follow(): Promise<void> {
    if (this.#leader === undefined) return
    const { features } = this.#context
    const before = features.state
    await features.follow(this.#leader)
    if (isSameState(before, features.state)) return
    this.observers?.send()
    if (this.#isServing) this.report()
  }

  /** This server is up to date. */
  onServing(): void {
    this.#isServing = true
    this.report()
  }

  /** Reports the levels of this server and of its observers. */
  report(): void {
    if (this.#leader === undefined) return
    const { features, membership } = this.#context
    const own = { id: membership.self, release: features.release, stored: features.state }
    this.#send(encodeFeatureReport([own, ...(this.observers?.all ?? [])]))
  }
}
