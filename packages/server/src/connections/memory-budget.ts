import type { Clock, Logger, System } from '@zabra/runtime'
import { inSlices, ITEMS_PER_TURN } from '../core/in-slices.ts'
import { LinkedList, type Linked } from '../core/linked-list.ts'
import { HeapUse } from '../persistence/index.ts'
import type { CloseCause } from './close-cause.ts'
import { logContext, type LoggedClient } from './log-context.ts'

/** The share of the memory of the process that connections and sessions may take. */
const SHARE = 0.25
/** The largest budget that is derived from the memory: eight million watches, which one table can hold. */
const MAX_DERIVED_BYTES = 2 ** 31
/** The budget where the platform does not tell its memory. */
const DEFAULT_BYTES = 2 ** 29
/** Memory of a session in bytes: its table entries, its place among the deadlines. */
export const SESSION_BYTES = 600
/** The largest part of the budget that the last lines of the log count for: clients make the server write them. */
const LOG_PART = 1 / 16
/** Once one is cut, more are until this part of the budget is used. */
const CUT_TO = 0.95
/** Connections that are logged each for itself when many are cut at once. */
const LINES_PER_CUT = 10

/** A connection whose memory counts. */
export interface MemoryHolder extends LoggedClient, Linked<MemoryHolder> {
  /** The bytes that it was last charged with. Belongs to the budget. */
  chargedBytes: number
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
  readonly clock: Pick<Clock, 'monotonic'>
  /** Runs a function in a later turn. */
  readonly runLater: (action: () => void) => void
  /** Returns the number of sessions. */
  readonly sessions: () => number
}

/**
 * Counts the memory that clients hold: watches, identities, replies that they do not read, incomplete and waiting requests; beside it the
 * last lines of the log. Cuts the
 * connections that hold most when the budget is spent, and refuses new sessions when they take half of it or the heap is nearly full.
 *
 * Connections are kept by classes of their size, so that none is looked for among all: one that is cut holds at least 8/9 as much as
 * the largest. What it holds is counted anew before; others are charged with what they held at their last event.
 */
export class MemoryBudget {
  /** In bytes. */
  readonly limit: number
  readonly #options: MemoryBudgetOptions
  /** Bytes that connections hold. */
  used = 0
  /** Connections cut. */
  cuts = 0
  readonly #classes: LinkedList<MemoryHolder>[] = []
  /** Whether a connection is being cut. */
  #isCutting = false
  /** Whether more are cut in later turns, and how many had been before the first of them. */
  #isCuttingMore = false
  #cutsBefore = 0
  readonly #heap: HeapUse

  constructor(options: MemoryBudgetOptions) {
    this.#options = options
    this.#heap = new HeapUse(options.system)
    this.limit = options.bytes > 0 ? options.bytes : derivedBudget(options.system)
  }

  /** Charges a connection with the bytes that it holds, 0 for one that is closed. Cuts connections when the budget is spent. */
  charge(holder: MemoryHolder, bytes: number): void {
    const change = bytes - holder.chargedBytes
    const [from, to] = [classOf(holder.chargedBytes), classOf(bytes)]
    holder.chargedBytes = bytes
    if (from !== to) {
      this.#classes[from]?.remove(holder)
      if (to >= 0) this.#classAt(to).add(holder)
    }
    this.used += change
    if (change > 0 && this.used > this.limit / 2 && this.used > this.#limitOfConnections && !this.#isCutting)
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
    const { sessions, logger } = this.#options
    const log = Math.min(logger.lastLines?.bytes ?? 0, this.limit * LOG_PART)
    return this.limit - log - Math.min(sessions() * SESSION_BYTES, this.limit / 2)
  }

  /** Cuts at once what makes room for the bytes that have come, and more in later turns. */
  #cut(): void {
    const { clock, runLater } = this.#options
    if (!this.#isCuttingMore) this.#cutsBefore = this.cuts
    let looks = 0
    for (const holder of this.#largestWhileAbove(1)) {
      this.#cutIfLargest(holder)
      if (++looks === ITEMS_PER_TURN) break
    }
    if (this.cuts === this.#cutsBefore || this.#isCuttingMore) return
    this.#isCuttingMore = true
    runLater(() =>
      inSlices(this.#largestWhileAbove(CUT_TO), (holder) => this.#cutIfLargest(holder), {
        now: () => clock.monotonic(),
        runLater,
        done: () => this.#endCut(),
      }),
    )
  }

  #endCut(): void {
    this.#isCuttingMore = false
    const more = this.cuts - this.#cutsBefore - LINES_PER_CUT
    if (more > 0)
      this.#options.logger.warn(
        { connections: more },
        'Cut more connections: the memory for clients is spent (clientMemory)',
      )
  }

  /** Yields a connection of the class of the largest, again and again, while connections hold more than this part of their limit. */
  *#largestWhileAbove(part: number): Generator<MemoryHolder> {
    while (this.used > this.#limitOfConnections * part) {
      while (this.#classes.length > 0 && this.#classes.at(-1)!.first === undefined) this.#classes.pop()
      const largest = this.#classes.at(-1)?.first
      if (largest === undefined) return
      yield largest
    }
  }

  /** Counts the memory of a connection anew, since its client may have read replies. Cuts it unless others may hold more now. */
  #cutIfLargest(holder: MemoryHolder): void {
    const size = classOf(holder.chargedBytes)
    this.#isCutting = true
    holder.countMemory()
    if (classOf(holder.chargedBytes) >= size) this.#cutOne(holder)
    this.#isCutting = false
  }

  #cutOne(holder: MemoryHolder): void {
    this.cuts++
    if (this.cuts - this.#cutsBefore <= LINES_PER_CUT)
      this.#options.logger.warn(
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

  #classAt(index: number): LinkedList<MemoryHolder> {
    while (this.#classes.length <= index) this.#classes.push(new LinkedList())
    return this.#classes[index]!
  }
}

/**
 * Returns the class of a size, -1 for 0 bytes: eight for each power of two, so that the smallest size of a class is at least 8/9 of the
 * largest.
 */
function classOf(bytes: number): number {
  if (bytes <= 0) return -1
  const size = Math.min(bytes, 0x7fff_ffff)
  const exponent = 31 - Math.clz32(size)
  return exponent < 3 ? size : exponent * 8 + ((size >>> (exponent - 3)) & 7)
}

function derivedBudget(system: System): number {
  const limits = system.memoryLimits?.()
  if (limits === undefined) return DEFAULT_BYTES
  return Math.min(Math.floor(Math.min(limits.heap, limits.process) * SHARE), MAX_DERIVED_BYTES)
}
