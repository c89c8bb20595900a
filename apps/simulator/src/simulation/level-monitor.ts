import type { SimulatedServer, SimulatedWorld } from '@zabra/testing'
import { areSame, durableLevels, required, visibleLevels, type Levels } from './level-file.ts'

const SAMPLE_INTERVAL_MS = 20
/**
 * How long a server may serve below the level of its ensemble, in milliseconds: until it notices that it has lost its leader, with a slow
 * clock.
 */
const BEHIND_MS = 5000

/** A server whose feature level is known. */
interface Seen {
  readonly server: SimulatedServer
  levels: Levels
  /** The level that its processes have written, durable or not. */
  written: number
  /** The release of its process when its disk was looked at, and the highest one that it ever was. */
  release: number
  highest: number
  /** When it was first seen serving below the finalized level, without a break; undefined while it does not. */
  behindSince: number | undefined
}

export interface LevelMonitorOptions {
  readonly world: SimulatedWorld
  readonly servers: readonly SimulatedServer[]
  /** The members of the configuration; undefined where it changes. */
  readonly members: ReadonlySet<number> | undefined
  readonly violate: (what: string) => void
}

/**
 * Watches the feature levels on the disks of all servers (quorum-protocol 18.9): a finalized level never goes back and is on the disks of
 * all members, and no server serves whose release is below it.
 */
export class LevelMonitor {
  readonly #options: LevelMonitorOptions
  readonly #seen: readonly Seen[]
  readonly #reported = new Set<string>()
  /** The highest level that any disk has had as finalized. */
  finalized = 0

  constructor(options: LevelMonitorOptions) {
    this.#options = options
    this.#seen = options.servers.map((server) => {
      const release = server.featureLevel!
      const seen = {
        server,
        levels: durableLevels(server.host),
        written: required(visibleLevels(server.host)),
        release,
        highest: release,
        behindSince: undefined,
      }
      server.onReplaceDisk.push(() => {
        seen.levels = { finalized: 0, proposed: 0 }
        seen.written = 0
      })
      return seen
    })
    this.#sample()
  }

  /** Whether all disks hold the same level, and none waits to be finalized. */
  get hasSettled(): boolean {
    const [first, ...others] = this.#seen.map(({ server }) => durableLevels(server.host))
    return first!.proposed === 0 && others.every((levels) => areSame(levels, first!))
  }

  /** Returns the level of each server, for messages. */
  describe(): string {
    return this.#seen
      .map(({ server }) => `${server.host.name} ${describeLevels(durableLevels(server.host))}`)
      .join(', ')
  }

  /** A server has accepted a request to finalize a level, and says that it is final where `isFinal`. */
  accepted(server: SimulatedServer, level: number, isFinal: boolean): void {
    const { finalized } = durableLevels(server.host)
    if (isFinal && finalized < level)
      this.#violate(
        server,
        'answered',
        `answered that level ${level} is final, and its disk has ${finalized}`,
      )
    this.#checkReleases(server, level)
  }

  #sample(): void {
    const { world } = this.#options
    for (const seen of this.#seen) this.#look(seen)
    for (const seen of this.#seen) this.#checkService(seen)
    world.schedule(SAMPLE_INTERVAL_MS, undefined, 'look at levels', () => this.#sample())
  }

  #look(seen: Seen): void {
    const { server } = seen
    const [before, levels] = [seen.levels, durableLevels(server.host)]
    this.#checkWritten(seen)
    if (areSame(before, levels)) return
    seen.levels = levels
    if (levels.finalized < before.finalized)
      this.#violate(
        server,
        'back',
        `has finalized level ${levels.finalized} on its disk, and had ${before.finalized}`,
      )
    if (required(levels) > required(before)) this.#checkReleases(server, required(levels))
    if (levels.finalized > this.finalized) this.#checkStored(server, (this.finalized = levels.finalized))
  }

  /**
   * A process writes only levels that its release reads. Judged when the level is written: what it wrote can become durable in a power cut
   * after it has ended.
   */
  #checkWritten(seen: Seen): void {
    const { server, written: before } = seen
    const levels = visibleLevels(server.host)
    // The one that has written what is seen now may be over.
    const release = Math.max(seen.release, server.featureLevel!)
    seen.written = required(levels)
    seen.release = server.featureLevel!
    seen.highest = Math.max(seen.highest, seen.release)
    if (seen.written > Math.max(before, release))
      this.#violate(server, 'too high', `of release ${release} has written ${describeLevels(levels)}`)
  }

  /** A level is proposed only where each member has run a release that reads it. */
  #checkReleases(server: SimulatedServer, level: number): void {
    for (const { server: other, highest } of this.#members)
      if (Math.max(highest, other.featureLevel!) < level)
        this.#violate(
          server,
          'unread',
          `took level ${level}, which no release of ${other.host.name} reads: it has run up to ${highest}`,
        )
  }

  /** A level is final only where each member has stored it. */
  #checkStored(server: SimulatedServer, level: number): void {
    for (const { server: other } of this.#members) {
      const stored = durableLevels(other.host)
      if (required(stored) < level)
        this.#violate(
          server,
          'alone',
          `has finalized level ${level}, and ${other.host.name} has ${describeLevels(stored)}`,
        )
    }
  }

  #checkService(seen: Seen): void {
    const { server, levels } = seen
    const { serving, role } = server.server ?? { serving: false, role: 'looking' }
    if (!serving || role === 'read-only' || server.host.isPaused) {
      seen.behindSince = undefined
      return
    }
    const own = required(levels)
    if (own > server.featureLevel!)
      this.#violate(
        server,
        'below its disk',
        `serves as release ${server.featureLevel}, and its disk has ${describeLevels(levels)}`,
      )
    if (own >= this.finalized) {
      seen.behindSince = undefined
      return
    }
    const { now } = this.#options.world
    seen.behindSince ??= now
    const canBeStale = role !== 'leading' || this.#options.members === undefined
    if (canBeStale && now - seen.behindSince <= BEHIND_MS) return
    this.#violate(
      server,
      'behind',
      `of release ${server.featureLevel} is ${role} with ${describeLevels(levels)}, and level ${this.finalized} is finalized`,
    )
  }

  get #members(): readonly Seen[] {
    const { members } = this.#options
    return this.#seen.filter(({ server }) => members?.has(server.id) === true)
  }

  /** Reports each kind of violation once for each server. */
  #violate({ host }: SimulatedServer, kind: string, what: string): void {
    const key = `${host.name} ${kind}`
    if (this.#reported.has(key)) return
    this.#reported.add(key)
    const { world, violate } = this.#options
    violate(`${host.name} ${what} at ${world.now.toFixed(1)} ms`)
  }
}

const describeLevels = ({ finalized, proposed }: Levels): string =>
  `level ${finalized}${proposed > 0 ? ` and ${proposed} proposed` : ''}`
