import type { Address, Disk, Platform } from '@zabra/runtime'
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
import type { ClientAddresses } from '../connections/client-ports.ts'
import type { ServerSettings } from '../settings/index.ts'
import { loadConfigurations, writeActive, writeProposed } from './configuration-files.ts'

/** The members of the ensemble as one member knows them, in memory and on disk. A standalone server is its only member. */
export class Membership {
  readonly self: ServerId
  /** Whether this server belongs to no ensemble. Its configuration is then written nowhere, neither to disk nor to the tree. */
  readonly isStandalone: boolean
  readonly #disk: Disk
  readonly #folder: string
  /** What the operator has configured. */
  readonly #written: EnsembleConfiguration
  #active: EnsembleConfiguration
  #voters: number
  #proposed: EnsembleConfiguration | undefined
  /** The configuration at the end of the log, if it is newer than the active one. */
  #logged: EnsembleConfiguration | undefined
  /** Files are written one after the other. */
  #writing: Promise<void> = Promise.resolve()
  /** Whether memory has something that the disk has refused, because it was full for example. */
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
   * Loads the configurations of a member from disk; those of a standalone server have one voter and no ports. Rejects with a
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

  /** In force. */
  get active(): EnsembleConfiguration {
    return this.#active
  }

  /** Seen last, if it is newer than the one in force. */
  get proposed(): EnsembleConfiguration | undefined {
    const [told, logged] = [this.#proposed, this.#logged]
    return (logged?.version ?? 0) > (told?.version ?? 0) ? logged : told
  }

  get configurations(): Configurations {
    const { active, proposed } = this
    return proposed === undefined ? { active } : { active, proposed }
  }

  /** A participant that no configuration in force names follows without a voice. */
  get role(): MemberRole {
    return this.#active.members.get(this.self)?.role ?? 'participant'
  }

  /**
   * Members of any configuration that matters, the one in force first. This server is where its operator has put it also when
   * it was removed, so that it can follow, and come back.
   */
  member(id: ServerId): MemberConfiguration | undefined {
    const known = this.#active.members.get(id) ?? this.proposed?.members.get(id)
    return known ?? (id === this.self ? this.#written.members.get(id) : undefined)
  }

  /**
   * HOT. What a member may have of something that all of them have together: as in ZooKeeper all voters but one share it. An
   * observer's part is that of a voter.
   */
  shareOf(limit: number): number {
    return this.#voters > 2 ? Math.max(1, Math.floor(limit / (this.#voters - 1))) : limit
  }

  /** Where this member serves clients, by what its operator has written and by the configuration in force. */
  get clientAddresses(): ClientAddresses {
    const [written, active] = [this.#written, this.#active].map(
      ({ members }) => members.get(this.self)?.client,
    )
    return { configured: written, active }
  }

  /** Where a member takes the connections of others; none for a stranger. */
  addressesOf(id: ServerId, port: 'quorumPort' | 'electionPort'): readonly Address[] {
    return (this.member(id)?.addresses ?? []).map((address) => ({ host: address.host, port: address[port] }))
  }

  /** A newer configuration was proposed. It is kept on disk when this resolves. */
  propose(configuration: EnsembleConfiguration): Promise<void> {
    if (configuration.version <= this.#active.version) return this.#kept()
    if (configuration.version > (this.#proposed?.version ?? -1)) this.#proposed = configuration
    return this.#write(() => writeProposed(this.#disk, this.#folder, configuration))
  }

  /**
   * Counts a change that the log has as proposed, until it is known to be committed or the log has it no more: a leader may have
   * lost its role before a quorum had it. The tree must be at the end of the log.
   */
  recallLogged(tree: Tree): void {
    const { text, zxid } = readConfigurationNode(tree)
    this.#logged = undefined
    if (zxid <= this.#active.version) return
    try {
      const configuration = parseConfiguration(text)
      // A super user may have written anything there; what a change has made carries its zxid.
      if (configuration.version === zxid) this.#logged = configuration
    } catch (error) {
      if (!(error instanceof ConfigurationError)) throw error
    }
  }

  /** Brings a newer configuration into force; in memory at once, on disk when `kept` resolves. */
  activate(configuration: EnsembleConfiguration): {
    /** Whether members, roles or addresses have changed. */
    readonly changed: boolean
    readonly before: EnsembleConfiguration
    readonly kept: Promise<void>
  } {
    const before = this.#active
    if (configuration.version <= before.version) return { changed: false, before, kept: this.#kept() }
    this.#active = configuration
    this.#voters = votersOf(configuration).length
    if ((this.#proposed?.version ?? -1) <= configuration.version) this.#proposed = undefined
    if ((this.#logged?.version ?? -1) <= configuration.version) this.#logged = undefined
    const kept = this.#write(() => writeActive(this.#disk, this.#folder, configuration))
    return { changed: !sameMembership(before, configuration), before, kept }
  }

  /** Lets clients see the configuration in force. `time` in milliseconds since 1970. */
  writeConfigurationNode(tree: Tree, time: number): void {
    const text = new TextEncoder().encode(printConfiguration(this.#active))
    writeConfigurationNode(tree, text, this.#active.version, time)
  }

  /** Resolves when the disk has what memory has. What it refused once is written again. */
  #kept(): Promise<void> {
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
    if (this.#proposed !== undefined) await writeProposed(this.#disk, this.#folder, this.#proposed)
    this.#isBehind = false
  }
}

const configurationOfOne = (id: ServerId): EnsembleConfiguration => ({
  version: 0,
  members: new Map([[id, { id, addresses: [], role: 'participant' }]]),
})
