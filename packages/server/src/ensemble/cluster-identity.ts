import type { Platform } from '@zabra/runtime'
import {
  compareClusters,
  formatClusterId,
  isOriginal,
  isSameCluster,
  type ClusterId,
  type ServerId,
} from '../core/quorum/index.ts'
import type { MemberExtension } from '../core/zab/index.ts'
import type { Database } from '../database/index.ts'
import { writeClusterId } from '../persistence/index.ts'
import { FEATURE_LEVEL } from '../version.ts'

/** What a cluster identity needs of its member. */
export interface ClusterIdentityOptions {
  readonly platform: Pick<Platform, 'disk'>
  readonly database: Pick<Database, 'folders' | 'lastZxid' | 'epochs'>
  /** Called when another member has shown that the ensemble was recovered without this one. */
  readonly superseded: (error: Error) => void
}

/**
 * Keeps members of an ensemble that has lost its quorum apart from the ensemble that was recovered without them (quorum-protocol 18.6).
 * Members of Apache ZooKeeper say nothing, and are not kept apart.
 */
export class ClusterIdentity {
  readonly #options: ClusterIdentityOptions
  #current: ClusterId
  /** Whether this member has led or followed since it started. */
  #hasHadLeader = false

  /** `current` is the id beside the epochs. */
  constructor(options: ClusterIdentityOptions, current: ClusterId) {
    this.#options = options
    this.#current = current
  }

  get current(): ClusterId {
    return this.#current
  }

  /** Whether the ensemble was recovered, so that members of the one before may come back. */
  get wasRecovered(): boolean {
    return !isOriginal(this.#current)
  }

  /** Returns what this member says of itself. */
  extension(sharesSecret = false): MemberExtension {
    const { lastZxid, epochs } = this.#options.database
    const hasData = lastZxid > 0 || epochs.accepted > 0
    return { level: FEATURE_LEVEL, sharesSecret, hasData, cluster: this.#current }
  }

  /** Records that this member has a leader, or leads: its ensemble has not lost its quorum for good. */
  established(): void {
    this.#hasHadLeader = true
  }

  /**
   * Returns why another member is kept apart, or undefined. Stops this member if the ensemble was recovered without it, unless it has
   * had a leader since its start: a recovery by mistake must not stop those that are a quorum. `isKnown` says that the other one is a
   * member that the configuration names, at its address, or has proved its id.
   */
  refusalOf(peer: ServerId, said: MemberExtension | undefined, isKnown: boolean): string | undefined {
    if (said === undefined) return undefined
    const relation = compareClusters(this.extension(), said)
    if (relation === 'compatible') return undefined
    const [own, other] = [formatClusterId(this.#current), formatClusterId(said.cluster)]
    if (relation === 'other')
      return `server ${peer} has data of another ensemble (${other}, this one is ${own}): it is from before a recovery. Stop it, keep a copy of its data, and run zabra recover adopt on its data folder`
    const reason = `server ${peer} is of an ensemble that was recovered without this server (${other}, this one is ${own})`
    if (this.#hasHadLeader)
      return `${reason}. This server has had a leader since it started, and goes on; clients of server ${peer} write apart from it. If the recovery was a mistake, stop server ${peer}, keep a copy of its data, run zabra recover adopt on the data folder of server ${peer}, and start it again. If it was intended, stop this server and do the same here`
    if (isKnown)
      this.#options.superseded(
        new Error(
          `Server ${peer} says that the ensemble was recovered without this server (${other}, this one is ${own}). If that was intended, keep a copy of the data of this server, which may have writes that the ensemble lacks; then run zabra recover adopt on its data folder and start it again. If not, stop server ${peer} and start this one again`,
        ),
      )
    return reason
  }

  /** Joins the ensemble of a leader if this member has no data and no ensemble yet; durable when it resolves. */
  async join({ cluster }: MemberExtension): Promise<void> {
    if (isSameCluster(cluster, this.#current) || this.wasRecovered) return
    const { platform, database } = this.#options
    await writeClusterId(platform.disk, database.folders.snapshots, cluster)
    this.#current = cluster
  }
}
