import type { CommittedHistory, ServerLog } from '../history/committed-history.ts'
import type { History } from '../history/records.ts'
import type { QuorumRecord } from '../simulation/quorum-monitor.ts'

/** Everything known about a run when it is over. */
export interface Evidence {
  readonly history: History
  readonly committed: CommittedHistory
  /** The logs of each server at the end of the run. */
  readonly logs: readonly ServerLog[]
  /** What servers sent each other; undefined for a standalone server. */
  readonly quorum: QuorumRecord | undefined
  /** Clients that read the whole tree after healing, each from one server: client name to server. */
  readonly readers: ReadonlyMap<string, string>
  /** World time at which all faults ended, long before the end of the run; Infinity where they did not. */
  readonly healedAt: number
  /** Sessions whose clients were silent for longer than their timeouts before the trees were read. */
  readonly silentSessions: ReadonlySet<string>
  /** How far wall clocks may differ from world time, in milliseconds; undefined when clocks jumped. */
  readonly maxClockErrorMs: number | undefined
  /** How long before its timeout a client may learn that its session is over, in milliseconds; undefined where clocks run at other rates. */
  readonly maxEarlyEndMs: number | undefined
  /** How old the state that a read shows may be, in milliseconds; undefined for no bound. */
  readonly maxStalenessMs: number | undefined
  /**
   * Servers that were outside the configuration for some time. The leader does not believe the identities of clients in their
   * requests then.
   */
  readonly unnamedServers: ReadonlySet<string>
  /** Whether a disk was full for a while: a standalone server then refuses writes, and later ones may succeed. */
  readonly diskWasFull: boolean
  /** The epochs on each server's disk, sampled when they change. */
  readonly epochs: readonly EpochSample[]
}

export interface EpochSample {
  readonly server: string
  readonly at: number
  readonly accepted: number
  readonly current: number
  /** Whether the disk was replaced. */
  readonly isNew: boolean
}

export interface Checker {
  readonly name: string
  /** The property that the checker proves, in one sentence. */
  readonly proves: string
  /** Returns the violations, each a sentence. */
  check(evidence: Evidence): string[]
}
