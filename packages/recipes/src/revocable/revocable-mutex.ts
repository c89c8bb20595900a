import type { Client } from '@zabra/client/core'
import { EphemeralLockHandle } from '../handles/ephemeral-lock-handle.ts'
import type { AcquireOptions, LockHandle } from '../handles/types.ts'
import type { QueueEntry } from '../lock-queue/lock-queue.ts'
import type { TurnOptions } from '../lock-queue/turn.ts'
import { Mutex, type MutexOptions } from '../mutex/mutex.ts'
import type { RevokeRequest } from './request.ts'
import { Revocations } from './revocation-watch.ts'
import { checkBody } from '../support/checks.ts'

export interface RevocableLockHandle extends LockHandle {
  /** Resolves when another client asks for the lock. The lock stays held until it is released. Never rejects. */
  readonly revokeRequested: Promise<RevokeRequest>
}

/**
 * A mutex whose holder can be asked to release it, and which can be taken by force after a grace period: see
 * `revoke`. A waiter that is asked leaves the queue: its `acquire` rejects with a `LostError` with the reason
 * `revoked`.
 */
export class RevocableMutex extends Mutex {
  readonly #revocations: Revocations
  readonly #requests = new WeakMap<AbortSignal, Promise<RevokeRequest>>()

  constructor(client: Client, path: string, options: MutexOptions = {}) {
    super(client, path, options)
    this.#revocations = new Revocations(client, this.data)
  }

  override async acquire(options?: AcquireOptions): Promise<RevocableLockHandle> {
    return this.#revocable(await super.acquire(options))
  }

  override async tryAcquire(options?: AcquireOptions): Promise<RevocableLockHandle | undefined> {
    const held = await super.tryAcquire(options)
    return held === undefined ? undefined : this.#revocable(held)
  }

  override async run<T>(
    body: (held: RevocableLockHandle) => Promise<T>,
    options?: AcquireOptions,
  ): Promise<T> {
    checkBody(body)
    return super.run((held) => body(this.#revocable(held)), options)
  }

  /** @internal */
  protected override turnOptions(signal: AbortSignal | undefined): TurnOptions<EphemeralLockHandle> {
    return {
      ...super.turnOptions(signal),
      ...this.#revocations.waitOptions,
      grant: (entry, waitedMs) => this.#grant(entry, waitedMs),
    }
  }

  #grant(entry: QueueEntry, waitedMs: number): EphemeralLockHandle {
    const options = { recipe: 'revocable mutex', policy: this.policy, waitedMs }
    return this.#revocations.grant(entry, options, (revocable, requested) => {
      const handle = new EphemeralLockHandle(this.client, entry, revocable)
      this.#requests.set(handle.signal, requested)
      return handle
    })
  }

  #revocable(held: LockHandle): RevocableLockHandle {
    if ('revokeRequested' in held) return held as RevocableLockHandle
    const revokeRequested = this.#requests.get(held.signal)!
    return {
      token: held.token,
      path: held.path,
      signal: held.signal,
      assertHeld: () => held.assertHeld(),
      guard: (operations, options) => held.guard(operations, options),
      release: (options) => held.release(options),
      [Symbol.asyncDispose]: () => held.release(),
      revokeRequested,
    }
  }
}
