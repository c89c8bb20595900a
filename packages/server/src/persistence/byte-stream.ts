import { adler32, Reader } from '@zabra/protocol'
import type { ByteTransform, DiskReader } from '@zabra/runtime'
import { DamageError } from './errors.ts'

const CHUNK = 1 << 19
/** What to do about a snapshot file that is not sound. */
export const TRY_OLDER_SNAPSHOT = 'An older snapshot is tried if there is one'

/** Where the bytes of a snapshot come from, a chunk at a time. */
export interface ChunkSource {
  /** The next chunk, or undefined at the end. It holds until the next call. */
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

/** Bytes of a snapshot through a window that moves. What was read from it holds until more bytes are asked for. */
export class ByteStream {
  readonly #source: ChunkSource
  readonly #path: string
  readonly #action: string
  /** What is at hand lies in the first `#length` bytes. The array is used again, since a new one has to be zeroed. */
  #bytes = new Uint8Array(0)
  #length = 0
  #view = new DataView(this.#bytes.buffer)
  readonly #reader = new PeekReader(this.#bytes)
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

  /** The bytes at hand; the reader's offset says where in them it is. */
  get bytes(): Uint8Array {
    return this.#bytes
  }

  get view(): DataView {
    return this.#view
  }

  /** The reader when that many bytes are at hand. */
  readerIfAvailable(count: number): PeekReader | undefined {
    return this.#reader.remaining >= count ? this.#reader : undefined
  }

  /** The reader once that many bytes are at hand. Rejects with a `DamageError` when the file ends before. */
  async require(count: number): Promise<PeekReader> {
    const available = await this.fillUpTo(count)
    if (available >= count) return this.#reader
    throw this.damage(`Expected ${count} more bytes, got the end of the snapshot after ${available}`)
  }

  /** Has that many bytes at hand, or all there are; resolves to how many. */
  async fillUpTo(count: number): Promise<number> {
    if (this.#reader.remaining < count && !this.#finished) await this.#fill(count)
    return this.#reader.remaining
  }

  async isAtEnd(): Promise<boolean> {
    return (await this.fillUpTo(1)) === 0
  }

  /** A view of what is at hand and not read. */
  unread(): Uint8Array {
    return this.#bytes.subarray(this.#reader.offset, this.#length)
  }

  /** Adler-32 of everything read so far. */
  checksum(): number {
    this.#adler = adler32(this.#bytes, this.#checked, this.#reader.offset, this.#adler)
    this.#checked = this.#reader.offset
    return this.#adler
  }

  async #fill(count: number): Promise<void> {
    this.checksum()
    const { offset } = this.#reader
    this.#bytes.copyWithin(0, offset, this.#length)
    this.#length -= offset
    this.#base += offset
    this.#checked = 0
    while (this.#length < count && !this.#finished) {
      const part = await this.#source.next()
      if (part === undefined) this.#finished = true
      else this.#append(part)
    }
    this.#reader.reset(this.#bytes, 0, this.#length)
  }

  #append(part: Uint8Array): void {
    const length = this.#length + part.length
    if (length > this.#bytes.length) {
      const larger = new Uint8Array(Math.max(length, 2 * this.#bytes.length))
      larger.set(this.#bytes.subarray(0, this.#length))
      this.#bytes = larger
      this.#view = new DataView(larger.buffer)
    }
    this.#bytes.set(part, this.#length)
    this.#length = length
  }
}

/** The bytes of a file, unpacked. While one chunk is looked at the next one is read. Call `done` at the end. */
export class FileChunks implements ChunkSource {
  readonly #file: DiskReader
  readonly #path: string
  readonly #unpack: ByteTransform | undefined
  readonly #buffers = [new Uint8Array(CHUNK), new Uint8Array(CHUNK)]
  #reading: Promise<number> | undefined
  #at = 0
  #finished = false

  constructor(file: DiskReader, path: string, unpack: ByteTransform | undefined) {
    this.#file = file
    this.#path = path
    this.#unpack = unpack
  }

  async next(): Promise<Uint8Array | undefined> {
    if (this.#finished) return undefined
    const read = await (this.#reading ?? this.#read())
    const bytes = this.#buffers[0]!
    this.#reading = undefined
    this.#at += read
    const part = bytes.subarray(0, read)
    if (read < CHUNK) this.#finished = true
    else {
      this.#buffers.reverse()
      this.#reading = this.#read()
    }
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
      throw new DamageError(what, this.#path, this.#at, `${TRY_OLDER_SNAPSHOT}.`, { cause })
    }
  }

  /** Resolves once nothing is read any more, so that the file may be closed. */
  async drain(): Promise<void> {
    await this.#reading?.catch(() => {})
  }

  #read(): Promise<number> {
    const reading = this.#file.read(this.#buffers[0]!, this.#at)
    // Whoever asks for the chunk hears of a failure; nobody may.
    reading.catch(() => {})
    return reading
  }
}
