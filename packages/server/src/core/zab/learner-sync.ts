import { formatZxid, makeZxid } from '@zabra/protocol'
import { printConfiguration, type EnsembleConfiguration } from '../quorum/index.ts'
import type { Zxid } from '../types.ts'
import type { LeaderWork } from './leader-types.ts'
import type { LearnerProgress } from './learner-progress.ts'
import type { LearnerRegistry } from './learner-registry.ts'
import { NO_ZXID, PacketType } from './packets.ts'
import { encodeConfigurationText } from './payloads.ts'
import { planSync, type SyncSources } from './sync-plan.ts'

export interface LearnerSyncOptions {
  readonly sources: SyncSources
  /** Returns the epoch of the leader. */
  readonly epoch: () => number
  /** Returns the configuration that NEWLEADER contains, which the learner activates (quorum-protocol 14.6). */
  readonly configuration: () => EnsembleConfiguration
  readonly emit: (work: Extract<LeaderWork, { do: 'sync' }>) => void
}

/** The synchronisation of learners by a leader or an observer master, from the history to UPTODATE (quorum-protocol 9). */
export class LearnerSync {
  readonly #learners: LearnerRegistry
  readonly #options: LearnerSyncOptions

  constructor(learners: LearnerRegistry, options: LearnerSyncOptions) {
    this.#learners = learners
    this.#options = options
  }

  /**
   * Sends history, then the proposals `pending` after `committed`, then NEWLEADER, and makes the learner join: all later
   * proposals and commits follow these (quorum-protocol 9.2, 9.4).
   */
  begin(
    learner: LearnerProgress,
    committed: Zxid = NO_ZXID,
    pending: Iterable<Uint8Array | undefined> = [],
  ): void {
    learner.state = 'syncing'
    this.#learners.heartbeat(learner)
    const plan = planSync(learner.lastZxid, this.#options.sources)
    this.#options.emit({ do: 'sync', to: learner.connection, plan })
    let zxid = committed
    for (const payload of pending) this.#learners.send(learner, PacketType.proposal, ++zxid, payload!)
    learner.isStreaming = true
    if (plan.kind !== 'snap') this.sendNewLeader(learner)
    this.#learners.join(learner)
  }

  /**
   * Sends NEWLEADER after the end of the sync data: changes of the tree while a snapshot is sent must precede NEWLEADER
   * (quorum-protocol 9.4, ZOOKEEPER-3104).
   */
  sendNewLeader(learner: LearnerProgress | undefined): void {
    if (learner?.isStreaming !== true) return
    learner.isStreaming = false
    const text = encodeConfigurationText(printConfiguration(this.#options.configuration()))
    this.#learners.send(learner, PacketType.newLeader, this.#newLeaderZxid, text)
  }

  /** Returns whether a learner acknowledges NEWLEADER, and drops it if it acknowledges anything else. */
  isNewLeaderAck(learner: LearnerProgress, zxid: Zxid): boolean {
    if (zxid === this.#newLeaderZxid && !learner.isStreaming) return true
    const missing = learner.isStreaming
      ? 'before NEWLEADER was sent'
      : `instead of NEWLEADER ${formatZxid(this.#newLeaderZxid)}`
    this.#learners.drop(learner, `it acknowledges ${formatZxid(zxid)} ${missing}`)
    return false
  }

  /** Sends UPTODATE, with which the learner begins to serve. */
  activate(learner: LearnerProgress): void {
    learner.state = 'active'
    this.#learners.heartbeat(learner)
    this.#learners.send(learner, PacketType.upToDate, NO_ZXID, null)
  }

  get #newLeaderZxid(): Zxid {
    return makeZxid(this.#options.epoch(), 0)
  }
}
