import type { Identity } from '../core/types.ts'
import { isWrite } from './operations.ts'

/**
 * A request that waits. With a `body` it is not looked at yet: a read behind a write, or anything of a client that does not
 * take its answers. With an `err` it is a write that was refused without a zxid. With neither it is a write on its way.
 */
export interface Waiting {
  readonly xid: number
  readonly type: number
  /** On the monotonic clock. */
  readonly startedAt: number
  /** What it asks, copied out of the chunk. */
  readonly body?: Uint8Array
  /** Who the client was when it asked. */
  readonly identities?: readonly Identity[]
  readonly err?: number
}

/** What a request takes beside its body. */
const ENTRY_BYTES = 200

/** The requests of one session in their order, from the oldest one that has no answer yet. */
export class Line {
  #waiting: Waiting[] = []
  #front = 0
  /** Writes in the line that the pipeline does not know yet. */
  putOff = 0
  #bytes = 0

  get length(): number {
    return this.#waiting.length - this.#front
  }

  /** Bytes of memory that the waiting requests take, roughly. */
  get weight(): number {
    return this.#bytes + this.length * ENTRY_BYTES
  }

  get first(): Waiting | undefined {
    return this.#waiting[this.#front]
  }

  /** Whether there is a first one and something can be done about it now; a write on its way takes its time. */
  get isReady(): boolean {
    const { first } = this
    return first !== undefined && (first.body !== undefined || first.err !== undefined)
  }

  push(waiting: Waiting): void {
    this.#waiting.push(waiting)
    if (isPutOff(waiting)) this.putOff++
    this.#bytes += waiting.body?.length ?? 0
  }

  shift(): Waiting | undefined {
    const { first } = this
    if (first === undefined) return undefined
    this.#leaves(first)
    this.#front++
    if (this.#front === this.#waiting.length) this.clear()
    else if (this.#front > 1024) {
      this.#waiting = this.#waiting.slice(this.#front)
      this.#front = 0
    }
    return first
  }

  /** The first one has become something else. */
  replaceFirst(waiting: Waiting): void {
    const { first } = this
    // A connection that is closed meanwhile has no line any more.
    if (first === undefined) return
    this.#leaves(first)
    this.#waiting[this.#front] = waiting
  }

  clear(): void {
    this.#waiting = []
    this.#front = 0
    this.putOff = this.#bytes = 0
  }

  #leaves(waiting: Waiting): void {
    if (isPutOff(waiting)) this.putOff--
    this.#bytes -= waiting.body?.length ?? 0
  }
}

const isPutOff = ({ type, body }: Waiting): boolean => body !== undefined && isWrite(type)
