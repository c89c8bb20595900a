import {
  ClosedError,
  MultiError,
  NoNodeError,
  SessionExpiredError,
  type CallOptions,
  type Client,
  type ConnectionState,
  type ErrorPolicy,
  type StateChange,
  type WriteOp,
  type WriteResult,
  type ZooKeeperError,
} from '@zabra/client/core'
import { withoutTimeout } from '@zabra/client/recipe-kit'
import { watchHorizon } from './horizon.ts'
import { LostError, type LostReason } from './lost.ts'
import { OwnNodeWatcher } from './own-node-watcher.ts'
import { lossReason, sessionStatusOf } from './policy.ts'
import { checkArgument, checkOptions, trueOrFalse } from '../support/checks.ts'
import { report } from '../support/report.ts'
import { joinLeaseRenewal, renewsLease } from './renewal.ts'
import type { LockHandle, ReleaseOptions } from './types.ts'

/** Throws a `UsageError` for wrong options of a release. */
export const checkRelease = (options: ReleaseOptions): void =>
  checkOptions('release', options, { background: trueOrFalse })

/** The ephemeral znode behind a lock handle. */
export interface HandleNode {
  readonly path: string
  /** czxid of the znode. */
  readonly token: bigint
  /** Id of the session that owns the znode. */
  readonly owner: bigint
}

export interface HandleOptions {
  /** Name used in messages and instrumentation, such as `mutex`. */
  readonly recipe: string
  readonly policy: ErrorPolicy
  /** An existing watcher of the znode, used instead of a new one. */
  readonly watcher?: OwnNodeWatcher | undefined
  /** Milliseconds that the caller waited for the lock, for instrumentation. */
  readonly waitedMs?: number | undefined
  /** Returns the reason for the loss when the znode is deleted (default `nodeDeleted`). */
  readonly deletionReason?: (() => LostReason) | undefined
  /** Releases the lock instead of deleting its znode. */
  readonly release?: (() => Promise<void>) | undefined
  /** Called once when the handle ends, for any reason. */
  readonly onEnd?: ((error: LostError) => void) | undefined
}

/**
 * A lock released sooner needs no watch on its znode, which saves a request and a notification per short hold. A
 * deletion before that is noticed when the watch is set.
 */
const WATCH_AFTER_MS = 10

const reasonTexts: Readonly<Record<LostReason, string>> = {
  suspended: 'the connection to the servers was lost',
  leasePassed: 'the session may have expired',
  expired: 'the session has expired',
  nodeDeleted: 'its znode was deleted',
  revoked: 'it was revoked',
  released: 'it was released',
  closed: 'the client was closed',
}

/** A lock backed by an ephemeral znode. Starts held and ends once, by release or by loss. */
export class EphemeralLockHandle implements LockHandle {
  readonly #client: Client
  readonly #node: HandleNode
  readonly #options: HandleOptions
  readonly #controller = new AbortController()
  readonly #states: AsyncIterableIterator<StateChange>
  #leaveRenewal = (): void => {}
  #unwatchHorizon = (): void => {}
  #cancelWatch = (): void => {}
  #released: Promise<void> | undefined
  #releaseCallbacks: (() => void)[] = []

  constructor(client: Client, node: HandleNode, options: HandleOptions) {
    this.#client = withoutTimeout(client)
    this.#node = node
    this.#options = options
    this.#states = client.states()
    void this.#followStates()
    const listener = { onDeleted: () => this.#onDeleted(), onWatchFailed: () => this.#report('unwatched') }
    if (options.watcher === undefined) {
      this.#cancelWatch = client.platform.clock.after(WATCH_AFTER_MS, 'watch on a held lock', () => {
        void new OwnNodeWatcher(client, node.path, listener)
      })
    }
    if (renewsLease(options.policy)) this.#leaveRenewal = joinLeaseRenewal(client)
    this.#unwatchHorizon = watchHorizon(client, options.policy, () => this.#check())
    this.#report('held', options.waitedMs)
  }

  get token(): bigint {
    return this.#node.token
  }

  get path(): string {
    return this.#node.path
  }

  get signal(): AbortSignal {
    return this.#controller.signal
  }

  /** Id of the session that holds the lock. */
  get owner(): bigint {
    return this.#node.owner
  }

  /** Returns the condition that `assertHeld` checks. */
  get isHeld(): boolean {
    this.#check()
    return !this.signal.aborted
  }

  assertHeld(): void {
    this.#check()
    if (this.signal.aborted) throw this.signal.reason
  }

  async guard<const T extends readonly WriteOp[]>(
    operations: T,
    options?: CallOptions,
  ): Promise<{ [K in keyof T]: WriteResult<T[K]> }> {
    this.assertHeld()
    checkArgument('guard', 'operations', operations, ['a list', Array.isArray])
    try {
      const all = [{ op: 'check', path: this.path }, ...operations] as const
      const [, ...results] = await this.#client.multi<readonly WriteOp[]>(all, options)
      return results as { [K in keyof T]: WriteResult<T[K]> }
    } catch (error) {
      throw this.#guardError(error)
    }
  }

  async release(options: ReleaseOptions = {}): Promise<void> {
    checkRelease(options)
    this.#end('released')
    this.#released ??= this.#releaseNode().finally(() => {
      for (const action of this.#releaseCallbacks.splice(0)) action()
    })
    if (!options.background) return this.#released
    this.#released.catch(() => this.#report('releaseFailed'))
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.release()
  }

  /**
   * Registers a callback that runs when the release has succeeded or failed. A lost lock still counts as held
   * until its holder releases it.
   */
  onRelease(action: () => void): void {
    this.#releaseCallbacks.push(action)
  }

  /** Marks the lock as replaced by another handle; there is nothing left to release. */
  markReplaced(): void {
    this.#released = Promise.resolve()
    void this.release()
  }

  /** Ends the handle for a reason that only the recipe knows. */
  lose(reason: LostReason, cause?: unknown): void {
    this.#end(reason, cause)
  }

  async #releaseNode(): Promise<void> {
    // An expired session has taken its znodes with it.
    if (lossReason('session', sessionStatusOf(this.#client, this.owner)) !== undefined) return
    const { release = () => this.#client.delete(this.path, { guaranteed: true, missingOk: true }) } =
      this.#options
    try {
      await release()
    } catch (error) {
      if (!(error instanceof SessionExpiredError || error instanceof ClosedError)) throw error
    }
    this.#report('released')
  }

  /** Ends the handle if the session requires it, in this state of the client. */
  #check(state?: ConnectionState, cause?: unknown): void {
    if (this.signal.aborted) return
    const reason = lossReason(this.#options.policy, sessionStatusOf(this.#client, this.owner, state))
    if (reason !== undefined) this.#end(reason, cause)
  }

  async #followStates(): Promise<void> {
    for await (const { state, cause } of this.#states) {
      this.#check(state, cause)
      if (this.signal.aborted) return
    }
    // The stream of states ends with the client, or because the handle has ended.
    this.#end('closed')
  }

  #onDeleted(cause?: unknown): void {
    this.#end(this.#options.deletionReason?.() ?? 'nodeDeleted', cause)
  }

  #guardError(error: unknown): unknown {
    if (!(error instanceof MultiError)) return error
    const cause = error.cause as ZooKeeperError
    if (error.index > 0)
      return new MultiError(
        `The guarded operation ${error.index - 1} failed with ${cause.code}: ${cause.message}`,
        error.index - 1,
        cause,
      )
    if (!(cause instanceof NoNodeError)) return error
    this.#onDeleted(error)
    return this.signal.reason
  }

  #end(reason: LostReason, cause?: unknown): void {
    if (this.signal.aborted) return
    const { recipe } = this.#options
    const message = `The ${recipe} ${this.path} is no longer held: ${reasonTexts[reason]}`
    const error = new LostError(message, reason, this.token, this.path, cause)
    this.#unwatchHorizon()
    this.#cancelWatch()
    this.#leaveRenewal()
    void this.#states.return?.()
    this.#controller.abort(error)
    if (reason !== 'released') this.#report(`lost: ${reason}`)
    this.#options.onEnd?.(error)
  }

  #report(phase: string, waitedMs?: number): void {
    report(this.#client, { recipe: this.#options.recipe, path: this.path, phase, waitedMs })
  }
}
