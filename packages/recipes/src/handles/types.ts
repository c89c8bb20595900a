import type { ACL, CallOptions, Data, ErrorPolicy, WriteOp, WriteResult } from '@zabra/client/core'

/**
 * What a client has taken or joined, and gives back with `release`. Disposal, which is the end of an `await using`
 * scope, releases as well.
 */
export interface Handle extends AsyncDisposable {
  /** Gives back what the handle stands for. Idempotent. */
  release(): Promise<void>
}

/** What is kept registered through lost connections and sessions until it is released. */
export interface KeptHandle extends Handle {
  /**
   * Aborts when the registration ends: with an `AbortedError` by a release, else with the error of its client that has ended, or for
   * which it cannot be made again, such as a `NoAuthError`, a `QuotaExceededError`, or a `NodeConflictError` when another client has taken its place.
   */
  readonly signal: AbortSignal
}

/** A lock that is held. The holder must release it even after a loss. */
export interface LockHandle extends Handle {
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
  release(options?: ReleaseOptions): Promise<void>
}

export interface ReleaseOptions {
  /** Resolve at once; a failure is reported to the instrumentation (default false). */
  readonly background?: boolean | undefined
}

/** Naming scheme of the znodes: that of ZooKeeper's recipes page, of Apache Curator, or of kazoo. */
export type Naming = 'recipe' | 'curator' | 'kazoo'

export interface RecipeOptions {
  /** ACL of the znodes that the recipe creates, parents included (default: open to all clients). */
  readonly acl?: readonly ACL[] | undefined
  /** When a lock counts as lost (default: the client's policy). */
  readonly errorPolicy?: ErrorPolicy | undefined
  /**
   * Mode of missing parents. Default `container`, or `persistent` with the naming of kazoo, which expects them to
   * stay. Use `persistent` for servers without containers.
   */
  readonly parents?: 'container' | 'persistent' | undefined
  /** Default `recipe`. Contenders that use the other schemes are recognised as well. */
  readonly naming?: Naming | undefined
  /** Data of this contender's znode, for other clients to read; an error of a timeout shows it. */
  readonly data?: Data | undefined
}

export interface Abortable {
  /** Cancels the call and removes what was created for it. */
  readonly signal?: AbortSignal | undefined
}

/** The options of every call that may have to wait for other clients. */
export interface WaitOptions extends Abortable {
  /**
   * Longest wait in milliseconds (default: no limit). The call then rejects with an `OperationTimeoutError` and removes what
   * was created for it; that of a lock is a `LockTimeoutError`, which names the holders. A call that has sent a write which it
   * cannot take back, and does not know what became of it, rejects with an `AmbiguousResultError` instead, after up to two
   * seconds more.
   */
  readonly timeoutMs?: number | undefined
  /**
   * When the session expires during the call: go on in the next session (`retry`, default), at the end of the queue where
   * there is one, or reject with a `SessionExpiredError` (`fail`).
   */
  readonly onExpiry?: 'retry' | 'fail' | undefined
}

export interface AcquireOptions extends WaitOptions {
  /**
   * Identity of the caller. A second acquire by the same owner is an error, or is counted if the lock is
   * reentrant, instead of a deadlock.
   */
  readonly owner?: object | undefined
}
