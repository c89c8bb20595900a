import { existsSync, readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'

/** Has the Node that runs our server write down how long its main thread ran between ticks; see busy-preload.ts. */
export const busyFlags: readonly string[] = ['--import', new URL('busy-preload.js', import.meta.url).href]

/** Where it does, in the folder of the server's configuration. */
export const BUSY_FILE = 'busy'

/** Ticks between which the thread ran for less have no line: they are nearly all of them. */
const LEAST_MS = 0.5

/** What is written of the time between two ticks: of `gap` milliseconds the thread ran for `ran`. */
export function busyLine(gap: number, ran: number): string {
  const busy = Math.min(gap, ran)
  return busy < LEAST_MS ? '' : `${busy.toFixed(2)}\n`
}

/** The longest of the lines; 0 of none. */
export const longestBusy = (lines: string): number =>
  lines.split('\n').reduce((longest, line) => Math.max(longest, Number(line)), 0)

/** Returns what tells the longest since now of the server in a folder; undefined where nobody writes it down. */
export function busySince(folder: string): () => number | undefined {
  const file = join(folder, BUSY_FILE)
  if (!existsSync(file)) return () => undefined
  const from = statSync(file).size
  return () => longestBusy(readFileSync(file, 'latin1').slice(from))
}
