import { adler32, Reader } from '@zabra/protocol'
import type { ByteTransform, DiskReader } from '@zabra/runtime'
import { DamageError } from './errors.ts'

const CHUNK = 1 << 18
/** What to do about a snapshot file that is not sound. */
export const TRY_OLDER = 'An older snapshot is tried if there is one'

/** Where the bytes of a snapshot come from, a chunk at a time. */
export interface ChunkSource {
  /** The next chunk, or undefined at the end. */
  next(): Promise<Uint8Array | undefined>
}

export class PeekReader extends Reader {
  /** The next int, which stays. */
  peekInt(): number {
    const value = this.int()
    this.offset -= 4
    return value
  }
}

/** Bytes of a snapshot through a window that moves. */
export class ByteStream {
  readonly #source: ChunkSource
  readonly #path: string
  readonly #action: string
  #window: Uint8Array = new Uint8Array(0)
  #reader = new PeekReader(this.#window)
  #base = 0
  #finished = false
  #adler = 1
  #checked = 0

  /** `path` and `action` are for the errors. */
  constructor(source: ChunkSource, path: string, action: string) {
    this.#source = source
    this.#path = path
    this.#action = action
  }

  /** A `DamageError` at the place that is read. */
  damage(what: string, cause?: unknown): DamageError {
    return new DamageError(what, this.#path, this.position, `${this.#action}.`, { cause })
  }

  get position(): number {
    return this.#base + this.#reader.offset
  }

  reader(): PeekReader {
    return this.#reader
  }

  /** The reader when that many bytes are at hand. */
  has(count: number): PeekReader | undefined {
    return this.#reader.remaining >= count ? this.#reader : undefined
  }

  /** The reader once that many bytes are at hand. Rejects with a `DamageError` when the file ends before. */
  async need(count: number): Promise<PeekReader> {
    const available = await this.upTo(count)
    if (available >= count) return this.#reader
    throw this.damage(`Expected ${count} more bytes, got the end of the snapshot after ${available}`)
  }

  /** Has that many bytes at hand, or all there are; resolves to how many. */
  async upTo(count: number): Promise<number> {
    if (this.#reader.remaining < count && !this.#finished) await this.#fill(count)
    return this.#reader.remaining
  }

  async ended(): Promise<boolean> {
    return (await this.upTo(1)) === 0
  }

  /** A view of what is at hand and not read. */
  rest(): Uint8Array {
    return this.#window.subarray(this.#reader.offset)
  }

  /** Adler-32 of everything read so far. */
  checksum(): number {
    this.#adler = adler32(this.#window, this.#checked, this.#reader.offset, this.#adler)
    this.#checked = this.#reader.offset
    return this.#adler
  }

  async #fill(count: number): Promise<void> {
    this.checksum()
    const parts = [this.#window.subarray(this.#reader.offset)]
    let length = parts[0]!.length
    this.#base += this.#reader.offset
    while (length < count && !this.#finished) {
      const part = await this.#source.next()
      if (part === undefined) {
        this.#finished = true
      } else {
        parts.push(part)
        length += part.length
      }
    }
    const window = new Uint8Array(length)
    let at = 0
    for (const part of parts) {
      window.set(part, at)
      at += part.length
    }
    this.#window = window
    this.#checked = 0
    this.#reader = new PeekReader(window)
  }
}

/** The bytes of a file, unpacked. */
export class FileChunks implements ChunkSource {
  readonly #file: DiskReader
  readonly #path: string
  readonly #unpack: ByteTransform | undefined
  #at = 0
  #finished = false

  constructor(file: DiskReader, path: string, unpack: ByteTransform | undefined) {
    this.#file = file
    this.#path = path
    this.#unpack = unpack
  }

  async next(): Promise<Uint8Array | undefined> {
    if (this.#finished) return undefined
    const bytes = new Uint8Array(CHUNK)
    const read = await this.#file.read(bytes, this.#at)
    this.#at += read
    const part = bytes.subarray(0, read)
    if (read < CHUNK) this.#finished = true
    if (!this.#unpack) return part
    try {
      const unpacked = read > 0 ? await this.#unpack.write(part) : new Uint8Array(0)
      if (!this.#finished) return unpacked
      const last = await this.#unpack.end()
      const whole = new Uint8Array(unpacked.length + last.length)
      whole.set(unpacked)
      whole.set(last, unpacked.length)
      return whole
    } catch (cause) {
      const what = 'Expected a compressed stream that can be unpacked'
      throw new DamageError(what, this.#path, this.#at, `${TRY_OLDER}.`, { cause })
    }
  }
}
