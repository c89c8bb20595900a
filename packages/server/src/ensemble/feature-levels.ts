import type { Disk } from '@zabra/runtime'
import type { FeatureReport, FinalizePlan, FinalizeResult } from '../admin/index.ts'
import {
  afterLeader,
  isSameState,
  requiredLevel,
  type FeatureState,
  type ServerId,
} from '../core/quorum/index.ts'
import type { MemberExtension } from '../core/zab/index.ts'
import { readFeatureState, RecoveryError, writeFeatureState } from '../persistence/index.ts'
import { FEATURE_LEVEL } from '../version.ts'

/** Finalizes levels: what leads the ensemble, or a standalone server. */
export interface FinalizesLevels {
  plan(level: number | undefined): FinalizePlan
  finalize(level: number | undefined): Promise<FinalizeResult>
}

/**
 * Holds the feature levels of a member, over roles and leaders (quorum-protocol 18.9). `usable` is what decides whether a format or a packet
 * may be used.
 */
export class FeatureLevels implements FeatureReport {
  readonly release: number
  readonly #disk: Disk
  readonly #folder: string
  #state: FeatureState
  #authority: FinalizesLevels | undefined
  /** Settles with the last write. */
  #written: Promise<void> = Promise.resolve()

  /** `folder` is that of the epochs, and `state` what is stored there. */
  constructor(disk: Disk, folder: string, state: FeatureState, release = FEATURE_LEVEL) {
    this.#disk = disk
    this.#folder = folder
    this.#state = state
    this.release = release
  }

  /** Reads the levels of a member. Rejects with a `RecoveryError` where its data may need a later release than `release`. */
  static async load(disk: Disk, folder: string, release = FEATURE_LEVEL): Promise<FeatureLevels> {
    const state = await readFeatureState(disk, folder)
    const level = requiredLevel(state)
    if (level <= release) return new FeatureLevels(disk, folder, state, release)
    throw new RecoveryError(
      `Expected data of feature level ${release} or below, which this release reads, got data of an ensemble that was ${state.finalized === level ? 'finalized' : 'asked to finalize'} at level ${level}`,
      folder,
      `Install a release of feature level ${level} or later; there is no way back to this one but a backup from before.`,
    )
  }

  /** The levels that are stored. */
  get state(): FeatureState {
    return this.#state
  }

  /** The level whose formats and packets may be used now: each member of the ensemble reads them, and those that join will. */
  get usable(): number {
    return this.#state.finalized
  }

  get finalized(): number {
    return this.#state.finalized
  }

  get proposed(): number {
    return this.#state.proposed
  }

  /** Returns why another server cannot work with this one, or undefined. `said` is undefined for one that runs Apache ZooKeeper. */
  refusalOf(peer: ServerId, said: Pick<MemberExtension, 'level'> | undefined): string | undefined {
    const level = requiredLevel(this.#state)
    if (level === 0 || (said !== undefined && said.level >= level)) return undefined
    const runs = said === undefined ? 'Apache ZooKeeper' : `a release of feature level ${said.level}`
    return `server ${peer} runs ${runs}, and this ensemble was finalized at level ${level}: there is no way back. Install a release of Zabra of level ${level} or later on it`
  }

  /** Returns why this member cannot follow a leader, or undefined. */
  refusalOfLeader(leader: ServerId, said: MemberExtension | undefined): string | undefined {
    const level = said?.features === undefined ? 0 : requiredLevel(said.features)
    return level > this.release ? this.#tooHigh(leader, level) : this.refusalOf(leader, said)
  }

  #tooHigh(leader: ServerId, level: number): string {
    return `server ${leader} leads an ensemble that was finalized at feature level ${level}, and this release has level ${this.release}. Install a later release on this server`
  }

  /** Takes the finalized level of a leader, before its data; durable when it resolves. */
  async join({ finalized }: FeatureState): Promise<void> {
    await this.#store((own) => ({ ...own, finalized: Math.max(own.finalized, finalized) }))
  }

  /** Takes the levels of a leader whose history this member has taken; durable when it resolves. */
  async follow(leader: FeatureState): Promise<void> {
    await this.#store((own) => afterLeader(own, leader))
  }

  /** Proposes a level, at the leader; durable when it resolves. */
  async propose(level: number): Promise<void> {
    await this.#store((own) => (level > own.finalized ? { ...own, proposed: level } : own))
  }

  /** Finalizes a level, which all members have stored, if it is proposed; durable when it resolves. */
  async confirm(level: number): Promise<void> {
    await this.#store((own) => (own.proposed === level ? { finalized: level, proposed: 0 } : own))
  }

  /** Resolves when the writes that have begun have ended. */
  written(): Promise<void> {
    return this.#written
  }

  // The server leads

  /** Lets `authority` finalize levels from now on. */
  connect(authority: FinalizesLevels): void {
    this.#authority = authority
  }

  disconnect(authority: FinalizesLevels): void {
    if (this.#authority === authority) this.#authority = undefined
  }

  plan(level?: number): FinalizePlan | undefined {
    return this.#authority?.plan(level)
  }

  async finalize(level?: number): Promise<FinalizeResult | undefined> {
    return this.#authority?.finalize(level)
  }

  /** What other members have received counts from here on, so the levels are stored first. One write runs after the other. */
  async #store(change: (own: FeatureState) => FeatureState): Promise<void> {
    const written = this.#written.then(async () => {
      const changed = change(this.#state)
      if (isSameState(changed, this.#state)) return
      await writeFeatureState(this.#disk, this.#folder, changed)
      this.#state = changed
    })
    this.#written = written.catch(() => {})
    await written
  }
}
