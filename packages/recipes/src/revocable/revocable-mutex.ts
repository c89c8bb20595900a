import type { Bytes } from '@zabra/client/core'
import { LostError } from '../handles/lost.ts'
import { OwnNodeWatcher } from '../handles/own-node-watcher.ts'
import { EphemeralLockHandle } from '../handles/ephemeral-lock-handle.ts'
import type { AcquireOptions, LockHandle } from '../handles/types.ts'
import type { QueueEntry } from '../lock-queue/lock-queue.ts'
import type { WaitGuard, TurnOptions } from '../lock-queue/turn.ts'
import { Mutex } from '../mutex/mutex.ts'
import { readRequest, type RevokeRequest } from './request.ts'

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
  readonly #watches = new Map<string, RevocationWatch>()
  readonly #requests = new WeakMap<AbortSignal, Promise<RevokeRequest>>()

  override async acquire(options?: AcquireOptions): Promise<RevocableLockHandle> {
    return this.#revocable(await super.acquire(options))
  }

  override async tryAcquire(options?: AcquireOptions): Promise<RevocableLockHandle | undefined> {
    const held = await super.tryAcquire(options)
    return held === undefined ? undefined : this.#revocable(held)
  }

  override run<T>(body: (held: RevocableLockHandle) => Promise<T>, options?: AcquireOptions): Promise<T> {
    return super.run((held) => body(this.#revocable(held)), options)
  }

  protected override turnOptions(options: AcquireOptions): TurnOptions<EphemeralLockHandle> {
    return {
      ...super.turnOptions(options),
      createGuard: (entry, ring) => {
        const watch = new RevocationWatch(this, entry, ring)
        this.#watches.set(entry.path, watch)
        return watch
      },
      onWaitEnd: ({ path }) => void this.#watches.delete(path),
      grant: (entry, waitedMs) => this.#grant(entry, waitedMs),
    }
  }

  #grant(entry: QueueEntry, waitedMs: number): EphemeralLockHandle {
    const watch = this.#watches.get(entry.path) ?? new RevocationWatch(this, entry, () => {})
    const handle = new EphemeralLockHandle(this.client, entry, {
      recipe: 'revocable mutex',
      policy: this.policy,
      waitedMs,
      watcher: watch.watcher,
      deletionReason: () => (watch.isRequested ? 'revoked' : 'nodeDeleted'),
    })
    watch.attachHandle(handle)
    this.#requests.set(handle.signal, watch.requestPromise)
    return handle
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

/** Reads requests written into the own znode, from before other clients can know it. */
class RevocationWatch implements WaitGuard {
  readonly watcher: OwnNodeWatcher
  readonly requestPromise: Promise<RevokeRequest>
  readonly #entry: QueueEntry
  readonly #original: Bytes
  #resolve: (request: RevokeRequest) => void = () => {}
  #request: RevokeRequest | undefined

  constructor(mutex: { client: Mutex['client']; data: Bytes }, entry: QueueEntry, ring: () => void) {
    this.#entry = entry
    this.#original = mutex.data
    this.requestPromise = new Promise((resolve) => (this.#resolve = resolve))
    this.watcher = new OwnNodeWatcher(mutex.client, entry.path, {
      onData: (data) => this.#read(data, ring),
      onDeleted: ring,
    })
  }

  /** True when a revocation was requested, or at least the znode was written to before its deletion. */
  get isRequested(): boolean {
    return this.#request !== undefined || this.watcher.hasChanged
  }

  check(): void {
    if (this.#request === undefined) return
    const { path, token } = this.#entry
    const why = this.#request.reason === undefined ? '' : `: ${this.#request.reason}`
    throw new LostError(`The queue entry ${path} was revoked${why}`, 'revoked', token, path)
  }

  attachHandle(handle: EphemeralLockHandle): void {
    this.watcher.setListener({
      onData: (data) => this.#read(data, () => {}),
      onDeleted: () => handle.lose(this.isRequested ? 'revoked' : 'nodeDeleted'),
    })
  }

  #read(data: Bytes, ring: () => void): void {
    if (this.#request !== undefined || equalBytes(data, this.#original)) return
    this.#request = readRequest(data)
    if (this.#request === undefined) return
    this.#resolve(this.#request)
    ring()
  }
}

const equalBytes = (a: Bytes, b: Bytes): boolean =>
  a.length === b.length && a.every((byte, i) => byte === b[i])
