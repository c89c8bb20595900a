/** What `--trace-gc-nvp` told of the collections of a process, added up. */
export interface Collections {
  readonly count: number
  /** Bytes of objects that were made up to the last collection. */
  readonly allocated: number
  /** Milliseconds of the longest one on the main thread. */
  readonly longest: number
}

/** Reads the lines of one process. Memory of buffers outside of the heap is not in them. */
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
