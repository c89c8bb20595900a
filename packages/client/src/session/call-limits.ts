import type { Clock } from '@zabra/runtime'
import { abortError, type ZooKeeperError } from '../errors.ts'
import { onAbort } from '../on-abort.ts'
import type { PendingRequest } from './pending-request.ts'
import { errorContextOf } from './request-info.ts'

const TIMEOUT = { name: 'TimeoutError', message: 'The deadline of the call passed' }

/** Ends calls by the signals and timeouts that their callers gave. */
export class CallLimits {
  readonly #clock: Clock
  readonly #onEnd: (request: PendingRequest, reason: unknown) => void

  constructor(clock: Clock, onEnd: (request: PendingRequest, reason: unknown) => void) {
    this.#clock = clock
    this.#onEnd = onEnd
  }

  /** Applies the limits in the options of a call. Returns the error of a call that they have ended already. */
  arm(request: PendingRequest): ZooKeeperError | undefined {
    const { signal, timeoutMs } = request.options!
    if (signal?.aborted) return abortError(signal.reason, errorContextOf(request))
    if (signal !== undefined)
      request.stopListening = onAbort(signal, () => this.#onEnd(request, signal.reason))
    if (timeoutMs !== undefined) {
      request.cancelTimer = this.#clock.after(timeoutMs, `deadline of ${request.operation.name}`, () =>
        this.#onEnd(request, TIMEOUT),
      )
    }
    return undefined
  }

  /** Removes the signal listener and the timer of a request. */
  disarm(request: PendingRequest): void {
    request.stopListening?.()
    request.stopListening = undefined
    request.cancelTimer?.()
    request.cancelTimer = undefined
  }
}
