import { existsSync, readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'

/** A turn of the event loop, which is what lies between two ticks of a timer; milliseconds. */
export interface Turn {
  /** When it ended, by the clock on the wall. */
  readonly at: number
  /** For how long it was, by the clock. */
  readonly held: number
  /** For how long of it the thread had a processor. */
  readonly busy: number
  /** For how long of it the thread was ready to run and had none. */
  readonly starved: number
  /**
   * For how long of it the loop waited for something to happen. Beyond a tick the machine was late to wake the thread; until it had a
   * processor then, it was starved as well. In what is neither this nor one of the others it waited for the system inside of a
   * call, or a hypervisor had the processor.
   */
  readonly idle: number
}

/** Turns that were busy for less are not written down, unless told otherwise: they are nearly all of them. */
const MIN_BUSY_MS = 0.5
/** Turns that took so long by the clock are, however little the thread ran. */
const MIN_HELD_MS = 10

/**
 * Has the Node that runs our server write down its turns which were busy for so long, or held; see busy-preload.ts. To write is
 * to wait for the file system, so in a run of many minutes only what is long should be.
 */
export const busyFlags = (leastMs = MIN_BUSY_MS): readonly string[] => [
  '--import',
  new URL(`busy-preload.js?least=${leastMs}`, import.meta.url).href,
]

/** Where it does, in the folder of the server's configuration. */
export const BUSY_FILE = 'busy'

/** What is written of a turn; nothing of most. */
export function turnLine({ at, held, busy, starved, idle }: Turn, leastMs = MIN_BUSY_MS): string {
  if (busy < leastMs && held < MIN_HELD_MS) return ''
  // The system counts in steps of its own, so it may count more than there was.
  const parts = [held, Math.min(held, busy), Math.min(held, starved), Math.min(held, idle)].map((ms) =>
    ms.toFixed(2),
  )
  return `${at} ${parts.join(' ')}\n`
}

/** The turns that were written down. */
export const parseTurns = (lines: string): Turn[] =>
  lines
    .split('\n')
    .slice(0, -1)
    .map((line) => {
      const [at = 0, held = 0, busy = 0, starved = 0, idle = 0] = line.split(' ').map(Number)
      return { at, held, busy, starved, idle }
    })

/** The longest one; undefined of none. */
export const longestTurn = (turns: readonly Turn[], how: 'held' | 'busy'): Turn | undefined =>
  turns.reduce<Turn | undefined>(
    (found, turn) => (found && found[how] >= turn[how] ? found : turn),
    undefined,
  )

/** Returns what tells the turns since now of the server in a folder; undefined where nobody writes them down. */
export function turnsSince(folder: string): () => Turn[] | undefined {
  const file = join(folder, BUSY_FILE)
  if (!existsSync(file)) return () => undefined
  const from = statSync(file).size
  return () => parseTurns(readFileSync(file, 'latin1').slice(from))
}
