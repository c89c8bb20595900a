import { PendingRequest, type Operation } from './pending-request.ts'

/** Number of requests kept for reuse. Further ones are garbage collected. */
const MAX_POOLED = 1024

/** Reuses request objects, linked through `next`. */
export class RequestPool {
  #first: PendingRequest | undefined
  #count = 0

  acquire(operation: Operation): PendingRequest {
    const request = this.#first ?? new PendingRequest()
    if (this.#first !== undefined) {
      this.#first = request.next
      this.#count--
    }
    request.next = undefined
    request.operation = operation
    return request
  }

  /** Clears a settled request and keeps it for reuse. */
  release(request: PendingRequest): void {
    request.clear()
    if (this.#count >= MAX_POOLED) return
    request.next = this.#first
    this.#first = request
    this.#count++
  }
}
