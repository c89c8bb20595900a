import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'

/** What a process said of its memory at a moment; bytes. */
export interface MemorySample {
  /** By the clock on the wall, in milliseconds. */
  readonly at: number
  readonly resident: number
  /** What the heap has of the system, whether in use or not: where objects begin, and where those are that have stayed. */
  readonly young: number
  readonly old: number
  /** What objects of the heap hold outside of it. */
  readonly external: number
  /** Objects in the heap, garbage included. */
  readonly used: number
  /** Whether a full collection has just ended, so that `used` has next to no garbage in it. */
  readonly isCollected: boolean
}

/** Has the Node that runs our server write its memory down; see heap-preload.ts. */
export const heapFlags: readonly string[] = ['--import', new URL('heap-preload.js', import.meta.url).href]

/** Where it does, in the folder of the server's configuration. */
export const HEAP_FILE = 'heap'

export const heapLine = ({ at, resident, young, old, external, used, isCollected }: MemorySample): string =>
  `${[at, resident, young, old, external, used, Number(isCollected)].join(' ')}\n`

/** What was written, in order; a line that is not written to its end is left out. */
export const parseMemory = (lines: string): MemorySample[] =>
  lines
    .split('\n')
    .slice(0, -1)
    .map((line) => {
      const [at = 0, resident = 0, young = 0, old = 0, external = 0, used = 0, collected = 0] = line
        .split(' ')
        .map(Number)
      return { at, resident, young, old, external, used, isCollected: collected === 1 }
    })

/** All that the server in a folder has written down since a time; undefined where nobody does. */
export function memorySince(folder: string, began: number): MemorySample[] | undefined {
  const file = join(folder, HEAP_FILE)
  if (!existsSync(file)) return undefined
  // Lines that are written at nearly the same time may change places.
  return parseMemory(readFileSync(file, 'latin1'))
    .filter(({ at }) => at >= began)
    .toSorted((one, other) => one.at - other.at)
}
