import type { CommittedHistory, ServerLog } from '../history/committed-history.ts'
import type { History } from '../history/records.ts'
import type { QuorumRecord } from '../simulation/quorum-monitor.ts'

/** All that is known of a run when it is over. */
export interface Evidence {
  readonly history: History
  readonly committed: CommittedHistory
  /** The logs of each server at the end. */
  readonly logs: readonly ServerLog[]
  /** What went between servers; undefined with one server. */
  readonly quorum: QuorumRecord | undefined
  /** Clients that read the whole tree, each of one server, once all was healed: by name, the server. */
  readonly readers: ReadonlyMap<string, string>
  /** When nothing failed any more. */
  readonly healedAt: number
  /** Sessions whose clients said nothing more for longer than their timeouts before the trees were read. */
  readonly silentSessions: ReadonlySet<string>
  /** Milliseconds by which wall clocks may differ from the world's; undefined when they jumped. */
  readonly maxClockErrorMs: number | undefined
  /** How old a read may be, in milliseconds; undefined when nothing bounds that. */
  readonly maxStalenessMs: number | undefined
  /** Whether a disk had no space for a while: one server alone refuses writes then, and later ones may succeed. */
  readonly diskWasFull: boolean
  /** Epochs as each server's disk had them, whenever they changed. */
  readonly epochs: readonly EpochSample[]
}

export interface EpochSample {
  readonly server: string
  readonly at: number
  readonly accepted: number
  readonly current: number
  /** Its disk is another one. */
  readonly isNew: boolean
}

export interface Checker {
  readonly name: string
  /** One sentence about what it proves. */
  readonly proves: string
  /** What is wrong, each a sentence; nothing when all is well. */
  check(evidence: Evidence): string[]
}
