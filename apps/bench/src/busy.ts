import { existsSync, readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'

/** A turn of the event loop: the time between two ticks of a timer. All durations are in milliseconds. */
export interface Turn {
  /** Wall-clock time of its end. */
  readonly at: number
  /** Elapsed time. */
  readonly held: number
  /** Time for which the thread was running on a processor. */
  readonly busy: number
  /** Time for which the thread waited in the run queue. */
  readonly starved: number
  /**
   * Time for which the event loop was idle, waiting for events. More than one tick of it means that the kernel woke the thread
   * late; the wait for a processor after that counts as `starved` too. Time in none of the fields was spent blocked in a system
   * call or taken by a hypervisor.
   */
  readonly idle: number
}

/** Turns below this busy time are not recorded by default: nearly all turns are. */
const MIN_BUSY_MS = 0.5
/** Turns at or above this elapsed time are recorded whatever their busy time. */
const MIN_HELD_MS = 10

/**
 * Node flags that make a server record its long event loop turns (busy-preload.ts). Recording blocks on the file system, so a
 * long run should use a high threshold.
 */
export const busyFlags = (leastMs = MIN_BUSY_MS): readonly string[] => [
  '--import',
  new URL(`busy-preload.js?least=${leastMs}`, import.meta.url).href,
]

/** The file of the recorded turns, in the folder of the server's configuration. */
export const BUSY_FILE = 'busy'

/** Formats a turn as a line of the file. Returns an empty string when it is below the thresholds. */
export function turnLine({ at, held, busy, starved, idle }: Turn, leastMs = MIN_BUSY_MS): string {
  if (busy < leastMs && held < MIN_HELD_MS) return ''
  // The kernel accounts in ticks, so it may report more than the elapsed time.
  const parts = [held, Math.min(held, busy), Math.min(held, starved), Math.min(held, idle)].map((ms) =>
    ms.toFixed(2),
  )
  return `${at} ${parts.join(' ')}\n`
}

/** Parses the lines of the file. */
export const parseTurns = (lines: string): Turn[] =>
  lines
    .split('\n')
    .slice(0, -1)
    .map((line) => {
      const [at = 0, held = 0, busy = 0, starved = 0, idle = 0] = line.split(' ').map(Number)
      return { at, held, busy, starved, idle }
    })

/** Returns the turn with the largest `held` or `busy`, or undefined for an empty list. */
export const longestTurn = (turns: readonly Turn[], how: 'held' | 'busy'): Turn | undefined =>
  turns.reduce<Turn | undefined>(
    (found, turn) => (found && found[how] >= turn[how] ? found : turn),
    undefined,
  )

/** Returns a function that reads the turns recorded since now in a server's folder, or undefined when the server records none. */
export function turnsSince(folder: string): () => Turn[] | undefined {
  const file = join(folder, BUSY_FILE)
  if (!existsSync(file)) return () => undefined
  const from = statSync(file).size
  return () => parseTurns(readFileSync(file, 'latin1').slice(from))
}
