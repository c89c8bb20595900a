/** What a server may ask of the process and the machine. */
export interface System {
  /** Facts under the names of the `envi` word, in its order. */
  environment(): readonly (readonly [name: string, value: string])[]
  /** Bytes of memory that the process holds. */
  memory(): number
  /** Open file descriptors and their limit; -1 where unknown. */
  descriptors(): { readonly open: number; readonly max: number }
  /** Identity of this process, for a lock file. */
  readonly pid: number
  /** Whether a process of that id runs on this machine. */
  isRunning(pid: number): boolean
}
