import type { Identity } from '../core/types.ts'

/** What a learner may have in flight at its leader, or an observer at its master. */
export interface ForwardLimit {
  /** Bytes that it may forward while an earlier request is in flight. Twice as many may be in flight. */
  readonly maxBytes: number
  /** As how many bytes a request counts beside its own: the leader holds objects for each. */
  readonly requestBytes: number
}

/**
 * For an observer of a leader, and for all observers of a follower together: above it they are not read until requests are finished. That
 * is 4,000 small requests, which members need not wait for longer than for those of clients.
 */
export const OBSERVER_LIMIT: ForwardLimit = { maxBytes: 16 << 20, requestBytes: 4096 }
/**
 * As much as the members of an ensemble let their clients have in flight, all together (`PipelineRoom`). A follower has at most half of it,
 * and forwards up to 32 MiB for its observers, some of which no configuration may name.
 */
const MEMBER_LIMIT: ForwardLimit = { maxBytes: 64 << 20, requestBytes: 64 }
/**
 * A follower of Apache ZooKeeper, one of three, forwards 500 requests of `jute.maxbuffer`, 1 MiB (`globalOutstandingLimit`), and one more
 * of each connection.
 */
const APACHE_LIMIT: ForwardLimit = { maxBytes: 512 << 20, requestBytes: 4096 }

/** The part of the memory of the process that a follower of Apache ZooKeeper may take. Any program may say that it is one. */
const MEMORY_SHARE = 0.5

/**
 * Returns the limit of a learner, for a process with so many bytes of memory. One of Apache ZooKeeper sends no extension. Where memory is
 * short, more requests of it than the process can hold disconnect it, and do not end the process.
 */
export function forwardLimitOf(
  { isObserver, extension }: { readonly isObserver: boolean; readonly extension: object | undefined },
  memoryBytes = Infinity,
): ForwardLimit {
  if (isObserver) return OBSERVER_LIMIT
  if (extension !== undefined) return MEMBER_LIMIT
  // Twice the limit may be in flight.
  const maxBytes = Math.min(APACHE_LIMIT.maxBytes, Math.floor((memoryBytes * MEMORY_SHARE) / 2))
  return { ...APACHE_LIMIT, maxBytes: Math.max(MEMBER_LIMIT.maxBytes, maxBytes) }
}

/**
 * Bounds the bytes of the requests in flight of a learner, or of all observers of a follower. Notes a point in these requests at a time, and
 * looks at whether all before it are finished when `maxBytes` more have come.
 */
export class ForwardedBytes {
  readonly #limit: ForwardLimit
  /** Bytes after the point. */
  #bytes = 0
  /** Whether the requests before the point are finished. */
  #isFinished = true
  readonly #onFinished: (() => void)[] = []

  constructor(limit: ForwardLimit) {
    this.#limit = limit
  }

  /**
   * Counts a request before it is submitted. The caller then calls `notePoint` if `isDue`. Returns whether the request is within the
   * limit.
   */
  count(data: Uint8Array | null, identities: readonly Identity[] | null): boolean {
    const { maxBytes, requestBytes } = this.#limit
    this.#bytes += requestBytes + (data?.length ?? 0)
    if (identities !== null) for (const { scheme, id } of identities) this.#bytes += scheme.length + id.length
    return this.#bytes < maxBytes || this.#isFinished
  }

  /** Whether the next point is to be noted. */
  get isDue(): boolean {
    return this.#isFinished && this.#bytes >= this.#limit.maxBytes
  }

  /** Notes a point. `whenFinished` calls back when all requests until now are finished, or never when the role ends. */
  notePoint(whenFinished: (done: () => void) => void): void {
    this.#bytes = 0
    this.#isFinished = false
    whenFinished(() => {
      this.#isFinished = true
      for (const action of this.#onFinished.splice(0)) action()
    })
  }

  /** Calls back once, when the requests before the point are finished. */
  onceFinished(action: () => void): void {
    this.#onFinished.push(action)
  }

  /** Why a learner that has exceeded the limit is disconnected. */
  get reason(): string {
    return `it forwards requests faster than they are committed: ${this.#bytes} bytes while an earlier one is in flight, of ${this.#limit.maxBytes} at most`
  }
}
