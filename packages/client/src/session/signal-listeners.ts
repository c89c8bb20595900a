import type { PendingRequest } from './pending-request.ts'

/**
 * Aborts requests by the signals of their callers, with one listener for each signal, however many requests share it.
 */
export class SignalListeners {
  #listeners:
    | Map<AbortSignal, { readonly requests: Set<PendingRequest>; readonly stop: () => void }>
    | undefined
  readonly #onAbort: (request: PendingRequest, reason: unknown) => void

  constructor(aborted: (request: PendingRequest, reason: unknown) => void) {
    this.#onAbort = aborted
  }

  add(signal: AbortSignal, request: PendingRequest): void {
    request.hasSignalListener = true
    this.#listeners ??= new Map()
    const known = this.#listeners.get(signal)
    if (known !== undefined) return void known.requests.add(request)
    const requests = new Set([request])
    const abort = (): void => {
      this.#listeners?.delete(signal)
      for (const one of requests) this.#onAbort(one, signal.reason)
    }
    this.#listeners.set(signal, { requests, stop: () => signal.removeEventListener('abort', abort) })
    signal.addEventListener('abort', abort, { once: true })
  }

  remove(signal: AbortSignal, request: PendingRequest): void {
    request.hasSignalListener = false
    const known = this.#listeners?.get(signal)
    if (known === undefined) return
    known.requests.delete(request)
    if (known.requests.size > 0) return
    known.stop()
    this.#listeners?.delete(signal)
  }
}
