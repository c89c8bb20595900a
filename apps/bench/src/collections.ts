/** Totals over the garbage collections of a process, from its `--trace-gc-nvp` output. */
export interface Collections {
  readonly count: number
  /** Bytes allocated on the heap up to the last collection. */
  readonly allocated: number
  /** The longest pause of the main thread, in milliseconds. */
  readonly longest: number
}

/** Parses the output of one process. It does not cover memory outside of the heap. */
export function parseCollections(output: string): Collections {
  let [count, allocated, longest] = [0, 0, 0]
  for (const line of output.split('\n')) {
    const bytes = /\ballocated=(\d+)/.exec(line)?.[1]
    const pause = /\bpause=([\d.]+)/.exec(line)?.[1]
    if (bytes === undefined || pause === undefined) continue
    count++
    allocated += Number(bytes)
    longest = Math.max(longest, Number(pause))
  }
  return { count, allocated, longest }
}
