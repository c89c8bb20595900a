import type { Logger, System } from '@zabra/runtime'
import type { CloseCause } from './close-cause.ts'
import { HeapUse } from './heap-use.ts'
import { logContext, type LoggedClient } from './log-context.ts'

/** The share of the memory of the process that connections and sessions may take. */
const SHARE = 0.25
/** The largest budget that is derived from the memory: eight million watches, which one table can hold. */
const MAX_DERIVED_BYTES = 2 ** 31
/** The budget where the platform does not tell its memory. */
const DEFAULT_BYTES = 2 ** 29
/** Memory of a session in bytes: its table entries, its place among the deadlines. */
export const SESSION_BYTES = 600
/** Connections are cut until this part of the budget is used. */
const CUT_TO = 0.95
/** Connections that are logged each for itself when many are cut at once. */
const LINES_PER_CUT = 10

/** A connection whose memory counts. */
export interface MemoryHolder extends LoggedClient {
  /** The bytes that it was last charged with. */
  readonly chargedBytes: number
  /** Charges it with the bytes that it holds now. */
  countMemory(): void
  /** Returns what holds the bytes, for a log line. */
  memoryUse(): Readonly<Record<string, number>>
  destroy(cause: CloseCause, reason: string): void
}

export interface MemoryBudgetOptions {
  /** The setting `clientMemory`, in bytes; 0 derives the budget from the memory of the process. */
  readonly bytes: number
  readonly system: System
  readonly logger: Logger
  readonly holders: Iterable<MemoryHolder>
  /** Returns the number of sessions. */
  readonly sessions: () => number
}

/**
 * Counts the memory that clients hold: watches, identities, replies that they do not read, incomplete and waiting requests. Cuts the
 * connection that holds most when the budget is spent, and refuses new sessions when they take half of it or the heap is nearly full.
 */
export class MemoryBudget {
  /** In bytes. */
  readonly limit: number
  readonly #options: MemoryBudgetOptions
  /** Bytes that connections hold. */
  used = 0
  /** Connections cut. */
  cuts = 0
  #isCutting = false
  readonly #heap: HeapUse

  constructor(options: MemoryBudgetOptions) {
    this.#options = options
    this.#heap = new HeapUse(options.system)
    this.limit = options.bytes > 0 ? options.bytes : derivedBudget(options.system)
  }

  /** Adds the change of the memory of a connection, and cuts connections when the budget is spent. */
  change(bytes: number): void {
    this.used += bytes
    if (bytes > 0 && this.used > this.limit / 2 && this.used > this.#limitOfConnections && !this.#isCutting)
      this.#cut()
  }

  /** Returns why no session can be created at `now`, on the monotonic clock; undefined when one can. */
  refusalOfSession(now: number): string | undefined {
    const { sessions } = this.#options
    const bytes = sessions() * SESSION_BYTES
    if (bytes > this.limit / 2)
      return `${sessions()} sessions take half of the memory for clients, ${this.limit} bytes (clientMemory)`
    return this.#heap.at(now).isFull
      ? 'the heap is nearly full; a larger one is set with --max-old-space-size'
      : undefined
  }

  get #limitOfConnections(): number {
    return this.limit - Math.min(this.#options.sessions() * SESSION_BYTES, this.limit / 2)
  }

  #cut(): void {
    const { holders, logger } = this.#options
    this.#isCutting = true
    // The charge is that of the last event of a connection: its client may have read replies since.
    for (const holder of holders) holder.countMemory()
    const limit = this.#limitOfConnections
    const before = this.cuts
    const largestFirst = [...holders].sort((a, b) => b.chargedBytes - a.chargedBytes)
    for (const holder of largestFirst) {
      if (this.used <= (this.cuts === before ? limit : limit * CUT_TO)) break
      this.cuts++
      if (this.cuts - before <= LINES_PER_CUT)
        logger.warn(
          {
            id: 'client.memory',
            ...logContext(holder),
            ...holder.memoryUse(),
            used: this.used,
            budget: this.limit,
          },
          `Cut the connection that holds most memory, ${holder.chargedBytes} bytes: the memory for clients is spent (clientMemory)`,
        )
      holder.destroy('memory', 'Closed: it held most of the memory for clients')
    }
    const more = this.cuts - before - LINES_PER_CUT
    if (more > 0)
      logger.warn(
        { connections: more },
        'Cut more connections: the memory for clients is spent (clientMemory)',
      )
    this.#isCutting = false
  }
}

function derivedBudget(system: System): number {
  const limits = system.memoryLimits?.()
  if (limits === undefined) return DEFAULT_BYTES
  return Math.min(Math.floor(Math.min(limits.heap, limits.process) * SHARE), MAX_DERIVED_BYTES)
}
