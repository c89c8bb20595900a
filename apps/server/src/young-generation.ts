import { PerformanceObserver } from 'node:perf_hooks'
import { getHeapSpaceStatistics, setFlagsFromString } from 'node:v8'
import { flagName } from './compiler.ts'

/** Both halves of the young generation when it has doubled twice, from 1 MB each. */
const YOUNG_BYTES = 8 * 2 ** 20
/** Flags by which the operator chooses its size. */
const CHOICES = new Set(['--max-semi-space-size', '--min-semi-space-size', '--semi-space-growth-factor'])

export interface YoungGeneration {
  readonly execArgv: readonly string[]
  /** Returns the bytes of both halves. */
  readonly bytes: () => number
  readonly setFlag: (flag: string) => void
  /** Calls a function after collections of garbage, until the returned function is called. */
  readonly onCollection: (action: () => void) => () => void
}

const ofProcess: YoungGeneration = {
  execArgv: [...process.execArgv, ...(process.env['NODE_OPTIONS'] ?? '').split(' ')],
  bytes: () => getHeapSpaceStatistics().find(({ space_name: name }) => name === 'new_space')?.space_size ?? 0,
  setFlag: setFlagsFromString,
  onCollection(action) {
    const observer = new PerformanceObserver(action)
    observer.observe({ entryTypes: ['gc'] })
    return () => observer.disconnect()
  },
}

/**
 * Keeps each half of V8's young generation at 4 MB, which grows to 16 MB otherwise. A scavenge copies what lives in a half at once, about a
 * megabyte in a millisecond: all of it where a large multi creates nodes or clients watch long paths. More collections of a smaller part
 * cost no throughput. V8 reads the largest size when the process starts, and the factor of growth each time that the generation grows.
 */
export function limitYoungGeneration(young: YoungGeneration = ofProcess): void {
  if (young.execArgv.some((flag) => CHOICES.has(flagName(flag)))) return
  const stop = young.onCollection(() => {
    if (young.bytes() < YOUNG_BYTES) return
    young.setFlag('--semi-space-growth-factor=1')
    stop()
  })
}
