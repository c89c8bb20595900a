import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'

/** A sample of a process's memory, in bytes. */
export interface MemorySample {
  /** Wall-clock time in milliseconds. */
  readonly at: number
  readonly resident: number
  /** Resident memory of V8's young and old generation, in use or not. */
  readonly young: number
  readonly old: number
  /** Memory outside of the heap that heap objects own. */
  readonly external: number
  /** Heap in use, garbage included. */
  readonly used: number
  /** Whether a full collection has just ended, so that `used` is almost free of garbage. */
  readonly isCollected: boolean
}

/** Node flags that make a server record its memory (heap-preload.ts). */
export const heapFlags: readonly string[] = ['--import', new URL('heap-preload.js', import.meta.url).href]

/** The file of the recorded samples, in the folder of the server's configuration. */
export const HEAP_FILE = 'heap'

export const heapLine = ({ at, resident, young, old, external, used, isCollected }: MemorySample): string =>
  `${[at, resident, young, old, external, used, Number(isCollected)].join(' ')}\n`

/** Parses the lines of the file. Skips a last line that is incomplete. */
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

/** Returns the samples recorded since a time in a server's folder, or undefined when the server records none. */
export function memorySince(folder: string, began: number): MemorySample[] | undefined {
  const file = join(folder, HEAP_FILE)
  if (!existsSync(file)) return undefined
  // Writes are asynchronous, so neighboring lines may be swapped.
  return parseMemory(readFileSync(file, 'latin1'))
    .filter(({ at }) => at >= began)
    .toSorted((one, other) => one.at - other.at)
}
