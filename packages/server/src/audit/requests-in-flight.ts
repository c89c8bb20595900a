import { OpCode, readText, type Reader } from '@zabra/protocol'
import { RingBuffer } from '../core/ring-buffer.ts'
import { describeWrite, type WriteDescription } from '../core/prepare/index.ts'

/** Bytes before the path of an entry: the xid, and the length of the path. */
const XID_BYTES = 4
const HEAD_BYTES = XID_BYTES + 2
/** Instead of a length: the description of the request is in the other queue. */
const DESCRIBED = 0xffff
const MIN_BYTES = 256
/** Bytes that a connection keeps while it has no write in flight. */
const KEPT_BYTES = 2048

/**
 * Holds what the audit log says about the writes of a connection that are in flight, should they fail, in the order of their replies.
 *
 * Optimised: what is needed of most requests, the path, is copied as bytes into one array that is used again and again.
 * Why: an object for each write in flight, with its decoded path, costs more than its line: it survives garbage collections, which
 * copy it.
 * Rules: an entry is what `describeWrite` returns for its request; `requests-in-flight.test.ts` compares them.
 */
export class RequestsInFlight {
  #bytes = new Uint8Array(0)
  #front = 0
  #end = 0
  /** Where the newest entry begins. */
  #newest = 0
  readonly #descriptions = new RingBuffer<WriteDescription | undefined>(undefined)

  /** Adds a request, whose body is left at its offset. */
  add(xid: number, type: number, body: Reader): void {
    const length = pathLength(type, body)
    if (length === DESCRIBED) this.#descriptions.push(describeWrite(type, body))
    const copied = length === DESCRIBED ? 0 : length
    this.#makeRoom(HEAD_BYTES + copied)
    const into = this.#bytes
    let at = this.#end
    this.#newest = at
    into[at++] = xid >>> 24
    into[at++] = xid >>> 16
    into[at++] = xid >>> 8
    into[at++] = xid
    into[at++] = length >>> 8
    into[at++] = length
    const { bytes, offset } = body
    const start = offset + 4
    for (let i = 0; i < copied; i++) into[at + i] = bytes[start + i]!
    this.#end = at + copied
  }

  /** Removes the newest request: it was refused. */
  dropNewest(): void {
    if (this.#lengthAt(this.#newest) === DESCRIBED) this.#descriptions.drop(1)
    this.#end = this.#newest
  }

  /** Removes the oldest request with an xid, which has its reply, and those before it, which get none. */
  remove(xid: number): void {
    if (this.#find(xid)) this.#removeFirst()
  }

  /** Does the same. Returns the description of the request; an empty one if there is none with this xid. */
  take(xid: number): Partial<WriteDescription> {
    if (!this.#find(xid)) return {}
    const length = this.#lengthAt(this.#front)
    const start = this.#front + HEAD_BYTES
    const description =
      length === DESCRIBED
        ? this.#descriptions.first!
        : { path: readText(this.#bytes, start, start + length) }
    this.#removeFirst()
    return description
  }

  /** Removes all requests before the oldest one with an xid. Returns whether there is one. */
  #find(xid: number): boolean {
    while (this.#front < this.#end && this.#xidAt(this.#front) !== xid) this.#removeFirst()
    return this.#front < this.#end
  }

  #removeFirst(): void {
    const length = this.#lengthAt(this.#front)
    if (length === DESCRIBED) this.#descriptions.shift()
    this.#front += HEAD_BYTES + (length === DESCRIBED ? 0 : length)
    if (this.#front < this.#end) return
    this.#front = this.#end = 0
    if (this.#bytes.length > KEPT_BYTES) this.#bytes = new Uint8Array(0)
  }

  #xidAt(at: number): number {
    const bytes = this.#bytes
    return (bytes[at]! << 24) | (bytes[at + 1]! << 16) | (bytes[at + 2]! << 8) | bytes[at + 3]!
  }

  #lengthAt(at: number): number {
    return (this.#bytes[at + XID_BYTES]! << 8) | this.#bytes[at + XID_BYTES + 1]!
  }

  #makeRoom(bytes: number): void {
    if (this.#bytes.length - this.#end >= bytes) return
    const used = this.#end - this.#front
    // Entries move only where that makes room for as many bytes as are moved.
    const isHalfFree = (used + bytes) * 2 <= this.#bytes.length
    const into = isHalfFree
      ? this.#bytes
      : new Uint8Array(Math.max(MIN_BYTES, this.#bytes.length * 2, used + bytes))
    if (isHalfFree) into.copyWithin(0, this.#front, this.#end)
    else into.set(this.#bytes.subarray(this.#front, this.#end))
    this.#bytes = into
    this.#front = 0
    this.#end = used
  }
}

/** Returns how long the path of a request is that has nothing else to describe; `DESCRIBED` for any other. */
function pathLength(type: number, body: Reader): number {
  if ((type !== OpCode.setData && type !== OpCode.delete) || body.remaining < 4) return DESCRIBED
  const { offset } = body
  const length = body.int()
  body.offset = offset
  return length < 0 || length > body.remaining - 4 || length > MAX_COPY ? DESCRIBED : length
}

/** Bytes of the longest path that is copied. */
const MAX_COPY = 256
