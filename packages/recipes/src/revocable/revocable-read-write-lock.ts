import type { Client } from '@zabra/client/core'
import { EphemeralLockHandle, type HandleOptions } from '../handles/ephemeral-lock-handle.ts'
import type { LockHandle, RecipeOptions, WaitOptions } from '../handles/types.ts'
import type { QueueEntry } from '../lock-queue/lock-queue.ts'
import type { TurnOptions } from '../lock-queue/turn.ts'
import { ReadWriteLock, type LockSide } from '../read-write-lock/read-write-lock.ts'
import type { RevocableLockHandle } from './revocable-mutex.ts'
import type { RevokeRequest } from './request.ts'
import { toBytes } from '../support/to-bytes.ts'
import { Revocations } from './revocation-watch.ts'

/** One side of the lock; the methods do what those of a `ReadWriteLock` do. */
export interface RevocableLockSide extends LockSide {
  acquire(options?: WaitOptions): Promise<RevocableLockHandle>
  tryAcquire(options?: WaitOptions): Promise<RevocableLockHandle | undefined>
  run<T>(body: (held: RevocableLockHandle) => Promise<T>, options?: WaitOptions): Promise<T>
}

/**
 * A read/write lock whose holders, readers and writers, can be asked to release it: see `revoke`. A waiter that is asked
 * leaves the queue: its `acquire` rejects with a `LostError` with the reason `revoked`.
 */
export class RevocableReadWriteLock extends ReadWriteLock {
  declare readonly read: RevocableLockSide
  declare readonly write: RevocableLockSide
  readonly #revocations: Revocations

  constructor(client: Client, path: string, options: RecipeOptions = {}) {
    super(client, path, options)
    this.#revocations = new Revocations(client, toBytes(options.data))
  }

  override downgrade(write: LockHandle): Promise<RevocableLockHandle> {
    return super.downgrade(write) as Promise<RevocableLockHandle>
  }

  override tryUpgrade(read: LockHandle): Promise<RevocableLockHandle | undefined> {
    return super.tryUpgrade(read) as Promise<RevocableLockHandle | undefined>
  }

  /** @internal */
  protected override waitOptions(): Pick<TurnOptions<LockHandle>, 'createGuard' | 'onWaitEnd'> {
    return this.#revocations.waitOptions
  }

  /** @internal */
  protected override createHandle(entry: QueueEntry, options: HandleOptions): RevocableHandle {
    return this.#revocations.grant(
      entry,
      { ...options, recipe: `revocable ${options.recipe}` },
      (revocable, requested) => new RevocableHandle(this.client, entry, revocable, requested),
    )
  }
}

class RevocableHandle extends EphemeralLockHandle implements RevocableLockHandle {
  readonly revokeRequested: Promise<RevokeRequest>

  constructor(client: Client, entry: QueueEntry, options: HandleOptions, requested: Promise<RevokeRequest>) {
    super(client, entry, options)
    this.revokeRequested = requested
  }
}
