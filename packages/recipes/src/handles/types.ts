import type { ACL, Bytes, CallOptions, ErrorPolicy, WriteOp, WriteResult } from '@zabra/client/core'

/** A lock that is held. The holder must release it even after a loss; `await using` does. */
export interface LockHandle extends AsyncDisposable {
  /**
   * Fencing token: grows with every grant on any path. Pass it to the protected resource, which must refuse lower
   * ones.
   */
  readonly token: bigint
  /** Path of the lock's znode. */
  readonly path: string
  /** Aborts with a `LostError` as soon as the lock is lost or released. */
  readonly signal: AbortSignal
  /**
   * Throws the `LostError` unless the lock is certainly held now. Also correct right after a pause of the process.
   */
  assertHeld(): void
  /**
   * Runs a transaction that is applied only while the lock's znode exists, regardless of clocks. Rejects with a
   * `LostError` when the lock is gone, else as `multi` does.
   */
  guard<const T extends readonly WriteOp[]>(
    operations: T,
    options?: CallOptions,
  ): Promise<{ [K in keyof T]: WriteResult<T[K]> }>
  /**
   * Releases the lock. Resolves when other clients can acquire it, or at once with `background`. Idempotent.
   * Retries through lost connections until it succeeds or the session ends.
   */
  release(options?: { readonly background?: boolean }): Promise<void>
}

/** Naming scheme of the znodes: that of ZooKeeper's recipes page, of Apache Curator, or of kazoo. */
export type Naming = 'recipe' | 'curator' | 'kazoo'

export interface RecipeOptions {
  /** ACL of the znodes that the recipe creates, parents included (default: open to all clients). */
  readonly acl?: readonly ACL[]
  /** When a lock counts as lost (default: the client's policy). */
  readonly errorPolicy?: ErrorPolicy
  /**
   * Mode of missing parents. Default `container`, or `persistent` with the naming of kazoo, which expects them to
   * stay. Use `persistent` for servers without containers.
   */
  readonly parents?: 'container' | 'persistent'
  /** Default `recipe`. Contenders that use the other schemes are recognised as well. */
  readonly naming?: Naming
  /** Data of this contender's znode, for other clients to read. */
  readonly data?: Bytes
}

export interface Abortable {
  /** Cancels the wait and removes what was created for it. */
  readonly signal?: AbortSignal
}

export interface AcquireOptions extends Abortable {
  /**
   * Identity of the caller. A second acquire by the same owner is an error, or is counted if the lock is
   * reentrant, instead of a deadlock.
   */
  readonly owner?: object
  /** When the session expires while waiting: join the end of the queue again (default), or fail. */
  readonly onSessionLoss?: 'requeue' | 'throw'
}
