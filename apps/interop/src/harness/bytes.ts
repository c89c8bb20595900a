/**
 * A Jute codec, independent of `@zabra/protocol` on purpose: an error that the product's reader and writer share cannot hide here,
 * and malformed requests need no way around a typed API.
 */
export interface Acl {
  readonly perms: number
  readonly scheme: string | null
  readonly id: string | null
}

export const openAcl: readonly Acl[] = [{ perms: 31, scheme: 'world', id: 'anyone' }]

/** Builds a message body field by field. Every method returns the builder. */
export class Bytes {
  readonly #parts: Buffer[] = []

  bool(value: boolean | number): this {
    return this.raw(Buffer.from([Number(value)]))
  }

  int(value: number): this {
    const part = Buffer.alloc(4)
    part.writeInt32BE(value | 0)
    return this.raw(part)
  }

  long(value: bigint | number): this {
    const part = Buffer.alloc(8)
    part.writeBigInt64BE(BigInt.asIntN(64, BigInt(value)))
    return this.raw(part)
  }

  buffer(value: Uint8Array | string | null): this {
    if (value === null) return this.int(-1)
    const part = Buffer.from(value)
    return this.int(part.length).raw(part)
  }

  str(value: string | Uint8Array | null): this {
    return this.buffer(value)
  }

  strings(values: readonly (string | null)[] | null): this {
    if (values === null) return this.int(-1)
    this.int(values.length)
    for (const value of values) this.str(value)
    return this
  }

  acl(list: readonly Acl[] | null): this {
    if (list === null) return this.int(-1)
    this.int(list.length)
    for (const { perms, scheme, id } of list) this.int(perms).str(scheme).str(id)
    return this
  }

  raw(part: Uint8Array | string): this {
    this.#parts.push(typeof part === 'string' ? Buffer.from(part, 'hex') : Buffer.from(part))
    return this
  }

  done(): Buffer {
    return Buffer.concat(this.#parts)
  }
}

export const bytes = (): Bytes => new Bytes()

/** Prefixes a body with its length. */
export function frame(body: Uint8Array): Buffer {
  return bytes().int(body.length).raw(body).done()
}

/** Reads fields in order. Throws a RangeError when the input ends too early. */
export class Fields {
  readonly #input: Buffer
  offset = 0

  constructor(input: Buffer) {
    this.#input = input
  }

  get remaining(): number {
    return this.#input.length - this.offset
  }

  bool(): boolean {
    return this.raw(1)[0] !== 0
  }

  int(): number {
    return this.raw(4).readInt32BE()
  }

  long(): bigint {
    return this.raw(8).readBigInt64BE()
  }

  buffer(): Buffer | null {
    const length = this.int()
    return length === -1 ? null : this.raw(length)
  }

  str(): string | null {
    return this.buffer()?.toString('utf8') ?? null
  }

  strings(): (string | null)[] | null {
    const count = this.int()
    return count === -1 ? null : this.times(count, () => this.str())
  }

  acl(): Acl[] | null {
    const count = this.int()
    return count === -1
      ? null
      : this.times(count, () => ({ perms: this.int(), scheme: this.str(), id: this.str() }))
  }

  times<T>(count: number, read: () => T): T[] {
    if (count < 0 || count > this.remaining)
      throw new RangeError(`A vector of ${count} with ${this.remaining} bytes left`)
    return Array.from({ length: count }, read)
  }

  raw(length: number): Buffer {
    if (length < 0 || length > this.remaining)
      throw new RangeError(`${length} bytes wanted, ${this.remaining} left`)
    this.offset += length
    return this.#input.subarray(this.offset - length, this.offset)
  }

  rest(): Buffer {
    return this.raw(this.remaining)
  }
}

export interface Stat {
  readonly czxid: bigint
  readonly mzxid: bigint
  readonly ctime: bigint
  readonly mtime: bigint
  readonly version: number
  readonly cversion: number
  readonly aversion: number
  readonly ephemeralOwner: bigint
  readonly dataLength: number
  readonly numChildren: number
  readonly pzxid: bigint
}

export function readStat(fields: Fields): Stat {
  return {
    czxid: fields.long(),
    mzxid: fields.long(),
    ctime: fields.long(),
    mtime: fields.long(),
    version: fields.int(),
    cversion: fields.int(),
    aversion: fields.int(),
    ephemeralOwner: fields.long(),
    dataLength: fields.int(),
    numChildren: fields.int(),
    pzxid: fields.long(),
  }
}
