import type { Bytes, CallOptions, Client, ErrorPolicy } from '@zabra/client/core'
import { withoutTimeout } from '@zabra/client/recipe-kit'
import { runAndRelease } from '../handles/run-and-release.ts'
import { EphemeralLockHandle } from '../handles/ephemeral-lock-handle.ts'
import type { AcquireOptions, LockHandle, RecipeOptions } from '../handles/types.ts'
import { contendersInOrder } from '../lock-queue/contenders.ts'
import { LockQueue, type QueueEntry } from '../lock-queue/lock-queue.ts'
import type { Participant } from '../handles/lock-timeout.ts'
import { explainQueue, readParticipants } from '../lock-queue/participants.ts'
import { acquireTurn, tryAcquireTurn, type TurnOptions } from '../lock-queue/turn.ts'
import { isBusy, enterLocalQueue } from './local-queue.ts'
import { lockPrefixes, parseLock } from './names.ts'
import { withLimits, type WaitContext } from '../support/limits.ts'
import { toBytes } from '../support/to-bytes.ts'
import { Owners } from './owners.ts'
import {
  checkBody,
  checkOptions,
  checkRecipe,
  object,
  recipe,
  trueOrFalse,
  type Rules,
  waiting,
} from '../support/checks.ts'

export interface MutexOptions extends RecipeOptions {
  /** An owner may acquire a lock that it holds; the last release counts. Every acquire must then name its owner. */
  readonly reentrant?: boolean | undefined
  /** Callers of one client queue locally, with one znode at a time in the queue (default true). */
  readonly localQueue?: boolean | undefined
}

const rules: Rules<MutexOptions> = { ...recipe, reentrant: trueOrFalse, localQueue: trueOrFalse }
/** The options of `acquire`. */
export const acquiring: Rules<AcquireOptions> = { ...waiting, owner: object }

/**
 * A mutual exclusion lock, granted in order of arrival. See the README of this folder for the behaviour on a lost
 * connection.
 */
export class Mutex {
  readonly client: Client
  /** Directory of the queue. */
  readonly path: string
  /** Data of the znodes that this object creates. */
  readonly data: Bytes
  /** @internal */
  protected readonly queue: LockQueue
  /** @internal */
  protected readonly policy: ErrorPolicy
  readonly #prefix: string
  readonly #localQueue: boolean
  readonly #owners: Owners

  constructor(client: Client, path: string, options: MutexOptions = {}) {
    checkRecipe('Mutex', client, path, options, rules)
    const {
      naming = 'recipe',
      errorPolicy = client.errorPolicy,
      reentrant = false,
      localQueue = true,
    } = options
    this.client = withoutTimeout(client)
    this.path = path
    this.data = toBytes(options.data)
    this.policy = errorPolicy
    this.queue = new LockQueue(client, path, parseLock, options)
    this.#prefix = lockPrefixes[naming]
    this.#localQueue = localQueue
    this.#owners = new Owners(path, reentrant)
  }

  /**
   * Waits for the lock. Rejects with an `AbortedError` when the signal aborts, a `LockTimeoutError` that names the holder
   * when the time is up, a `SessionExpiredError` when the session expires and `onExpiry` is `fail`, a `LostError` when
   * another client deletes the waiting znode, and a `UsageError` when the owner would wait for itself.
   */
  async acquire(options: AcquireOptions = {}): Promise<LockHandle> {
    checkOptions(`acquire ${this.path}`, options, acquiring)
    const { owner } = options
    return (
      this.#owners.reenter(owner) ??
      this.#owners.acquireFirst(owner, () =>
        withLimits(this.client, options, this.#waiting, (signal) =>
          this.#acquireThroughLocalQueue(signal, () => acquireTurn(this.queue, this.turnOptions(signal))),
        ),
      )
    )
  }

  /**
   * Acquires the lock if no contender holds it or waits for it; returns undefined otherwise. A contender that is
   * just leaving may still count.
   */
  async tryAcquire(options: AcquireOptions = {}): Promise<LockHandle | undefined> {
    checkOptions(`tryAcquire ${this.path}`, options, acquiring)
    const { owner } = options
    const again = this.#owners.reenter(owner)
    if (again !== undefined) return again
    if (this.#localQueue && isBusy(this.client, this.path)) return undefined
    const isFree = (names: readonly string[]): boolean => contendersInOrder(names, parseLock).length === 0
    return this.#owners.acquireFirst(owner, () =>
      withLimits(this.client, options, this.#waiting, (signal) =>
        this.#acquireThroughLocalQueue(signal, () =>
          tryAcquireTurn(this.queue, this.turnOptions(signal), isFree),
        ),
      ),
    )
  }

  /** Runs the body while holding the lock, then releases it. Rejects with an `AggregateError` when both fail. */
  async run<T>(body: (held: LockHandle) => Promise<T>, options?: AcquireOptions): Promise<T> {
    checkBody(body)
    const held = await this.acquire(options)
    return runAndRelease(
      () => body(held),
      () => held.release(),
    )
  }

  /** Returns the contenders, the holder first. */
  participants(options?: CallOptions): Promise<Participant[]> {
    return readParticipants(this.queue, (participant) => participant, options)
  }

  /** @internal */
  protected turnOptions(signal: AbortSignal | undefined): TurnOptions<EphemeralLockHandle> {
    return {
      signal,
      prefix: this.#prefix,
      policy: this.policy,
      grant: (entry: QueueEntry, waitedMs: number) =>
        new EphemeralLockHandle(this.client, entry, { recipe: 'mutex', policy: this.policy, waitedMs }),
    }
  }

  get #waiting(): WaitContext {
    return {
      operation: 'acquire',
      rules: acquiring,
      path: this.path,
      explain: (options) => explainQueue(this.queue, options),
    }
  }

  /** Waits in the local queue first, and leaves it when the lock has been released. */
  async #acquireThroughLocalQueue<T extends EphemeralLockHandle | undefined>(
    signal: AbortSignal | undefined,
    acquire: () => Promise<T>,
  ): Promise<T> {
    if (!this.#localQueue) return acquire()
    const leave = await enterLocalQueue(this.client, this.path, signal)
    let held: T
    try {
      held = await acquire()
    } catch (error) {
      leave()
      throw error
    }
    if (held === undefined) leave()
    else held.onRelease(leave)
    return held
  }
}
