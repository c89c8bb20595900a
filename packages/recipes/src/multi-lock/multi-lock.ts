import { MultiError, UsageError, type CallOptions, type WriteOp, type WriteResult } from '@zabra/client/core'
import { checkRelease } from '../handles/ephemeral-lock-handle.ts'
import { LostError } from '../handles/lost.ts'
import { runAndRelease } from '../handles/run-and-release.ts'
import type { AcquireOptions, LockHandle, ReleaseOptions } from '../handles/types.ts'
import { acquiring, Mutex } from '../mutex/mutex.ts'
import { withLimits } from '../support/limits.ts'
import { checkArgument, checkBody, checkOptions, type Rule } from '../support/checks.ts'

export interface MultiLockHandle extends LockHandle {
  /** The tokens of the locks in the order of their paths. `token` is the highest of them. */
  readonly tokens: readonly bigint[]
}

const mutexes: Rule = [
  'a list of Mutex',
  (value) => Array.isArray(value) && value.every((one) => one instanceof Mutex),
]

/** Several mutexes as one lock: a caller gets all of them or none. */
export class MultiLock {
  /** In the one order that all callers use. */
  readonly #locks: readonly Mutex[]

  /** Throws a `UsageError` when two locks have the same path, or there is none. */
  constructor(locks: readonly Mutex[]) {
    checkArgument('MultiLock', 'locks', locks, mutexes)
    this.#locks = inPathOrder(locks)
  }

  /**
   * Acquires all locks in the order of their paths, so that two callers that want the same locks cannot deadlock. The
   * limits are those of the whole. Starts again when a lock is lost with the connection while the others are waited
   * for. The combined handle ends with the first lock that ends. On failure releases what was acquired and rejects as
   * `acquire` of a mutex does, or with an `AggregateError` if a release failed too.
   */
  async acquire(options: AcquireOptions = {}): Promise<MultiLockHandle> {
    return (await this.#acquireEach(options, (lock, call) => lock.acquire(call)))!
  }

  /** Acquires all locks if no contender holds or waits for any of them; returns undefined otherwise. */
  tryAcquire(options: AcquireOptions = {}): Promise<MultiLockHandle | undefined> {
    return this.#acquireEach(options, (lock, call) => lock.tryAcquire(call))
  }

  /** Runs the body while holding all locks, then releases them. Rejects with an `AggregateError` when both fail. */
  async run<T>(body: (held: MultiLockHandle) => Promise<T>, options?: AcquireOptions): Promise<T> {
    checkBody(body)
    const held = await this.acquire(options)
    return runAndRelease(
      () => body(held),
      () => held.release(),
    )
  }

  /** Returns undefined when one of the locks is not acquired. */
  async #acquireEach(options: AcquireOptions, acquire: Acquire): Promise<MultiLockHandle | undefined> {
    checkOptions('MultiLock', options, acquiring)
    const { owner, ...limits } = options
    const path = this.#locks.map((lock) => lock.path).join(', ')
    return withLimits(this.#locks[0]!.client, limits, { operation: 'acquire', path }, async (signal) => {
      for (;;) {
        const got = await this.#acquireOnce({ signal, owner }, acquire)
        if (got !== 'lost') return got
      }
    })
  }

  /**
   * Releases all locks, and returns undefined, as soon as one is not acquired. Returns `lost` when the session or the
   * connection took one while the others were waited for.
   */
  async #acquireOnce(
    options: AcquireOptions,
    acquire: Acquire,
  ): Promise<MultiLockHandle | undefined | 'lost'> {
    const held: LockHandle[] = []
    let failures: unknown[] = []
    let isLost = false
    try {
      for (const lock of this.#locks) {
        const one = await acquire(lock, options)
        if (one === undefined) break
        held.push(one)
      }
      if (held.length === this.#locks.length) {
        for (const one of held) one.assertHeld()
        return new CombinedHandle(this.#locks, held)
      }
    } catch (error) {
      isLost = error instanceof LostError && ['suspended', 'leasePassed', 'expired'].includes(error.reason)
      if (!isLost) failures = [error]
    }
    // A caller that has given up does not wait for a connection.
    failures.push(...(await releaseAll(held, { background: options.signal?.aborted })))
    if (failures.length === 1) throw failures[0]
    if (failures.length === 0) return isLost ? 'lost' : undefined
    const message = 'Acquiring several locks failed, and so did releasing the first ones'
    throw new AggregateError(failures, message, { cause: failures[0] })
  }
}

type Acquire = (lock: Mutex, options: AcquireOptions) => Promise<LockHandle | undefined>

/** Returns the locks in the one order that all callers use. */
export function inPathOrder<T extends { readonly path: string }>(locks: readonly T[]): T[] {
  if (locks.length === 0) throw new UsageError('Expected one lock or more, got none')
  const ordered = locks.toSorted((a, b) => (a.path < b.path ? -1 : a.path > b.path ? 1 : 0))
  const twice = ordered.find(({ path }, i) => path === ordered[i + 1]?.path)
  if (twice !== undefined)
    throw new UsageError(`Expected different locks, got ${twice.path} twice`, { path: twice.path })
  return ordered
}

/** Releases in reverse order; returns the errors. */
async function releaseAll(held: readonly LockHandle[], options?: ReleaseOptions): Promise<unknown[]> {
  const failures: unknown[] = []
  for (const one of held.toReversed()) {
    try {
      await one.release(options)
    } catch (error) {
      failures.push(error)
    }
  }
  return failures
}

class CombinedHandle implements MultiLockHandle {
  readonly tokens: readonly bigint[]
  readonly token: bigint
  readonly path: string
  readonly #locks: readonly Mutex[]
  readonly #held: readonly LockHandle[]
  readonly #controller = new AbortController()
  #released: Promise<void> | undefined

  constructor(locks: readonly Mutex[], held: readonly LockHandle[]) {
    this.#locks = locks
    this.#held = held
    this.tokens = held.map(({ token }) => token)
    this.token = this.tokens.reduce((a, b) => (a > b ? a : b))
    this.path = held[0]!.path
    for (const { signal } of held) {
      const end = (): void => this.#end(signal)
      if (signal.aborted) end()
      else signal.addEventListener('abort', end, { once: true, signal: this.#controller.signal })
    }
  }

  get signal(): AbortSignal {
    return this.#controller.signal
  }

  assertHeld(): void {
    this.signal.throwIfAborted()
    for (const one of this.#held) one.assertHeld()
  }

  async guard<const T extends readonly WriteOp[]>(
    operations: T,
    options?: CallOptions,
  ): Promise<{ [K in keyof T]: WriteResult<T[K]> }> {
    const [first, ...others] = this.#held
    if (this.#locks.some(({ client }) => client !== this.#locks[0]!.client)) {
      throw new UsageError('Expected locks of one client: a transaction belongs to one session')
    }
    this.assertHeld()
    const checks = others.map(({ path }) => ({ op: 'check', path }) as const)
    try {
      const all: readonly WriteOp[] = [...checks, ...operations]
      const results = (await first!.guard(all, options)) as readonly unknown[]
      return results.slice(checks.length) as { [K in keyof T]: WriteResult<T[K]> }
    } catch (error) {
      if (!(error instanceof MultiError)) throw error
      const gone = others[error.index]
      if (gone === undefined) throw withShiftedIndex(error, checks.length)
      const message = `The mutex ${gone.path} is no longer held: its znode was deleted`
      throw new LostError(message, 'nodeDeleted', gone.token, gone.path, error)
    }
  }

  async release(options: ReleaseOptions = {}): Promise<void> {
    checkRelease(options)
    this.#released ??= releaseAll(this.#held, options).then((failures) => {
      if (failures.length === 1) throw failures[0]
      if (failures.length > 1) throw new AggregateError(failures, 'Several locks could not be released')
    })
    return this.#released
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.release()
  }

  #end(signal: AbortSignal): void {
    if (!this.signal.aborted) this.#controller.abort(signal.reason)
  }
}

function withShiftedIndex(error: MultiError, by: number): MultiError {
  const index = error.index - by
  const cause = error.cause as ConstructorParameters<typeof MultiError>[2]
  return new MultiError(
    `The guarded operation ${index} failed with ${cause.code}: ${cause.message}`,
    index,
    cause,
  )
}
