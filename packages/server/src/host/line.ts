import { OpCode } from '@zabra/protocol'
import type { Identity } from '../core/types.ts'

/**
 * A request that waits. With a `body` it is not looked at yet: a read behind a write, or anything of a client that does not
 * take its answers. With an `err` it is a write that was refused without a zxid. With neither it is on its way.
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
  /** With a body: whether it could be on its way before its turn comes, as a write or a sync can. */
  readonly early?: boolean
  readonly err?: number
  /** What a sync on its way is answered with. */
  readonly echo?: Uint8Array
}

/** What a request takes beside its body. */
const ENTRY_BYTES = 200

/** The requests of one session in their order, from the oldest one that has no answer yet. */
export class Line {
  #waiting: Waiting[] = []
  #front = 0
  /** Before this index nothing is put off. */
  #looked = 0
  /** Writes and syncs in the line that nobody else knows yet. */
  putOff = 0
  /** Syncs on their way. Nothing behind one is begun, but for other syncs: it may rely on what the sync shows. */
  syncs = 0
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

  /** Whether there is a first one and something can be done about it now; what is on its way takes its time. */
  get isReady(): boolean {
    const { first } = this
    return first !== undefined && (first.body !== undefined || first.err !== undefined)
  }

  /** The oldest request that is put off, if there is one. */
  get firstPutOff(): Waiting | undefined {
    if (this.putOff === 0) return undefined
    this.#looked = Math.max(this.#looked, this.#front)
    while (!isPutOff(this.#waiting[this.#looked]!)) this.#looked++
    return this.#waiting[this.#looked]
  }

  /** Whether a write, or else a sync, may be begun that stands behind all others. */
  mayBegin(write: boolean): boolean {
    return this.putOff === 0 && (!write || this.syncs === 0)
  }

  /** Whether the oldest request that is put off may be begun. */
  get mayBeginPutOff(): boolean {
    const { firstPutOff } = this
    return firstPutOff !== undefined && (this.syncs === 0 || firstPutOff.type === OpCode.sync)
  }

  push(waiting: Waiting): void {
    this.#waiting.push(waiting)
    this.#enters(waiting)
  }

  shift(): Waiting | undefined {
    const { first } = this
    if (first === undefined) return undefined
    this.#leaves(first)
    this.#front++
    if (this.#front === this.#waiting.length) this.clear()
    else if (this.#front > 1024) {
      this.#waiting = this.#waiting.slice(this.#front)
      this.#looked = Math.max(0, this.#looked - this.#front)
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
    this.#enters(waiting)
  }

  /** The oldest one that was put off has become something else. */
  replacePutOff(waiting: Waiting): void {
    const { firstPutOff } = this
    // A connection that is closed meanwhile has no line any more.
    if (firstPutOff === undefined) return
    this.#leaves(firstPutOff)
    this.#waiting[this.#looked] = waiting
    this.#enters(waiting)
  }

  clear(): void {
    this.#waiting = []
    this.#front = this.#looked = 0
    this.putOff = this.syncs = this.#bytes = 0
  }

  #enters(waiting: Waiting): void {
    if (isPutOff(waiting)) this.putOff++
    if (waiting.echo !== undefined) this.syncs++
    this.#bytes += bytesOf(waiting)
  }

  #leaves(waiting: Waiting): void {
    if (isPutOff(waiting)) this.putOff--
    if (waiting.echo !== undefined) this.syncs--
    this.#bytes -= bytesOf(waiting)
  }
}

const isPutOff = ({ body, early }: Waiting): boolean => body !== undefined && early === true
const bytesOf = ({ body, echo }: Waiting): number => (body?.length ?? 0) + (echo?.length ?? 0)
