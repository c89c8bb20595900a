/**
 * Counts the requests in the lines of all sessions: those without a reply, in a `RequestQueue` each. Most counts only rise, so that a
 * request adds to few of them; what waits is a difference.
 */
export class LineCounts {
  /** Requests that have joined a line, and lines that had none before. */
  joined = 0
  begun = 0
  /** Requests that have left, and lines that became empty so. */
  left = 0
  drained = 0
  /** Reads that wait for those before them, and reads that have left for their replies. */
  reads = 0
  readsLeft = 0
  /** How long a read has waited, in milliseconds: the first one that left since this was undefined. */
  firstWaitMs: number | undefined
  #droppedRequests = 0
  #droppedLines = 0

  /** Requests in lines, and lines that are not empty. */
  get requests(): number {
    return this.joined - this.left - this.#droppedRequests
  }

  get lines(): number {
    return this.begun - this.drained - this.#droppedLines
  }

  /** Counts a read that leaves its line for its reply. */
  answered(waitedMs: number): void {
    this.readsLeft++
    this.firstWaitMs ??= waitedMs
  }

  /** Counts a line that is dropped with its connection. */
  dropped(requests: number): void {
    if (requests === 0) return
    this.#droppedRequests += requests
    this.#droppedLines++
  }
}
