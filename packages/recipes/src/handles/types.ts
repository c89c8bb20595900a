import type { ACL, Bytes, CallOptions, ErrorPolicy, WriteOp, WriteResult } from '@zabra/client/core'

/** A right that is held now. Giving it back, even when it is lost already, is the holder's duty: `await using` does. */
export interface LockHandle extends AsyncDisposable {
  /** Grows with every grant, on whatever path: hand it to what the right protects, which refuses lower ones. */
  readonly token: bigint
  /** The znode that stands for the right. */
  readonly path: string
  /** Aborts with a `LostError` as soon as the right ends. */
  readonly signal: AbortSignal
  /** Throws the `LostError` unless the right is surely held at this instant, also right after the process stood still. */
  assertHeld(): void
  /**
   * A transaction that is carried out only while the right exists, whatever the clocks say. Rejects with a `LostError`
   * when it does not, else as `multi` does.
   */
  guard<const T extends readonly WriteOp[]>(
    operations: T,
    options?: CallOptions,
  ): Promise<{ [K in keyof T]: WriteResult<T[K]> }>
  /**
   * Gives the right back. Resolves when others can have it, or at once with `background`. Doing it again does nothing.
   * It goes on through lost connections until it is done or the session is over.
   */
  release(options?: { readonly background?: boolean }): Promise<void>
}

/** Whose names a recipe reads and writes: those of ZooKeeper's page of recipes, of Apache Curator, or of kazoo. */
export type Naming = 'recipe' | 'curator' | 'kazoo'

export interface RecipeOptions {
  /** Of the znodes that the recipe makes, parents included (default: anybody may do everything). */
  readonly acl?: readonly ACL[]
  /** When a right counts as lost (default: what the client says). */
  readonly errorPolicy?: ErrorPolicy
  /**
   * What missing parents are made as (default `container`, and `persistent` with the names of kazoo, which expects them to
   * stay; `persistent` for servers without containers).
   */
  readonly parents?: 'container' | 'persistent'
  /** Default `recipe`. Contenders with names of the other kinds are seen as well. */
  readonly naming?: Naming
  /** What the own znode holds, for others to read. */
  readonly data?: Bytes
}

export interface Abortable {
  /** Stops waiting; nothing is left behind. */
  readonly signal?: AbortSignal
}

export interface AcquireOptions extends Abortable {
  /** Who asks. The same object asking again for what it holds is an error, or counts, instead of waiting for itself. */
  readonly owner?: object
  /** When the session expires while waiting: go to the end of the line (default), or fail. */
  readonly onSessionLoss?: 'requeue' | 'throw'
}
