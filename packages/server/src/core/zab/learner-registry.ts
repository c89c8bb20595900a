import type { Zxid } from '../types.ts'
import { awaitsEpoch, LearnerProgress } from './learner-progress.ts'
import type { ConnectionId, LeaderWork } from './leader-types.ts'
import type { TickCounter } from './tick-counter.ts'

/** Options of a registry. Times are in ticks. */
export interface LearnerRegistryOptions {
  readonly initLimit: number
  readonly syncLimit: number
  readonly ticks: TickCounter
  /** Receives the work of sending to learners and dropping them. */
  readonly emit: (work: Extract<LeaderWork, { do: 'send' | 'drop' }>) => void
  /** Called after a learner was removed. */
  readonly onRemoved?: (learner: LearnerProgress) => void
}

/** Ticks of silence after which an active learner looks dead. */
const LIVE_TICKS = 2
/** The most connections without a proof that may claim one id and have not accepted the epoch. */
const MAX_CLAIMS = 4

/** The connections to the learners of a leader or an observer master, in the order in which they were accepted. */
export class LearnerRegistry {
  readonly #options: LearnerRegistryOptions
  readonly #learners = new Map<ConnectionId, LearnerProgress>()
  #followers: readonly ConnectionId[] = []
  #observers: readonly ConnectionId[] = []

  constructor(options: LearnerRegistryOptions) {
    this.#options = options
  }

  /** The connections that get PROPOSAL and COMMIT. The list is replaced, never changed, since work refers to it. */
  get followers(): readonly ConnectionId[] {
    return this.#followers
  }

  /** The connections that get INFORM. The list is replaced, never changed. */
  get observers(): readonly ConnectionId[] {
    return this.#observers
  }

  get(connection: ConnectionId): LearnerProgress | undefined {
    return this.#learners.get(connection)
  }

  *[Symbol.iterator](): IterableIterator<LearnerProgress> {
    yield* this.#learners.values()
  }

  /**
   * Adds a connection, which has `initLimit` ticks to identify itself. `isAuthenticated`: the other side has proved which server it
   * is.
   */
  add(connection: ConnectionId, isAuthenticated: boolean): void {
    const { ticks, initLimit } = this.#options
    this.#learners.set(connection, new LearnerProgress(connection, ticks.now + initLimit, isAuthenticated))
  }

  /** Adds a learner to the followers or observers. */
  join(learner: LearnerProgress): void {
    learner.hasJoined = true
    if (learner.isObserver) this.#observers = [...this.#observers, learner.connection]
    else this.#followers = [...this.#followers, learner.connection]
  }

  remove(learner: LearnerProgress | undefined): void {
    if (learner === undefined || !this.#learners.delete(learner.connection)) return
    if (learner.hasJoined) {
      const without = (list: readonly ConnectionId[]): ConnectionId[] =>
        list.filter((connection) => connection !== learner.connection)
      if (learner.isObserver) this.#observers = without(this.#observers)
      else this.#followers = without(this.#followers)
    }
    this.#options.onRemoved?.(learner)
  }

  /** Closes the connection of a learner and removes it. */
  drop(learner: LearnerProgress, reason: string): void {
    this.#options.emit({ do: 'drop', connection: learner.connection, reason })
    this.remove(learner)
  }

  send({ connection }: LearnerProgress, type: number, zxid: Zxid, data: Uint8Array | null): void {
    this.#options.emit({ do: 'send', to: connection, packet: { type, zxid, data, auth: null } })
  }

  /** Extends the deadline of a learner from which a packet was received. */
  heartbeat(learner: LearnerProgress): void {
    const { ticks, initLimit, syncLimit } = this.#options
    if (learner.state === 'active') learner.deadline = ticks.now + syncLimit
    else if (learner.state === 'syncing') learner.deadline = ticks.now + initLimit + syncLimit
  }

  /** Gives a learner `initLimit` ticks for its next packet. */
  awaitPacket(learner: LearnerProgress): void {
    learner.deadline = this.#options.ticks.now + this.#options.initLimit
  }

  /** Number of identified learners. */
  get identifiedCount(): number {
    let count = 0
    for (const { state } of this.#learners.values()) if (state !== 'unidentified') count++
    return count
  }

  /** Whether any identified learner is not an observer. */
  get hasParticipants(): boolean {
    for (const { state, isObserver } of this.#learners.values())
      if (state !== 'unidentified' && !isObserver) return true
    return false
  }

  /** Drops the other connections of the server of a learner. */
  replaceOthers(learner: LearnerProgress): void {
    const message = 'the same server has connected again'
    for (const other of this.#othersOf(learner))
      this.drop(
        other,
        other.state === 'active' && !learner.isAuthenticated
          ? `${message}, after ${this.#silentFor(other)} ticks of silence`
          : message,
      )
  }

  /**
   * Returns why a learner may not take the place of the other connections of its server, or undefined. One that has proved its id
   * may. Otherwise an active learner stays: a program that reaches the port from the address of a member can claim its id.
   */
  placeRefusal(learner: LearnerProgress): string | undefined {
    if (learner.isAuthenticated) return undefined
    const others = this.#othersOf(learner)
    const { serverId } = learner
    if (others.some((other) => other.isAuthenticated))
      return `server ${serverId} is connected, has proved its id, and this connection has not`
    if (others.some((other) => this.#isAlive(other))) return `server ${serverId} is connected already`
    if (others.filter(awaitsEpoch).length < MAX_CLAIMS) return undefined
    return `${MAX_CLAIMS} connections claim to be server ${serverId} and have not accepted the epoch`
  }

  /** Whether a learner is active and answers PINGs, of which it gets two in a tick. */
  #isAlive(learner: LearnerProgress): boolean {
    return learner.state === 'active' && this.#silentFor(learner) <= LIVE_TICKS
  }

  /** Returns how many ticks ago an active learner was last heard. */
  #silentFor({ deadline }: LearnerProgress): number {
    return this.#options.ticks.now + this.#options.syncLimit - deadline
  }

  #othersOf(learner: LearnerProgress): LearnerProgress[] {
    return [...this.#learners.values()].filter(
      (other) => other !== learner && other.serverId === learner.serverId,
    )
  }

  /** Returns the unidentified connections, oldest first. */
  unidentified(): LearnerProgress[] {
    return [...this.#learners.values()].filter(({ state }) => state === 'unidentified')
  }
}
