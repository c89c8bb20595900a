import type { Identity } from '../core/types.ts'

/** A request that waits: a write for its commit, or whatever stands behind one. */
export interface Waiting {
  readonly xid: number
  readonly type: number
  /** On the monotonic clock. */
  readonly startedAt: number
  /** Of a read: what it asks, copied out of the chunk. */
  readonly body?: Uint8Array
  /** Of a read: who the client was when it asked. */
  readonly identities?: readonly Identity[]
  /** Of a write that was refused without a zxid. */
  readonly err?: number
}

/** Whether the answer is known or can be found now; a write that is on its way is neither. */
export const isReady = ({ body, err }: Waiting): boolean => body !== undefined || err !== undefined

/** The requests of one session in their order, from the oldest write that is on its way. */
export class Line {
  #waiting: Waiting[] = []
  #front = 0

  get length(): number {
    return this.#waiting.length - this.#front
  }

  get first(): Waiting | undefined {
    return this.#waiting[this.#front]
  }

  push(waiting: Waiting): void {
    this.#waiting.push(waiting)
  }

  shift(): Waiting | undefined {
    const first = this.#waiting[this.#front]
    if (first === undefined) return undefined
    this.#front++
    if (this.#front === this.#waiting.length) this.clear()
    else if (this.#front > 1024) {
      this.#waiting = this.#waiting.slice(this.#front)
      this.#front = 0
    }
    return first
  }

  clear(): void {
    this.#waiting = []
    this.#front = 0
  }
}
