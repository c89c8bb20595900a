/** What a server may ask of the process and the machine. */
export interface System {
  /** Facts under the names of the `envi` word, in its order. */
  environment(): readonly (readonly [name: string, value: string])[]
  /** Bytes of memory that the process holds. */
  residentMemory(): number
  /**
   * The longest time for which the event loop was held since `forgetHolds`, in milliseconds: at most 2 more than it was.
   * Absent where nobody can tell.
   */
  maxEventLoopDelay?(): number
  /** The longest collection of garbage since `forgetHolds`, in milliseconds. Absent where nobody can tell. */
  maxGcPause?(): number
  /** Measures holds and collections from now on. */
  resetPauses?(): void
  /** Bytes of JavaScript objects, garbage included, and bytes that these hold outside of the heap, such as buffers. */
  heap?(): { readonly used: number; readonly external: number }
  /** Open file descriptors and their limit; -1 where unknown. */
  fileDescriptors(): { readonly open: number; readonly max: number }
  /** Identity of this process, for a lock file. */
  readonly pid: number
  /** What tells a process that runs on this machine from later ones of the same id; undefined when none has the id. */
  processIdentity(pid: number): string | undefined
}
