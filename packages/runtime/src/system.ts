/** The distribution of pauses of the event loop since the start of the process, in milliseconds. */
export interface Pauses {
  readonly count: number
  readonly sum: number
  /** Returns how many were up to a bound: exact for 1, 2 and 5, for ten times these, and so on up to 10,000. */
  countUpTo(ms: number): number
}

/** Information about the process and the machine. */
export interface System {
  /** Returns the environment under the names of the `envi` command, in its order. */
  environment(): readonly (readonly [name: string, value: string])[]
  /** Returns the resident memory of the process in bytes. */
  residentMemory(): number
  /**
   * Returns the longest time for which the event loop was blocked since `resetPauses`, in milliseconds: at most 10 too low, since it is
   * sampled. Absent where the platform cannot measure it.
   */
  maxEventLoopDelay?(): number
  /** Returns the longest garbage collection since `resetPauses`, in milliseconds. Absent where the platform cannot measure it. */
  maxGcPause?(): number
  /**
   * Returns how often the event loop was held for over 100 ms since the start of the process, and the last of these times in milliseconds, at
   * most 100, each at most 10 too low. Absent where the platform cannot measure it.
   */
  longHolds?(): { readonly count: number; readonly last: readonly number[] }
  /** Returns the delays of the event loop. Absent where the platform cannot measure it. */
  eventLoopDelays?(): Pauses
  /** Returns the processor time of the process in milliseconds. Absent where the platform cannot measure it. */
  cpuTime?(): number
  /** Returns the time for which the event loop was busy since the process started, in milliseconds. Absent where the platform cannot measure it. */
  eventLoopActive?(): number
  /** Returns the garbage collections of each kind, such as `minor`. Absent where the platform cannot measure it. */
  gcPauses?(): ReadonlyMap<string, Pauses>
  /** Resets `maxEventLoopDelay` and `maxGcPause`, and not `longHolds`. */
  resetPauses?(): void
  /** Returns the bytes of JavaScript objects, garbage included, and of memory outside the heap that they own, such as buffers. */
  heap?(): { readonly used: number; readonly external: number }
  /**
   * Returns the most bytes that the heap of JavaScript objects, and that the process may take; Infinity where there is no limit.
   * Absent where the platform does not tell.
   */
  memoryLimits?(): { readonly heap: number; readonly process: number }
  /** Returns the number of open file descriptors and their limit; -1 where unknown. */
  fileDescriptors(): { readonly open: number; readonly max: number }
  /** Id of this process, for a lock file. */
  readonly pid: number
  /** Returns a text that distinguishes a running process from later ones with the same id; undefined when no process has the id. */
  processIdentity(pid: number): string | undefined
}
