import { PathMap } from './tree/path-map.ts'

/**
 * V8 hashes the characters of no longer text: the hash of a longer one is its length, so that a `Map` compares it with every other
 * key of that length.
 */
export const MAX_HASHED = 16_383
/** Texts in a `Map`, which copies them when it grows. Most connections watch fewer paths, and a `PathMap` takes more memory. */
export const MAX_FEW = 4096

/** The text that was hashed last, with its hash: a notification looks the same one up several times, in several maps with one key. */
let last = { text: '', key: 0, hash: 0 }

/**
 * Maps texts that clients choose to values, as a `Map` does. No value is undefined.
 *
 * Optimised: many texts, and those above 16,383 characters, are in a `PathMap`.
 * Why: 3,000 long texts of one length in a `Map` took 6.7 ms for each lookup, and a `Map` with a million texts 120 ms to grow.
 * Rules: the texts of the `Map` are iterated first, in the order of their insertion.
 * Tested against a map, in `text-map.test.ts`.
 */
export class TextMap<V> {
  readonly #few = new Map<string, V>()
  #others: PathMap<V> | undefined
  readonly #key: number

  /** `key` is secret: a client that knew it could choose texts with equal hashes. */
  constructor(key = 0) {
    this.#key = key
  }

  get size(): number {
    return this.#few.size + (this.#others?.size ?? 0)
  }

  get(text: string): V | undefined {
    const value = text.length <= MAX_HASHED ? this.#few.get(text) : undefined
    return value ?? this.#others?.get(text, this.#hash(text))
  }

  set(text: string, value: V): void {
    if (this.#isOfFew(text)) this.#few.set(text, value)
    else {
      this.#others ??= new PathMap(this.#key)
      this.#others.set(text, this.#hash(text), value)
    }
  }

  delete(text: string): boolean {
    if (text.length <= MAX_HASHED && this.#few.delete(text)) return true
    return this.#others?.delete(text, this.#hash(text)) === true
  }

  /**
   * Yields the entries: all that are held until they are yielded, and of the `Map` no more than there are now, so that it ends although
   * entries are added meanwhile. Entries may be deleted meanwhile.
   */
  *[Symbol.iterator](): Generator<[text: string, value: V], void> {
    let left = this.#few.size
    for (const entry of this.#few) {
      if (left-- === 0) break
      yield entry
    }
    if (this.#others !== undefined) yield* this.#others
  }

  *keys(): Generator<string, void> {
    for (const [text] of this) yield text
  }

  /** Whether a text that is set is, or will be, in the `Map`. */
  #isOfFew(text: string): boolean {
    if (text.length > MAX_HASHED) return false
    if (this.#few.has(text)) return true
    return this.#few.size < MAX_FEW && this.#others?.get(text, this.#hash(text)) === undefined
  }

  #hash(text: string): number {
    if (text !== last.text || this.#key !== last.key)
      last = { text, key: this.#key, hash: this.#others!.hash(text) }
    return last.hash
  }
}
