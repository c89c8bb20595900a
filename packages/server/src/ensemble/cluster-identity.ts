import type { Platform } from '@zabra/runtime'
import {
  compareClusters,
  formatClusterId,
  hasClusterId,
  isFinal,
  isSameCluster,
  type ClusterId,
  NO_CLUSTER,
  verifierOf,
  votersOf,
  type EnsembleConfiguration,
  type ServerId,
} from '../core/quorum/index.ts'
import type { MemberExtension } from '../core/zab/index.ts'
import type { Database } from '../database/index.ts'
import { drawClusterId, writeClusterId } from '../persistence/index.ts'

/** What a cluster identity needs of its member. */
export interface ClusterIdentityOptions {
  readonly platform: Pick<Platform, 'disk' | 'random'>
  readonly database: Pick<Database, 'folders' | 'lastZxid' | 'epochs'>
  /** The feature level of this release. */
  readonly release: number
  /** Called when another member has shown that the ensemble was recovered without this one. */
  readonly superseded: (error: Error) => void
}

/**
 * Keeps members of different ensembles apart, and members of an ensemble that has lost its quorum from the one that was recovered without
 * them (quorum-protocol 18.6). Members of Apache ZooKeeper say nothing, and are not kept apart.
 */
export class ClusterIdentity {
  readonly #options: ClusterIdentityOptions
  #current: ClusterId
  #isAnnounced = false
  /** Whether this member has led or followed since it started. */
  #hasHadLeader = false
  /** Settles with the last write: one role may begin while the write of another runs. */
  #written: Promise<void> = Promise.resolve()
  /** The write that makes the id final, while it runs: each acknowledgement of a quorum asks for it. */
  #confirming: Promise<void> | undefined

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
    return this.#current.generation > 0
  }

  /** Returns what this member says of itself. */
  extension(sharesSecret = false): MemberExtension {
    return { level: this.#options.release, sharesSecret, hasData: this.#hasData, cluster: this.#current }
  }

  get #hasData(): boolean {
    const { lastZxid, epochs } = this.#options.database
    return lastZxid > 0 || epochs.accepted > 0
  }

  /** Whether this leader tells its learners its id. */
  get isAnnounced(): boolean {
    return this.#isAnnounced && hasClusterId(this.#current)
  }

  /** Returns what this leader says of itself to its learners. */
  get announcement(): MemberExtension {
    return { ...this.extension(), ...(this.isAnnounced ? {} : { cluster: NO_CLUSTER }) }
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
    if (relation === 'other' && said.cluster.generation + this.#current.generation === 0)
      return `server ${peer} has data of another ensemble (${other}, this one is ${own}). If it belongs here, stop it, keep a copy of its data, and run zabra recover adopt on its data folder; else correct the addresses in the lines server.N`
    if (relation === 'other')
      return `server ${peer} has data of another ensemble (${other}, this one is ${own}): it ${said.cluster.generation === this.#current.generation ? 'was recovered apart from this one' : 'is from before a recovery'}. Stop it, keep a copy of its data, and run zabra recover adopt on its data folder`
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

  /** Takes the id of a leader, before this member accepts its epoch, if this member has none or no data; durable when it resolves. */
  async join({ cluster }: MemberExtension): Promise<void> {
    if (!hasClusterId(this.#current) || !this.#hasData) await this.#take(cluster)
  }

  /** Takes the id of a leader whose history this member has taken, if its own may be replaced; durable when it resolves. */
  async follow({ cluster }: MemberExtension): Promise<void> {
    if (!hasClusterId(this.#current) || this.#current.isProposed) await this.#take(cluster)
  }

  /** Resolves when the writes of the id that have begun have ended. */
  written(): Promise<void> {
    return this.#written
  }

  /** Makes the id final once a quorum has it; durable when it resolves. */
  confirm(): Promise<void> {
    if (!this.#current.isProposed) return Promise.resolve()
    const confirmed = { ...this.#current, isProposed: false }
    this.#confirming ??= this.#store(confirmed).finally(() => (this.#confirming = undefined))
    return this.#confirming
  }

  /** Gives a standalone server an id if it has none; durable when it resolves. */
  async begin(): Promise<void> {
    if (!hasClusterId(this.#current)) await this.#store(this.#draw(false))
  }

  /**
   * Gives an ensemble without a final id one, by its leader, before the epoch begins, and again as voters join: the final one of a voter,
   * else one that is proposed. `voters` is what the other voters say that are connected. Announces none while one of them runs Apache
   * ZooKeeper, while they are no quorum with this member, or while several proposed ids may be final at members that are away: leaders of Apache ZooKeeper in between pass none on,
   * so the last history need not be that of a final id. Durable when it resolves.
   */
  async propose(
    voters: ReadonlyMap<ServerId, MemberExtension | undefined>,
    self: ServerId,
    configuration: EnsembleConfiguration,
  ): Promise<void> {
    const isOwnFinal = isFinal(this.#current)
    const said = [...voters.values()]
    if ((isOwnFinal && this.#hasData) || this.wasRecovered) return this.#announce(this.#current)
    const isQuorum = verifierOf(configuration).isQuorum(new Set([self, ...voters.keys()]))
    if (!isQuorum || said.includes(undefined)) return this.#announce(undefined)
    // The final id of a server without data may be replaced: the server was started alone before.
    const known = said.find((one) => isFinal(one!.cluster) && (one!.hasData || !isOwnFinal))
    if (known !== undefined) return this.#announce(known.cluster)
    const ids = new Map([...voters].map(([id, one]) => [id, one!.cluster])).set(self, this.#current)
    const proposed = [...ids.values()].filter((id) => id.isProposed)
    const possible = proposed.filter((id) => mayBeFinal(id, ids, configuration))
    if (possible.some((id) => !isSameCluster(id, possible[0]!))) return this.#announce(undefined)
    const own = hasClusterId(this.#current) ? this.#current : undefined
    await this.#announce(possible[0] ?? own ?? proposed[0] ?? this.#draw(true))
  }

  /** Stores an id that this leader tells its learners from now on; undefined tells them none. */
  async #announce(cluster: ClusterId | undefined): Promise<void> {
    this.#isAnnounced = false
    if (cluster === undefined) return
    await this.#take(cluster)
    this.#isAnnounced = true
  }

  /** Returns whether a voter that has acknowledged NEWLEADER has the id of this leader: it keeps a final one that belongs to its data. */
  isTakenBy({ cluster, hasData }: MemberExtension): boolean {
    return !hasData || !isFinal(cluster) || isSameCluster(cluster, this.#current)
  }

  #draw(isProposed: boolean): ClusterId {
    return drawClusterId(this.#options.platform.random, 0, isProposed)
  }

  async #take(cluster: ClusterId): Promise<void> {
    const isKnown = isSameCluster(cluster, this.#current) && cluster.isProposed === this.#current.isProposed
    if (isKnown || !hasClusterId(cluster) || this.wasRecovered) return
    await this.#store(cluster)
  }

  /** What other members have received counts from here on, so the id is stored first. */
  async #store(cluster: ClusterId): Promise<void> {
    const { platform, database } = this.#options
    const written = this.#written.then(() =>
      writeClusterId(platform.disk, database.folders.snapshots, cluster),
    )
    this.#written = written.catch(() => {})
    await written
    this.#current = cluster
  }
}

/**
 * Returns whether an id that is proposed may be final somewhere: a quorum may have it, of voters that say so and of those that say
 * nothing. No other id replaces it then, so each of two final ones would be kept by a quorum, and the two share a voter.
 */
function mayBeFinal(
  id: ClusterId,
  ids: ReadonlyMap<ServerId, ClusterId>,
  configuration: EnsembleConfiguration,
): boolean {
  const holders = votersOf(configuration).filter((voter) => {
    const other = ids.get(voter)
    return other === undefined || isSameCluster(other, id)
  })
  return verifierOf(configuration).isQuorum(new Set(holders))
}
