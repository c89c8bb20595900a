import type { CallOptions, Stat } from './types.ts'

/**
 * Options of a call that makes many requests. `timeoutMs` covers all of them together. The call rejects with what a callback among
 * them throws or rejects with.
 */
export interface TreeOptions extends CallOptions {
  /** Milliseconds for each request (default: the remaining time of the whole call). */
  readonly requestTimeoutMs?: number | undefined
  /** Called with each znode whose children may not be listed. Without it the call rejects with the `NoAuthError`. */
  readonly onUnreadable?: ((path: string) => void) | undefined
}

export interface WalkOptions extends TreeOptions {
  /** Maximum depth below the start (default: no limit). */
  readonly maxDepth?: number | undefined
  /** Return false to skip a znode with everything below it. Not called for the start. */
  readonly filter?: ((path: string) => boolean) | undefined
  /** Yield each znode with its stat and children (`Visit`) instead of its path. */
  readonly stats?: boolean | undefined
}

/** A znode visited by a walk. */
export interface Visit {
  readonly path: string
  /** Undefined where the children may not be listed. */
  readonly stat: Stat | undefined
  /** Names in order; empty where they may not be listed. */
  readonly children: readonly string[]
  /** Depth below the start. */
  readonly depth: number
  /** Whether it is the last child of its parent. */
  readonly isLast: boolean
}

/** Options of a delete of a znode with everything below it. */
export interface RecursiveDeleteOptions extends TreeOptions {
  readonly recursive: true
  /** A missing znode counts as success. */
  readonly missingOk?: boolean | undefined
  /** Number of znodes in one transaction (default 500). */
  readonly batchSize?: number | undefined
  /** False keeps the znode itself and deletes everything below it. */
  readonly includeRoot?: boolean | undefined
  /** Called with the number of znodes found so far. */
  readonly onFound?: ((znodes: number) => void) | undefined
  /** Called with the number of znodes deleted so far. */
  readonly onDeleted?: ((znodes: number) => void) | undefined
}
