import { RequestList, type PendingRequest } from './pending-request.ts'
import { retryDelay } from './retry-policy.ts'
import type { SessionOptions } from './options.ts'

/** Requests that wait for their retry delay. */
export class RetryQueue {
  readonly #options: SessionOptions
  readonly #resend: (request: PendingRequest) => void
  readonly #waiting = new RequestList()

  constructor(options: SessionOptions, resend: (request: PendingRequest) => void) {
    this.#options = options
    this.#resend = resend
  }

  get length(): number {
    return this.#waiting.length
  }

  add(request: PendingRequest): void {
    const { clock, random, retry } = this.#options
    this.#waiting.push(request)
    const delay = retryDelay(request, retry, random, clock.monotonic())
    request.cancelRetry = clock.after(delay, `retry of ${request.operation.name}`, () => {
      request.cancelRetry = undefined
      if (this.#waiting.remove(request)) this.#resend(request)
    })
  }

  drain(): PendingRequest[] {
    return this.#waiting.drain()
  }
}
