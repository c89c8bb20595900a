import { NoNodeError, type Bytes, type Client, type ErrorPolicy } from '@zabra/client/core'
import { bodyAndRelease } from '../held/combine.ts'
import { Right } from '../held/right.ts'
import type { AcquireOptions, Held, RecipeOptions } from '../held/types.ts'
import { inOrder } from '../line/contenders.ts'
import { Line, type Place } from '../line/line.ts'
import { takeTurn, tryTurn, type TurnOptions } from '../line/turn.ts'
import { isBusy, queueUp } from './local-queue.ts'
import { lockWords, parseLock } from './names.ts'
import { Owners } from './owners.ts'

export interface MutexOptions extends RecipeOptions {
  /** An owner may acquire again what it holds; the last release counts. Every acquire must name its owner then. */
  readonly reentrant?: boolean
  /** Callers of one client wait for each other here, with one znode in the line at a time (default true). */
  readonly localQueue?: boolean
}

/** Somebody in the line of a lock. */
export interface Participant {
  readonly path: string
  readonly data: Bytes
  /** The session. */
  readonly owner: bigint
}

/**
 * A lock that one holder has at a time, in the order of arrival. See the README of this folder for what happens when the
 * connection is lost.
 */
export class Mutex {
  readonly client: Client
  /** The directory of its line. */
  readonly path: string
  /** What its own znodes hold. */
  readonly data: Bytes
  protected readonly line: Line
  protected readonly policy: ErrorPolicy
  readonly #word: string
  readonly #localQueue: boolean
  readonly #owners: Owners

  constructor(client: Client, path: string, options: MutexOptions = {}) {
    const {
      naming = 'recipe',
      errorPolicy = client.errorPolicy,
      reentrant = false,
      localQueue = true,
    } = options
    this.client = client
    this.path = path
    this.data = options.data ?? new Uint8Array(0)
    this.policy = errorPolicy
    this.line = new Line(client, path, parseLock, options)
    this.#word = lockWords[naming]
    this.#localQueue = localQueue
    this.#owners = new Owners(path, reentrant)
  }

  /**
   * Waits for the lock. Rejects with an `AbortedError` or `OperationTimeoutError` when the signal aborts, a
   * `SessionExpiredError` when the session expires and `onSessionLoss` is `throw`, a `LostError` when somebody deletes the
   * waiting znode, and a `UsageError` when the owner would wait for itself.
   */
  async acquire(options: AcquireOptions = {}): Promise<Held> {
    const { owner, signal } = options
    return (
      this.#owners.again(owner) ??
      this.#owners.first(owner, () => this.#enter(signal, () => this.wait(options)))
    )
  }

  /** Takes the lock if nobody has it or waits for it; undefined otherwise. Somebody who just leaves may count. */
  async tryAcquire(options: AcquireOptions = {}): Promise<Held | undefined> {
    const { owner, signal } = options
    const again = this.#owners.again(owner)
    if (again !== undefined) return again
    if (this.#localQueue && isBusy(this.client, this.path)) return undefined
    const isFree = (names: readonly string[]): boolean => inOrder(names, parseLock).length === 0
    return this.#owners.first(owner, () =>
      this.#enter(signal, () => tryTurn(this.line, this.turn(options), isFree)),
    )
  }

  /** Runs the body while holding, and releases. What both throw comes in one `AggregateError`. */
  async run<T>(body: (held: Held) => Promise<T>, options?: AcquireOptions): Promise<T> {
    const held = await this.acquire(options)
    return bodyAndRelease(
      () => body(held),
      () => held.release(),
    )
  }

  /** Who is in line, the holder first. */
  async participants(): Promise<Participant[]> {
    const listing = await this.line.list(undefined)
    const reads = inOrder(listing?.names ?? [], parseLock).map(({ name }) =>
      this.#read(this.line.pathOf(name)),
    )
    return (await Promise.all(reads)).filter((participant) => participant !== undefined)
  }

  /** Stands in line. */
  protected wait(options: AcquireOptions): Promise<Right> {
    return takeTurn(this.line, this.turn(options))
  }

  protected turn(options: AcquireOptions): TurnOptions<Right> {
    return {
      ...options,
      word: this.#word,
      policy: this.policy,
      grant: (place: Place, waitedMs: number) =>
        new Right(this.client, place, { recipe: 'mutex', policy: this.policy, waitedMs }),
    }
  }

  /** Takes its place among the callers of this client, and leaves it when the right has been given back. */
  async #enter<T extends Right | undefined>(
    signal: AbortSignal | undefined,
    acquire: () => Promise<T>,
  ): Promise<T> {
    if (!this.#localQueue) return acquire()
    const leave = await queueUp(this.client, this.path, signal)
    let held: T
    try {
      held = await acquire()
    } catch (error) {
      leave()
      throw error
    }
    if (held === undefined) leave()
    else held.afterRelease(leave)
    return held
  }

  async #read(path: string): Promise<Participant | undefined> {
    try {
      const { data, stat } = await this.client.getData(path)
      return { path, data, owner: stat.ephemeralOwner }
    } catch (error) {
      if (error instanceof NoNodeError) return undefined
      throw error
    }
  }
}
