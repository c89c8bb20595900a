import {
  AbortedError,
  OperationTimeoutError,
  SessionExpiredError,
  type CallOptions,
  type Client,
  type StateChange,
} from '@zabra/client/core'
import { abortError, onAbort, withoutTimeout } from '@zabra/client/recipe-kit'
import { LockTimeoutError, type Explanation } from '../handles/lock-timeout.ts'
import type { WaitOptions } from '../handles/types.ts'
import { checkOptions, type Rule, waiting } from './checks.ts'

/** Longest time in milliseconds for reading what a call that has timed out was waiting for. */
const EXPLAIN_MS = 1000

export interface WaitContext {
  /** Name of the waiting operation, for messages. */
  readonly operation: string
  readonly path: string
  /** The options of the call, if it has more than those of each wait. */
  readonly rules?: Readonly<Record<string, Rule>> | undefined
  /** Reads what the call waits for, once its time is up. A failure leaves the message without it. */
  readonly explain?: ((options: CallOptions) => Promise<Explanation | undefined>) | undefined
}

/**
 * Runs a wait within the limits of its caller: `timeoutMs` and `onExpiry` abort the signal that the work receives.
 * Rejects as the work does, with an `OperationTimeoutError` when the time is up, and with a `SessionExpiredError` when the
 * session has expired and `onExpiry` is `fail`.
 */
export async function withLimits<T>(
  client: Client,
  options: WaitOptions,
  context: WaitContext,
  work: (signal: AbortSignal | undefined) => Promise<T>,
): Promise<T> {
  checkOptions(`${context.operation} ${context.path}`, options, context.rules ?? waiting)
  const { signal, timeoutMs, onExpiry = 'retry' } = options
  const limits = timeoutMs === undefined && onExpiry === 'retry' ? undefined : new Limits(client, options)
  try {
    return await work(limits?.signal ?? signal)
  } catch (error) {
    if (
      limits?.expired !== undefined &&
      (error instanceof AbortedError || error instanceof SessionExpiredError)
    )
      throw sessionExpired(limits.expired, context, error)
    if (error instanceof OperationTimeoutError && isTimeout(limits?.signal ?? signal))
      throw await timeoutError(client, context, timeoutMs, error)
    throw error
  } finally {
    limits?.close()
  }
}

/** Waits for `promise`, or until the signal aborts. What goes on then is for the caller to end. */
export async function orAborted<T>(
  promise: Promise<T>,
  signal: AbortSignal | undefined,
  { operation, path }: WaitContext,
): Promise<T> {
  if (signal === undefined) return promise
  promise.catch(() => {})
  let stopListening = (): void => {}
  const stopped = new Promise<never>((_resolve, reject) => {
    stopListening = onAbort(signal, () => reject(abortError(signal.reason, { operation, path })))
  })
  try {
    return await Promise.race([promise, stopped])
  } finally {
    stopListening()
  }
}

/** The signal of the caller, with a timeout and the end of the session. */
class Limits {
  readonly #controller = new AbortController()
  readonly #client: Client
  readonly #stopListening: () => void
  readonly #states: AsyncIterableIterator<StateChange> | undefined
  #cancel = (): void => {}
  #expired: bigint | undefined

  constructor(client: Client, { signal, timeoutMs, onExpiry }: WaitOptions) {
    this.#client = withoutTimeout(client)
    this.#stopListening = onAbort(signal, () => this.#controller.abort(signal?.reason))
    if (timeoutMs !== undefined) {
      this.#cancel = client.platform.clock.after(timeoutMs, 'timeout of a recipe', () =>
        this.#controller.abort({ name: 'TimeoutError' }),
      )
    }
    if (onExpiry === 'fail') {
      this.#states = client.states()
      void this.#followSession(this.#states)
    }
  }

  get signal(): AbortSignal {
    return this.#controller.signal
  }

  /** Id of the session that has expired; undefined while none has. */
  get expired(): bigint | undefined {
    return this.#expired
  }

  close(): void {
    this.#cancel()
    this.#stopListening()
    void this.#states?.return?.()
  }

  async #followSession(states: AsyncIterableIterator<StateChange>): Promise<void> {
    let { id } = this.#client.session
    for await (const _change of states) {
      const now = this.#client.session.id
      // Without a session at the start, the first one counts.
      if (id === 0n) id = now
      if (now === id && this.#client.state !== 'expired') continue
      this.#expired = id
      return this.#controller.abort()
    }
  }
}

const isTimeout = (signal: AbortSignal | undefined): boolean =>
  (signal?.reason as { name?: unknown } | undefined)?.name === 'TimeoutError'

const sessionExpired = (
  id: bigint,
  { operation, path }: WaitContext,
  cause: AbortedError | SessionExpiredError,
): SessionExpiredError =>
  new SessionExpiredError(`${operation} ${path}: the session expired while waiting`, id, {
    path,
    operation,
    cause,
    maybeApplied: cause.maybeApplied,
  })

async function timeoutError(
  client: Client,
  { operation, path, explain }: WaitContext,
  timeoutMs: number | undefined,
  cause: OperationTimeoutError,
): Promise<OperationTimeoutError> {
  const found = await explanationOf(client, explain, cause)
  const limit = timeoutMs === undefined ? 'before the deadline' : `within ${timeoutMs} ms`
  const message = `${operation} ${path}: no result ${limit}${found === undefined ? '' : `; ${found.text}`}`
  const context = { path, operation, cause }
  return found?.holders === undefined
    ? new OperationTimeoutError(message, 'OPERATION_TIMEOUT', context, cause.wireCode)
    : new LockTimeoutError(message, found.holders, context, cause.wireCode)
}

async function explanationOf(
  client: Client,
  explain: WaitContext['explain'],
  cause: OperationTimeoutError,
): Promise<Explanation | undefined> {
  // One of several locks has named its holders.
  if (cause instanceof LockTimeoutError) return { text: cause.message, holders: cause.holders }
  if (client.state !== 'connected') return undefined
  return explain?.({ timeoutMs: EXPLAIN_MS, retry: false }).catch(() => undefined)
}
