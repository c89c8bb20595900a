import { concatBytes } from '@zabra/protocol'

/** Header of a snappy-java stream: magic, version, lowest compatible version (disk-format 7.9). */
const STREAM_HEADER = new Uint8Array([0x82, 0x53, 0x4e, 0x41, 0x50, 0x50, 0x59, 0, 0, 0, 0, 1, 0, 0, 0, 1])
const BLOCK_BYTES = 1 << 15
/** Limit for a decompressed block; no known writer exceeds it. */
const MAX_BLOCK = 1 << 26

/** Decompresses one raw Snappy block. Throws a RangeError when it is malformed. */
export function decompressSnappy(block: Uint8Array): Uint8Array {
  let at = 0
  let length = 0
  for (let shift = 0; ; shift += 7) {
    const byte = block[at++]
    if (byte === undefined || shift > 28)
      throw new RangeError('Expected the decompressed length of a Snappy block')
    length += (byte & 0x7f) * 2 ** shift
    if (byte < 0x80) break
  }
  if (length > MAX_BLOCK)
    throw new RangeError(`Expected a Snappy block of at most ${MAX_BLOCK} bytes, got ${length}`)
  const out = new Uint8Array(length)
  let to = 0
  while (at < block.length) {
    const tag = block[at++]!
    let count: number
    let offset: number
    if ((tag & 3) === 0) {
      count = tag >> 2
      if (count >= 60) {
        const extra = count - 59
        count = littleEndian(block, at, extra)
        at += extra
      }
      count++
      if (at + count > block.length || to + count > length)
        throw new RangeError('Expected a literal inside its Snappy block')
      out.set(block.subarray(at, at + count), to)
      at += count
      to += count
      continue
    }
    if ((tag & 3) === 1) {
      count = 4 + ((tag >> 2) & 7)
      offset = ((tag >> 5) << 8) | littleEndian(block, at, 1)
      at += 1
    } else {
      const bytes = (tag & 3) === 2 ? 2 : 4
      count = (tag >> 2) + 1
      offset = littleEndian(block, at, bytes)
      at += bytes
    }
    if (offset === 0 || offset > to || to + count > length)
      throw new RangeError('Expected a copy inside its Snappy block')
    for (let i = 0; i < count; i++, to++) out[to] = out[to - offset]!
  }
  if (to !== length) throw new RangeError(`Expected ${length} bytes in a Snappy block, got ${to}`)
  return out
}

function littleEndian(bytes: Uint8Array, at: number, count: number): number {
  if (at + count > bytes.length) throw new RangeError('Expected more bytes in a Snappy block')
  let value = 0
  for (let i = count - 1; i >= 0; i--) value = value * 256 + bytes[at + i]!
  return value
}

/** Compresses up to 32 KiB into one raw block of literals and of copies that a small hash table finds. */
export function compressSnappy(input: Uint8Array): Uint8Array {
  const out = new Uint8Array(32 + input.length + Math.floor(input.length / 6))
  let to = 0
  for (let rest = input.length; ; rest >>>= 7) {
    out[to++] = rest < 0x80 ? rest : (rest & 0x7f) | 0x80
    if (rest < 0x80) break
  }
  const seen = new Int32Array(1 << 12).fill(-1)
  let literal = 0
  let at = 0
  while (at + 4 <= input.length) {
    const key = input[at]! | (input[at + 1]! << 8) | (input[at + 2]! << 16) | (input[at + 3]! << 24)
    const slot = Math.imul(key, 0x1e35a7bd) >>> 20
    const candidate = seen[slot]!
    seen[slot] = at
    if (candidate < 0 || !sameFour(input, candidate, at)) {
      at++
      continue
    }
    to = putLiteral(input, literal, at, out, to)
    let length = 4
    while (length < 64 && input[candidate + length] === input[at + length]) length++
    out[to++] = ((length - 1) << 2) | 2
    out[to++] = (at - candidate) & 0xff
    out[to++] = (at - candidate) >> 8
    at += length
    literal = at
  }
  return out.slice(0, putLiteral(input, literal, input.length, out, to))
}

const sameFour = (bytes: Uint8Array, a: number, b: number): boolean =>
  bytes[a] === bytes[b] &&
  bytes[a + 1] === bytes[b + 1] &&
  bytes[a + 2] === bytes[b + 2] &&
  bytes[a + 3] === bytes[b + 3]

function putLiteral(input: Uint8Array, from: number, end: number, out: Uint8Array, at: number): number {
  if (from === end) return at
  const count = end - from - 1
  let to = at
  if (count < 60) {
    out[to++] = count << 2
  } else if (count < 256) {
    out[to++] = 60 << 2
    out[to++] = count
  } else {
    out[to++] = 61 << 2
    out[to++] = count & 0xff
    out[to++] = count >> 8
  }
  out.set(input.subarray(from, end), to)
  return to + end - from
}

/** Compresses a stream into the format of snappy-java's SnappyOutputStream. */
export class SnappyCompressor {
  #hasStarted = false

  write(bytes: Uint8Array): Promise<Uint8Array> {
    const parts: Uint8Array[] = this.#hasStarted ? [] : [STREAM_HEADER]
    this.#hasStarted = true
    for (let at = 0; at < bytes.length; at += BLOCK_BYTES) {
      const block = compressSnappy(bytes.subarray(at, at + BLOCK_BYTES))
      const length = new Uint8Array(4)
      new DataView(length.buffer).setInt32(0, block.length)
      parts.push(length, block)
    }
    return Promise.resolve(concatBytes(parts))
  }

  end(): Promise<Uint8Array> {
    return Promise.resolve(new Uint8Array(0))
  }
}

/** Decompresses a stream of snappy-java's SnappyOutputStream. */
export class SnappyDecompressor {
  #pending: Uint8Array = new Uint8Array(0)
  #hasStarted = false

  async write(bytes: Uint8Array): Promise<Uint8Array> {
    this.#pending = concatBytes([this.#pending, bytes])
    let at = 0
    if (!this.#hasStarted) {
      if (this.#pending.length < STREAM_HEADER.length) return new Uint8Array(0)
      if (STREAM_HEADER.subarray(0, 8).some((byte, i) => byte !== this.#pending[i])) {
        throw new RangeError('Expected the header of a snappy-java stream')
      }
      this.#hasStarted = true
      at = STREAM_HEADER.length
    }
    const parts: Uint8Array[] = []
    const view = new DataView(this.#pending.buffer, this.#pending.byteOffset, this.#pending.byteLength)
    while (at + 4 <= this.#pending.length) {
      const length = view.getInt32(at)
      if (length <= 0 || length > MAX_BLOCK)
        throw new RangeError(`Expected the length of a Snappy block, got ${length}`)
      if (at + 4 + length > this.#pending.length) break
      parts.push(decompressSnappy(this.#pending.subarray(at + 4, at + 4 + length)))
      at += 4 + length
    }
    this.#pending = this.#pending.slice(at)
    return concatBytes(parts)
  }

  async end(): Promise<Uint8Array> {
    if (this.#pending.length > 0)
      throw new RangeError('Expected the rest of a Snappy block, got the end of the file')
    return new Uint8Array(0)
  }
}
