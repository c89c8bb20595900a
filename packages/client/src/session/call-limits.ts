import type { Clock } from '@zabra/runtime'
import { abortError, type ZooKeeperError } from '../errors.ts'
import type { PendingRequest } from './pending-request.ts'
import { errorContextOf } from './request-info.ts'
import { SignalListeners } from './signal-listeners.ts'

const TIMEOUT = { name: 'TimeoutError', message: 'The deadline of the call passed' }

/** Ends calls by the signals and timeouts that their callers gave. */
export class CallLimits {
  readonly #clock: Clock
  readonly #onEnd: (request: PendingRequest, reason: unknown) => void
  readonly #signals: SignalListeners

  constructor(clock: Clock, onEnd: (request: PendingRequest, reason: unknown) => void) {
    this.#clock = clock
    this.#onEnd = onEnd
    this.#signals = new SignalListeners(onEnd)
  }

  /** Applies the limits in the options of a call. Returns the error of a call that they have ended already. */
  arm(request: PendingRequest): ZooKeeperError | undefined {
    const { signal, timeoutMs } = request.options!
    if (signal?.aborted) return abortError(signal.reason, errorContextOf(request))
    if (signal !== undefined) this.#signals.add(signal, request)
    if (timeoutMs !== undefined) {
      request.cancelTimer = this.#clock.after(timeoutMs, `deadline of ${request.operation.name}`, () =>
        this.#onEnd(request, TIMEOUT),
      )
    }
    return undefined
  }

  /** Removes the signal listener and the timer of a request. */
  disarm(request: PendingRequest): void {
    if (request.hasSignalListener) this.#signals.remove(request.options!.signal!, request)
    request.cancelTimer?.()
    request.cancelTimer = undefined
  }
}
