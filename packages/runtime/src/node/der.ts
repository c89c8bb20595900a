/** Where the contents of a value begin and end, in the bytes that it was read from. */
export interface DerValue {
  readonly start: number
  readonly end: number
}

export const DerTag = {
  INTEGER: 0x02,
  BIT_STRING: 0x03,
  OCTET_STRING: 0x04,
  OBJECT_IDENTIFIER: 0x06,
  SEQUENCE: 0x30,
  CONTEXT_0: 0xa0,
  CONTEXT_3: 0xa3,
} as const

/** Bytes that are not DER, or not those that were expected. */
export class DerError extends Error {
  override readonly name = 'DerError'
}

/**
 * Reads values of DER one after the other, without those inside of them: what a stranger sends is read in proportion to its length,
 * and without recursion. Throws a `DerError` for encodings that only BER allows, which OpenSSL accepts.
 */
export class DerReader {
  readonly bytes: Uint8Array
  readonly #end: number
  #at: number

  constructor(bytes: Uint8Array, { start, end }: DerValue = { start: 0, end: bytes.length }) {
    this.bytes = bytes
    this.#at = start
    this.#end = end
  }

  get isAtEnd(): boolean {
    return this.#at === this.#end
  }

  /** Returns the tag of the next value; undefined at the end. */
  get nextTag(): number | undefined {
    return this.isAtEnd ? undefined : this.bytes[this.#at]
  }

  /** Returns the next value, which must have the tag if one is given. */
  next(wanted?: number): DerValue {
    const tag = this.#byte()
    // Tags of more than one byte are in no certificate.
    if ((tag & 0x1f) === 0x1f) throw new DerError('Expected a tag of one byte')
    if (wanted !== undefined && tag !== wanted) throw new DerError(`Expected the tag ${wanted}, got ${tag}`)
    const length = this.#length()
    const start = this.#at
    const end = start + length
    if (end > this.#end) throw new DerError('Expected a value that ends within its parent')
    this.#at = end
    return { start, end }
  }

  /** Returns a reader of the values inside the next one. */
  enter(wanted: number): DerReader {
    return new DerReader(this.bytes, this.next(wanted))
  }

  #length(): number {
    const first = this.#byte()
    if (first < 0x80) return first
    const count = first & 0x7f
    // Zero is the indefinite length of BER.
    if (count === 0 || count > 3) throw new DerError('Expected a length of one to three bytes')
    let length = 0
    for (let i = 0; i < count; i++) length = (length << 8) | this.#byte()
    if (length < 0x80 || length >> (8 * (count - 1)) === 0)
      throw new DerError('Expected a length in its shortest form')
    return length
  }

  #byte(): number {
    if (this.#at >= this.#end) throw new DerError('Expected more bytes')
    return this.bytes[this.#at++]!
  }
}
