import { OpCode, ProtocolError, readText, type Reader } from '@zabra/protocol'
import { RingBuffer } from '../core/ring-buffer.ts'
import { describeWrite, type WriteDescription } from '../core/prepare/index.ts'

/** Words before the path of an entry: the xid; and the length of the path in bytes, `IS_PLAIN`, and the create mode plus one. */
const HEAD_WORDS = 2
const LENGTH_MASK = 0xffff
const IS_PLAIN = 0x1_0000
const MODE_SHIFT = 17
/** The highest create mode that fits there. */
const MAX_MODE = 15
/** Instead of a length: the description of the request is in the other queue. */
const DESCRIBED = 0xffff
/** Bytes of the longest path that is copied. */
const MAX_COPY = 256
const MIN_WORDS = 64
/** Words that a connection keeps while it has no write in flight. */
const KEPT_WORDS = 1024

const LOW_BITS = 0x01010101
const HIGH_BITS = 0x80808080
const SPACES = 0x20202020
const BACKSLASHES = 0x5c5c5c5c
const QUOTES = 0x22222222

/**
 * Holds what the audit log says about the writes of a connection that are in flight, in the order of their replies.
 *
 * Optimised: what is needed of most requests, the path, is copied four bytes at a time into one array that is used again and again,
 * and from there into the line.
 * Why: an object for each write in flight, with its decoded path, costs more than its line: it survives garbage collections, which
 * copy it. Characters that are copied one by one from a string cost five times as much as words.
 * Rules: an entry is what `describeWrite` returns for its request; `requests-in-flight.test.ts` compares them.
 */
export class RequestsInFlight {
  /** Entries, each `HEAD_WORDS` and a path. Words of paths are little-endian, their last one ends with spaces. */
  #words = new Int32Array(0)
  #front = 0
  #end = 0
  /** Where the newest entry begins. */
  #newest = 0
  readonly #descriptions = new RingBuffer<WriteDescription | undefined>(undefined)

  /** Adds a request, whose body is left at its offset. */
  add(xid: number, type: number, body: Reader): void {
    const mode = modeIn(type, body)
    const length = mode === undefined ? DESCRIBED : pathLength(body)
    const copied = length === DESCRIBED ? 0 : (length + 3) >>> 2
    if (this.#words.length - this.#end < HEAD_WORDS + copied) this.#makeRoom(HEAD_WORDS + copied)
    const into = this.#words
    const at = (this.#newest = this.#end)
    this.#end = at + HEAD_WORDS + copied
    into[at] = xid
    if (length === DESCRIBED) {
      into[at + 1] = DESCRIBED
      this.#descriptions.push(describeWrite(type, body))
      return
    }
    const isPlain = copyPath(body.view, body.offset + 4, length, into, at + HEAD_WORDS)
    into[at + 1] = length | (isPlain ? IS_PLAIN : 0) | ((mode! + 1) << MODE_SHIFT)
  }

  /** Removes the newest request: it was refused. */
  dropNewest(): void {
    if (this.#lengthAt(this.#newest) === DESCRIBED) this.#descriptions.drop(1)
    this.#end = this.#newest
  }

  /**
   * Makes the oldest request with an xid the first one, and forgets those before it, which get no reply. Returns whether there is
   * one.
   */
  find(xid: number): boolean {
    while (this.#front < this.#end && this.#words[this.#front] !== xid) this.removeFirst()
    return this.#front < this.#end
  }

  /** The bytes of the path of the first request if it needs no escapes in a line, else -1. */
  get plainLength(): number {
    const word = this.#words[this.#front + 1]!
    return (word & IS_PLAIN) === 0 ? -1 : word & LENGTH_MASK
  }

  /** The create mode of the first request; -1 for one that creates nothing, and one of which more is kept than its path. */
  get mode(): number {
    return (this.#words[this.#front + 1]! >>> MODE_SHIFT) - 1
  }

  /** Copies the path of the first request to an offset of a view, which needs room for up to three spaces behind it. */
  copyPlain(into: DataView, at: number): void {
    const words = this.#words
    const start = this.#front + HEAD_WORDS
    const end = start + (((words[start - 1]! & LENGTH_MASK) + 3) >>> 2)
    for (let i = start; i < end; i++, at += 4) into.setInt32(at, words[i]!, true)
  }

  removeFirst(): void {
    const length = this.#lengthAt(this.#front)
    if (length === DESCRIBED) this.#descriptions.shift()
    this.#front += HEAD_WORDS + (length === DESCRIBED ? 0 : (length + 3) >>> 2)
    if (this.#front < this.#end) return
    this.#front = this.#end = 0
    if (this.#words.length > KEPT_WORDS) this.#words = new Int32Array(0)
  }

  /** Removes the oldest request with an xid. Returns its description; an empty one if there is none. */
  take(xid: number): Partial<WriteDescription> {
    if (!this.find(xid)) return {}
    const length = this.#lengthAt(this.#front)
    const description = length === DESCRIBED ? this.#descriptions.first! : this.#describe(length)
    this.removeFirst()
    return description
  }

  #describe(length: number): Partial<WriteDescription> {
    const bytes = new Uint8Array(length + 3)
    this.copyPlain(new DataView(bytes.buffer), 0)
    const path = readText(bytes, 0, length)
    return this.mode < 0 ? { path } : { path, mode: this.mode }
  }

  #lengthAt(at: number): number {
    return this.#words[at + 1]! & LENGTH_MASK
  }

  #makeRoom(words: number): void {
    const used = this.#end - this.#front
    // Entries move only where that makes room for as many words as are moved.
    const isHalfFree = (used + words) * 2 <= this.#words.length
    const into = isHalfFree
      ? this.#words
      : new Int32Array(Math.max(MIN_WORDS, this.#words.length * 2, used + words))
    if (isHalfFree) into.copyWithin(0, this.#front, this.#end)
    else into.set(this.#words.subarray(this.#front, this.#end))
    this.#words = into
    this.#front = 0
    this.#end = used
  }
}

/** Returns the create mode of a request whose path is all that there is besides, -1 if it creates nothing; undefined for any other. */
function modeIn(type: number, body: Reader): number | undefined {
  switch (type) {
    case OpCode.setData:
    case OpCode.delete:
      return -1
    case OpCode.create:
    case OpCode.create2:
    case OpCode.createContainer: {
      const mode = createModeIn(body)
      return mode !== undefined && mode >= 0 && mode <= MAX_MODE ? mode : undefined
    }
    default:
      return undefined
  }
}

/** Returns the create mode in the body of a creation, which is left at its offset; undefined if it cannot be decoded. */
function createModeIn(body: Reader): number | undefined {
  const { offset } = body
  try {
    body.skipBuffer()
    body.skipBuffer()
    for (let left = body.vectorLength(); left > 0; left--) {
      body.int()
      body.skipBuffer()
      body.skipBuffer()
    }
    return body.int()
  } catch (error) {
    if (error instanceof ProtocolError) return undefined
    throw error
  } finally {
    body.offset = offset
  }
}

/** Returns how long the path is with which a body begins; `DESCRIBED` for one that is not copied. */
function pathLength(body: Reader): number {
  // Behind the path are at least four bytes, so that its last word can be read as a whole.
  if (body.remaining < 8) return DESCRIBED
  const length = body.view.getInt32(body.offset)
  return length < 0 || length > body.remaining - 8 || length > MAX_COPY ? DESCRIBED : length
}

/** Copies a path. Returns whether it needs no escapes in a line. */
function copyPath(view: DataView, from: number, length: number, into: Int32Array, at: number): boolean {
  let special = 0
  const end = from + (length & ~3)
  for (; from < end; from += 4) {
    const word = view.getInt32(from, true)
    into[at++] = word
    special |= specialIn(word)
  }
  const rest = length & 3
  if (rest !== 0) {
    const mask = (1 << (8 * rest)) - 1
    const word = (view.getInt32(from, true) & mask) | (SPACES & ~mask)
    into[at] = word
    special |= specialIn(word)
  }
  return (special & HIGH_BITS) === 0
}

/**
 * Returns a word in which the high bit of a byte is set if a character of a word is none of ASCII, a control character, a
 * backslash or a quotation mark. A bit that is carried from one byte to the next changes nothing: there is another such character then.
 */
function specialIn(word: number): number {
  const backslashes = word ^ BACKSLASHES
  const quotes = word ^ QUOTES
  return (
    word |
    (word + LOW_BITS) |
    (word - SPACES) |
    ((backslashes - LOW_BITS) & ~backslashes) |
    ((quotes - LOW_BITS) & ~quotes)
  )
}
