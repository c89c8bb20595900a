import { counterOf, epochOf } from '@zabra/protocol'
import type { Address, Disk, Platform } from '@zabra/runtime'
import type { ClientAddresses } from '../connections/client-ports.ts'
import type { Configurations } from '../core/election/index.ts'
import {
  ConfigurationError,
  parseConfiguration,
  printConfiguration,
  sameMembership,
  votersOf,
  type EnsembleConfiguration,
  type MemberConfiguration,
  type MemberRole,
  type ServerId,
} from '../core/quorum/index.ts'
import { readConfigurationNode, writeConfigurationNode, type Tree } from '../core/tree/index.ts'
import type { Zxid } from '../core/types.ts'
import type { ServerSettings } from '../settings/index.ts'
import { loadConfigurations, removeProposed, writeActive, writeProposed } from './configuration-files.ts'

/** Where to listen: on all interfaces when there is no host. */
export interface ListenAddress {
  readonly host?: string
  readonly port: number
}

/** Holds the configurations that a member knows, in memory and on disk. A standalone server is its only member. */
export class Membership {
  readonly self: ServerId
  /** Whether this server belongs to no ensemble. Its configuration is then written nowhere, neither to disk nor to the tree. */
  readonly isStandalone: boolean
  readonly #disk: Disk
  readonly #folder: string
  /** The configuration of the operator. */
  readonly #written: EnsembleConfiguration
  #active: EnsembleConfiguration
  #voters: number
  #proposed: EnsembleConfiguration | undefined
  /** The configuration at the end of the log, if it is newer than the active one. */
  #logged: EnsembleConfiguration | undefined
  /** Files are written one after the other. */
  #writing: Promise<void> = Promise.resolve()
  /** Whether the disk has refused to store the configuration in memory, because it was full for example. */
  #isBehind = false

  constructor(
    self: ServerId,
    { active, proposed }: Configurations,
    {
      disk,
      folder,
      written,
      isStandalone = false,
    }: { disk: Disk; folder: string; written: EnsembleConfiguration; isStandalone?: boolean },
  ) {
    this.#written = written
    this.self = self
    this.isStandalone = isStandalone
    this.#active = active
    this.#voters = votersOf(active).length
    this.#proposed = proposed
    this.#disk = disk
    this.#folder = folder
  }

  /**
   * Loads the configurations of a member from disk; that of a standalone server has one voter and no ports. Rejects with a
   * `ConfigurationError` when a file cannot be read as a configuration.
   */
  static async load(settings: ServerSettings, { disk, logger }: Platform): Promise<Membership> {
    const { serverId, dataDir: folder, ensemble } = settings
    if (ensemble === undefined) {
      const written = configurationOfOne(serverId)
      return new Membership(serverId, { active: written }, { disk, folder, written, isStandalone: true })
    }
    const known = await loadConfigurations(disk, folder, ensemble, logger)
    return new Membership(serverId, known, { disk, folder, written: ensemble })
  }

  /** The active configuration. */
  get active(): EnsembleConfiguration {
    return this.#active
  }

  /** The last configuration seen, if it is newer than the active one. */
  get proposed(): EnsembleConfiguration | undefined {
    const [received, logged] = [this.#proposed, this.#logged]
    return (logged?.version ?? 0) > (received?.version ?? 0) ? logged : received
  }

  get configurations(): Configurations {
    const { active, proposed } = this
    return proposed === undefined ? { active } : { active, proposed }
  }

  /** The role of this server. A server that the active configuration does not name is a participant without a vote. */
  get role(): MemberRole {
    return this.#active.members.get(this.self)?.role ?? 'participant'
  }

  /**
   * Returns a member of the active configuration, or of the proposed one. This server itself is found in the operator's configuration when
   * both lack it, so that it can follow after it was removed, and be added again.
   */
  member(id: ServerId): MemberConfiguration | undefined {
    const known = this.#active.members.get(id) ?? this.proposed?.members.get(id)
    return known ?? (id === this.self ? this.#written.members.get(id) : undefined)
  }

  /**
   * Returns this member's share of a limit that holds for the ensemble. As in Apache ZooKeeper all voters but one share it. An
   * observer has the share of a voter.
   */
  shareOf(limit: number): number {
    return this.#voters > 2 ? Math.max(1, Math.floor(limit / (this.#voters - 1))) : limit
  }

  /** The client address of this member by the operator's configuration and by the active one. */
  get clientAddresses(): ClientAddresses {
    const [configured, active] = [this.#written, this.#active].map(
      ({ members }) => members.get(this.self)?.client,
    )
    return { configured, active }
  }

  /** Returns the hosts of a member by the active and the proposed configuration; none for a server that is no member. */
  hostsOf(id: ServerId): readonly string[] {
    const known = [this.#active.members.get(id), this.proposed?.members.get(id)]
    return [...new Set(known.flatMap((member) => member?.addresses ?? []).map(({ host }) => host))]
  }

  /** Returns the hosts of all members by the active and the proposed configuration. */
  get memberHosts(): readonly string[] {
    const known = [...this.#active.members.values(), ...(this.proposed?.members.values() ?? [])]
    return [...new Set(known.flatMap(({ addresses }) => addresses).map(({ host }) => host))]
  }

  /** Returns the addresses at which a member accepts the connections of other members; none for a server that is no member. */
  addressesOf(id: ServerId, port: 'quorumPort' | 'electionPort'): readonly Address[] {
    return (this.member(id)?.addresses ?? []).map((address) => ({ host: address.host, port: address[port] }))
  }

  /** Returns the addresses on which this member listens for other members: its own ones, or their ports on all interfaces. */
  listenAddresses(port: 'quorumPort' | 'electionPort', onAllInterfaces: boolean): ListenAddress[] {
    const own = this.addressesOf(this.self, port)
    if (!onAllInterfaces) return [...own]
    return [...new Set(own.map((address) => address.port))].map((each) => ({ port: each }))
  }

  /** Records a configuration as proposed if it is newer than the active and the proposed one. Resolves when the configurations are on disk. */
  propose(configuration: EnsembleConfiguration): Promise<void> {
    const known = Math.max(this.#active.version, this.#proposed?.version ?? -1)
    if (configuration.version <= known) return this.#persisted()
    this.#proposed = configuration
    return this.#write(() => writeProposed(this.#disk, this.#folder, configuration))
  }

  /**
   * Takes a change at the end of the log as proposed, until it is known to be committed or the log is truncated: a leader may have
   * lost its role before a quorum had the change. The tree must be at the end of the log.
   */
  recallLogged(tree: Tree): void {
    const { text, zxid } = readConfigurationNode(tree)
    this.#logged = undefined
    if (zxid <= this.#active.version) return
    try {
      const configuration = parseConfiguration(text)
      // A superuser can write anything to the node. The version of a configuration that a reconfiguration has made is its zxid.
      if (configuration.version === zxid) this.#logged = configuration
    } catch (error) {
      if (!(error instanceof ConfigurationError)) throw error
    }
  }

  /**
   * Forgets a proposed configuration that is on disk and did not get into the log, which ends at `lastZxid`: the power was cut in between, or
   * the role ended. This server has not acknowledged it, so no quorum counts on that, and no history of this server has it. One of an epoch
   * before `currentEpoch` came with NEWLEADER, which was acknowledged, and so may the first version of a configuration. Returns undefined where
   * there is none, or resolves when it is off the disk.
   */
  forgetUnlogged(lastZxid: Zxid, currentEpoch: number): Promise<void> | undefined {
    const { version = 0 } = this.#proposed ?? {}
    if (version <= lastZxid || epochOf(version) < currentEpoch || counterOf(version) === 0) return undefined
    this.#proposed = undefined
    return this.#write(() => removeProposed(this.#disk, this.#folder))
  }

  /**
   * Forgets a proposed configuration of an epoch before this one, whose leader is established, if its history, which the tree has, does not
   * contain that change: then no leader will ever commit it. Returns undefined where there is none, or resolves when it is off the disk.
   */
  forgetLost(tree: Tree, epoch: number): Promise<void> | undefined {
    const { proposed } = this
    if (proposed === undefined || epochOf(proposed.version) >= epoch) return undefined
    if (readConfigurationNode(tree).zxid >= proposed.version) return undefined
    this.#proposed = this.#logged = undefined
    return this.#write(() => removeProposed(this.#disk, this.#folder))
  }

  /** Activates a configuration if it is newer: in memory at once, on disk when `persisted` resolves. */
  activate(configuration: EnsembleConfiguration): {
    /** Whether members, roles or addresses have changed. */
    readonly changed: boolean
    readonly before: EnsembleConfiguration
    readonly persisted: Promise<void>
  } {
    const before = this.#active
    if (configuration.version <= before.version)
      return { changed: false, before, persisted: this.#persisted() }
    this.#active = configuration
    this.#voters = votersOf(configuration).length
    if ((this.#proposed?.version ?? -1) <= configuration.version) this.#proposed = undefined
    if ((this.#logged?.version ?? -1) <= configuration.version) this.#logged = undefined
    const persisted = this.#write(() => writeActive(this.#disk, this.#folder, configuration))
    return { changed: !sameMembership(before, configuration), before, persisted }
  }

  /** Writes the active configuration to its node in the tree. `time` in milliseconds since 1970. */
  writeConfigurationNode(tree: Tree, time: number): void {
    const text = new TextEncoder().encode(printConfiguration(this.#active))
    writeConfigurationNode(tree, text, this.#active.version, time)
  }

  /** Resolves when the configurations in memory are on disk. Writes again what the disk has refused. */
  #persisted(): Promise<void> {
    return this.#isBehind ? this.#write(() => Promise.resolve()) : this.#writing
  }

  #write(action: () => Promise<void>): Promise<void> {
    const before = this.#writing.catch(() => (this.#isBehind = true))
    this.#writing = before.then(() => (this.#isBehind ? this.#writeAll() : action()))
    this.#writing.catch(() => (this.#isBehind = true))
    return this.#writing
  }

  async #writeAll(): Promise<void> {
    await writeActive(this.#disk, this.#folder, this.#active)
    if (this.#proposed === undefined) await removeProposed(this.#disk, this.#folder)
    else await writeProposed(this.#disk, this.#folder, this.#proposed)
    this.#isBehind = false
  }
}

const configurationOfOne = (id: ServerId): EnsembleConfiguration => ({
  version: 0,
  members: new Map([[id, { id, addresses: [], role: 'participant' }]]),
})
