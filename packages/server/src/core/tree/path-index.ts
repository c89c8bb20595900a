import { readText } from '@zabra/protocol'

const BITS = 13
const SIZE = 1 << BITS
const MASK = SIZE - 1
const SHARDS = 256
/** Length of the smallest table: eight entries of two numbers. */
const SMALLEST = 16
export const NONE = -1
/**
 * From so many characters on, text is hashed as bytes and compared as a string, since a character of a string takes as long as four bytes of a
 * view, and the last hash is kept: a request hashes its path several times.
 */
const LONG = 1024
const encoder = new TextEncoder()

interface Shard {
  /** Pairs of node + 1 and the hash of its path; 0 marks a free entry. The length is a power of two. */
  table: Int32Array
  entries: number
}

/** A shard that was never used: a connection may have an index for its watches, and each table takes 200 bytes. */
const EMPTY: Shard = { table: new Int32Array(SMALLEST), entries: 0 }

/**
 * Maps paths to nodes and nodes to paths.
 *
 * Optimised: open addressing in typed arrays, with the hash of the path beside each node.
 * Why: a `Map` takes 37 bytes per path, is traversed by the garbage collector, and is copied as a whole when it grows, which was
 * a sixth of a start. There are 256 small tables, so that growing one does not block the event loop for long. Text is hashed four
 * characters at a time: one at a time took a fifteenth of the time of a read.
 * Rules: a path has one node, and a node one path.
 * Tested against a map, in `path-index.test.ts`.
 */
export class PathIndex {
  readonly #shards: Shard[] = Array.from({ length: SHARDS }, () => EMPTY)
  readonly #paths: (string | undefined)[][] = []
  /** Odd factors. The second multiplies the text before it reaches the hash, so that no difference stays in the highest bits. */
  readonly #key: number
  readonly #textKey: number
  /** The hash that the last `findAscii` computed, unless the text was not ASCII. */
  lastHash = 0
  isLastAscii = false
  #lastLong = { path: '', hash: 0 }

  /** `key` is secret: a client that knew it could choose paths with equal hashes, which would make lookups slow. */
  constructor(key: number) {
    this.#key = (Math.imul(key, 0x9e37_79b1) ^ 0x2545_f491) | 1
    this.#textKey = (Math.imul(key ^ (key >>> 16), 0x85eb_ca6b) ^ 0x27d4_eb2f) | 1
  }

  /** Returns the node of a path, or `NONE`. */
  find(path: string, hash = this.hash(path)): number {
    const { table } = this.#shards[hash >>> 24]!
    const mask = table.length - 1
    for (let at = (hash << 1) & mask; ; at = (at + 2) & mask) {
      const held = table[at]!
      if (held === 0) return NONE
      if (table[at + 1] === hash && this.pathAt(held - 1) === path) return held - 1
    }
  }

  /**
   * Returns the node whose path is the ASCII text between two offsets, without making a string. `NONE` also when the text has
   * bytes beyond ASCII: the caller decodes those.
   */
  findAscii(text: DataView, start: number, end: number): number {
    const hash = this.#hashBytes(text, start, end)
    if (!this.isLastAscii) return NONE
    this.lastHash = hash
    const { table } = this.#shards[hash >>> 24]!
    const mask = table.length - 1
    for (let at = (hash << 1) & mask; ; at = (at + 2) & mask) {
      const held = table[at]!
      if (held === 0) return NONE
      if (table[at + 1] === hash && isText(this.pathAt(held - 1)!, text, start, end)) return held - 1
    }
  }

  /** Returns the path of a node; undefined when it has none now. */
  pathAt(node: number): string | undefined {
    return this.#paths[node >> BITS]?.[node & MASK]
  }

  /** Gives a path to a node that has none. Returns false, without a change, when another node has that path. */
  add(path: string, node: number, hash = this.hash(path)): boolean {
    const shard = this.#filled(hash >>> 24)
    if (shard.entries * 4 >= shard.table.length) resize(shard, shard.table.length * 2)
    const { table } = shard
    const mask = table.length - 1
    let at = (hash << 1) & mask
    for (; table[at] !== 0; at = (at + 2) & mask)
      if (table[at + 1] === hash && this.pathAt(table[at]! - 1) === path) return false
    table[at] = node + 1
    table[at + 1] = hash
    shard.entries++
    while (node >> BITS >= this.#paths.length) this.#paths.push([])
    this.#paths[node >> BITS]![node & MASK] = path
    return true
  }

  /** Removes the path of a node. */
  remove(node: number, hash = this.hash(this.pathAt(node)!)): void {
    this.#paths[node >> BITS]![node & MASK] = undefined
    const shard = this.#shards[hash >>> 24]!
    const { table } = shard
    const mask = table.length - 1
    let gap = (hash << 1) & mask
    while (table[gap] !== node + 1) gap = (gap + 2) & mask
    // Entries that were displaced by this one move up, so that no lookup ends too early.
    for (let at = (gap + 2) & mask; table[at] !== 0; at = (at + 2) & mask) {
      const home = (table[at + 1]! << 1) & mask
      if (((at - home) & mask) < ((at - gap) & mask)) continue
      table[gap] = table[at]!
      table[gap + 1] = table[at + 1]!
      gap = at
    }
    table[gap] = 0
    shard.entries--
    if (shard.entries * 16 < table.length && table.length > SMALLEST) resize(shard, table.length / 2)
  }

  /** Returns the hash of a path, which the other methods accept. */
  hash(path: string): number {
    const { length } = path
    if (length < LONG) return this.#hash(path)
    if (path !== this.#lastLong.path) this.#lastLong = { path, hash: this.#hashLong(path) }
    return this.#lastLong.hash
  }

  /** Returns a shard that may be changed. */
  #filled(at: number): Shard {
    const shard = this.#shards[at]!
    if (shard !== EMPTY) return shard
    return (this.#shards[at] = { table: new Int32Array(SMALLEST), entries: 0 })
  }

  #hashLong(path: string): number {
    const bytes = encoder.encode(path)
    return this.#hashBytes(new DataView(bytes.buffer), 0, bytes.length)
  }

  /** Returns the hash of text, and notes whether it is ASCII; else its hash is another one. */
  #hashBytes(text: DataView, start: number, end: number): number {
    let hash = end - start
    let bits = 0
    let i = start
    for (; i + 4 <= end; i += 4) {
      const characters = text.getInt32(i, true)
      bits |= characters
      hash = this.#mix(hash, characters)
    }
    for (; i < end; i++) {
      const character = text.getUint8(i)
      bits |= character
      hash = this.#mix(hash, character)
    }
    this.isLastAscii = (bits & 0x8080_8080) === 0
    return hash
  }

  #hash(path: string): number {
    const { length } = path
    let hash = length
    let bits = 0
    let i = 0
    for (; i + 4 <= length; i += 4) {
      const first = path.charCodeAt(i)
      const second = path.charCodeAt(i + 1)
      const third = path.charCodeAt(i + 2)
      const fourth = path.charCodeAt(i + 3)
      bits |= first | second | third | fourth
      hash = this.#mix(hash, first | (second << 8) | (third << 16) | (fourth << 24))
    }
    for (; i < length; i++) {
      bits |= path.charCodeAt(i)
      hash = this.#mix(hash, path.charCodeAt(i))
    }
    return bits > 0x7f ? this.#hashUnicode(path) : hash
  }

  /** Hashes one character at a time: four of more than 8 bits could be chosen so that their sum is that of others. */
  #hashUnicode(path: string): number {
    let hash = path.length
    for (let i = 0; i < path.length; i++) hash = this.#mix(hash, path.charCodeAt(i))
    return hash
  }

  #mix(hash: number, text: number): number {
    const factor = Math.imul(text, this.#textKey)
    const product = Math.imul(hash ^ factor ^ (factor >>> 15), this.#key)
    return product ^ (product >>> 15)
  }
}

function isText(path: string, text: DataView, start: number, end: number): boolean {
  const length = end - start
  if (path.length !== length) return false
  if (length >= LONG)
    return path === readText(new Uint8Array(text.buffer, text.byteOffset, text.byteLength), start, end, text)
  for (let i = start; i < end; i++) if (path.charCodeAt(i - start) !== text.getUint8(i)) return false
  return true
}

function resize(shard: Shard, length: number): void {
  const before = shard.table
  const table = new Int32Array(length)
  const mask = length - 1
  for (let from = 0; from < before.length; from += 2) {
    if (before[from] === 0) continue
    let at = (before[from + 1]! << 1) & mask
    while (table[at] !== 0) at = (at + 2) & mask
    table[at] = before[from]!
    table[at + 1] = before[from + 1]!
  }
  shard.table = table
}
