import type { CallOptions, Stat } from './types.ts'

/** What a call that is made of many requests takes. `timeout` is for all of them together. */
export interface TreeOptions extends CallOptions {
  /** Milliseconds for each request (default: as long as the whole call may take). */
  readonly requestTimeout?: number
  /** Hears of znodes whose children may not be listed. Without it the call rejects with the `NoAuthError`. */
  readonly onUnreadable?: (path: string) => void
}

export interface WalkOptions extends TreeOptions {
  /** Znodes that lie deeper below the start are not met (default: no limit). */
  readonly maxDepth?: number
  /** False leaves out a znode with all that is below it. Not asked for the start. */
  readonly filter?: (path: string) => boolean
}

/** A znode that was met on a walk. */
export interface Visit {
  readonly path: string
  /** Undefined where the children may not be listed. */
  readonly stat: Stat | undefined
  /** Names in their order; empty where they may not be listed. */
  readonly children: readonly string[]
  /** How far below the start. */
  readonly depth: number
  /** Whether it is the last among the children of its parent. */
  readonly isLast: boolean
}

export interface DeleteTreeOptions extends TreeOptions {
  /** Znodes in one transaction (default 500). */
  readonly batchSize?: number
  /** False keeps the znode itself and deletes what is below it. */
  readonly includeRoot?: boolean
  /** Hears how many znodes there are in all, as far as is known. */
  readonly onFound?: (znodes: number) => void
  /** Hears how many have been deleted so far. */
  readonly onDeleted?: (znodes: number) => void
}
