import { ErrorCode, OpCode, type Reader, type PooledBuffer, type BufferPool } from '@zabra/protocol'
import { RingBuffer } from '../core/ring-buffer.ts'
import type { Identity } from '../core/types.ts'

const NOBODY: readonly Identity[] = []

/**
 * A request that waits. With a `body` it is not looked at yet: a read behind a write, or anything of a client that does not
 * take its answers. With an `err` it is a write that was refused without a zxid. With neither it is on its way.
 */
export class QueuedRequest {
  readonly xid: number
  readonly type: number
  /** On the monotonic clock. */
  readonly startedAt: number
  /** The error number of what was refused, else 0. */
  readonly err: number
  /** What it asks, from `from` to `to`. */
  body: Uint8Array | undefined = undefined
  from = 0
  to = 0
  /** With a body: who the client was when it asked. */
  readonly identities: readonly Identity[]
  /** With a body: whether it could be on its way before its turn comes, as a write or a sync can. */
  readonly canStartEarly: boolean
  /** What a sync on its way is answered with. */
  syncBody: Uint8Array | undefined = undefined

  constructor(
    xid: number,
    type: number,
    startedAt: number,
    err: number = ErrorCode.OK,
    identities = NOBODY,
    early = false,
  ) {
    this.xid = xid
    this.type = type
    this.startedAt = startedAt
    this.err = err
    this.identities = identities
    this.canStartEarly = early
  }

  /** Gives it a body that has an array of its own. */
  setBody(body: Uint8Array): void {
    this.body = body
    this.to = body.length
  }

  /** Has a reader begin at its body. */
  readBody(reader: Reader): Reader {
    return reader.reset(this.body!, this.from, this.to)
  }
}

/**
 * What stands for a sync that was put off, once it has begun: on its way (undefined), refused with an error, or, when there is
 * nothing to wait for, a read like others.
 */
export function startedSync(sync: QueuedRequest, err: number | undefined): QueuedRequest {
  const { xid, type, startedAt, identities, body, from, to } = sync
  const begun = new QueuedRequest(xid, type, startedAt, err, identities)
  const asked = body!.slice(from, to)
  if (err === undefined) begun.syncBody = asked
  else if (err === ErrorCode.OK) begun.setBody(asked)
  return begun
}

/** Bodies lie one behind the other in a room: a small one, since most lines are short, and larger ones behind that. */
const FIRST_ROOM_BYTES = 512
const ROOM_BYTES = 4096
/** Longer bodies have arrays of their own. */
const LONGEST_BYTES = 1024
/** What a request takes beside its body. */
const ENTRY_BYTES = 200

/** The requests of one session in their order, from the oldest one that has no answer yet. */
export class RequestQueue {
  readonly #rooms: BufferPool
  /** Where the next body goes, and how much of it is taken. */
  #room: PooledBuffer | undefined
  #taken = 0
  readonly #waiting = new RingBuffer<QueuedRequest | undefined>(undefined)
  /** So many of the first ones are not put off. */
  #looked = 0
  /** Writes and syncs in the line that nobody else knows yet. */
  deferredCount = 0
  /** Syncs on their way. Nothing behind one is begun, but for other syncs: it may rely on what the sync shows. */
  pendingSyncs = 0
  #bytes = 0

  /** Bodies lie in `rooms`. */
  constructor(rooms: BufferPool) {
    this.#rooms = rooms
  }

  get length(): number {
    return this.#waiting.length
  }

  /** Bytes of memory that the waiting requests take, roughly. */
  get byteSize(): number {
    return this.#bytes + this.length * ENTRY_BYTES
  }

  get first(): QueuedRequest | undefined {
    return this.#waiting.first
  }

  /** Whether there is a first one and something can be done about it now; what is on its way takes its time. */
  get isReady(): boolean {
    const { first } = this
    return first !== undefined && (first.body !== undefined || first.err !== ErrorCode.OK)
  }

  /** The oldest request that is put off, if there is one. */
  get firstDeferred(): QueuedRequest | undefined {
    if (this.deferredCount === 0) return undefined
    while (!isPutOff(this.#waiting.at(this.#looked)!)) this.#looked++
    return this.#waiting.at(this.#looked)
  }

  /** Whether a write, or else a sync, may be begun that stands behind all others. */
  canStart(write: boolean): boolean {
    return this.deferredCount === 0 && (!write || this.pendingSyncs === 0)
  }

  /** Whether the oldest request that is put off may be begun. */
  get canStartDeferred(): boolean {
    const { firstDeferred: firstPutOff } = this
    return firstPutOff !== undefined && (this.pendingSyncs === 0 || firstPutOff.type === OpCode.sync)
  }

  push(waiting: QueuedRequest): void {
    this.#waiting.push(waiting)
    this.#enters(waiting)
  }

  /** Adds one that is not looked at yet: what it asks is copied from between two offsets. */
  pushDeferred(waiting: QueuedRequest, bytes: Uint8Array, start: number, end: number): void {
    const length = end - start
    if (length > LONGEST_BYTES) {
      // `slice` would be no copy where the platform has arrays of its own.
      waiting.setBody(new Uint8Array(bytes.subarray(start, end)))
    } else {
      // What lies in a room that is full is somebody's body until it is answered, so the room is left to them.
      if (this.#room === undefined || this.#taken + length > this.#room.bytes.length) {
        const size = this.#room === undefined ? FIRST_ROOM_BYTES : ROOM_BYTES
        this.#room = this.#rooms.acquire(Math.max(size, length))
        this.#taken = 0
      }
      const room = this.#room.bytes
      const to = this.#taken
      for (let i = 0; i < length; i++) room[to + i] = bytes[start + i]!
      waiting.body = room
      waiting.from = to
      waiting.to = this.#taken = to + length
    }
    this.push(waiting)
  }

  /** Nothing is being answered. When nothing waits either, the room for bodies goes to somebody else. */
  releaseBuffer(): void {
    if (this.#room === undefined || this.length > 0) return
    this.#rooms.release(this.#room)
    this.#room = undefined
  }

  shift(): QueuedRequest | undefined {
    const first = this.#waiting.shift()
    if (first === undefined) return undefined
    this.#leaves(first)
    if (this.#looked > 0) this.#looked--
    return first
  }

  /** The first one has become something else. */
  replaceFirst(waiting: QueuedRequest): void {
    const { first } = this
    // A connection that is closed meanwhile has no line any more.
    if (first === undefined) return
    this.#leaves(first)
    this.#waiting.set(0, waiting)
    this.#enters(waiting)
  }

  /** The oldest one that was put off has become something else. */
  replaceDeferred(waiting: QueuedRequest): void {
    const { firstDeferred: firstPutOff } = this
    // A connection that is closed meanwhile has no line any more.
    if (firstPutOff === undefined) return
    this.#leaves(firstPutOff)
    this.#waiting.set(this.#looked, waiting)
    this.#enters(waiting)
  }

  clear(): void {
    this.#waiting.clear()
    this.#looked = this.deferredCount = this.pendingSyncs = this.#bytes = 0
  }

  #enters(waiting: QueuedRequest): void {
    if (isPutOff(waiting)) this.deferredCount++
    if (waiting.syncBody !== undefined) this.pendingSyncs++
    this.#bytes += bytesOf(waiting)
  }

  #leaves(waiting: QueuedRequest): void {
    if (isPutOff(waiting)) this.deferredCount--
    if (waiting.syncBody !== undefined) this.pendingSyncs--
    this.#bytes -= bytesOf(waiting)
  }
}

const isPutOff = ({ body, canStartEarly: early }: QueuedRequest): boolean => early && body !== undefined
const bytesOf = ({ from, to, syncBody: echo }: QueuedRequest): number =>
  to - from + (echo === undefined ? 0 : echo.length)
