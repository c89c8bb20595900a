import { adler32, Reader } from '@zabra/protocol'
import type { ByteTransform, DiskReader } from '@zabra/runtime'
import { DamageError } from './errors.ts'
import type { Pause } from './pause.ts'

const CHUNK = 1 << 19
/** Bytes that are decompressed at once. Gzip makes up to a thousand times as many of them. */
const PACKED_PART = 1 << 14
/** The advice in an error about a damaged snapshot file. */
export const TRY_OLDER_SNAPSHOT = 'An older snapshot is tried if there is one'

/** Supplies the bytes of a snapshot, a chunk at a time. */
export interface ChunkSource {
  /** Resolves to the next chunk, valid until the next call, or to undefined at the end. */
  next(): Promise<Uint8Array | undefined>
}

/** A reader that can look ahead. */
export class PeekReader extends Reader {
  /** Returns the next int without consuming it. */
  peekInt(): number {
    const value = this.int()
    this.offset -= 4
    return value
  }
}

/** Reads a snapshot through a sliding window. Views of its bytes are valid until the next call that may load more bytes. */
export class ByteStream {
  readonly #source: ChunkSource
  readonly #path: string
  readonly #action: string
  /** The window is the first `#length` bytes. The array is reused, because the runtime zeroes a new one. */
  #bytes = new Uint8Array(0)
  #length = 0
  #view = new DataView(this.#bytes.buffer)
  readonly #reader = new PeekReader(this.#bytes)
  #base = 0
  #isFinished = false
  #adler = 1
  #checked = 0

  /** `path` and `action` go into errors. */
  constructor(source: ChunkSource, path: string, action: string) {
    this.#source = source
    this.#path = path
    this.#action = action
  }

  /** Returns a `DamageError` for the current position. */
  damage(what: string, cause?: unknown): DamageError {
    return new DamageError(what, this.#path, this.position, `${this.#action}.`, { cause })
  }

  /** Offset of the next byte. */
  get position(): number {
    return this.#base + this.#reader.offset
  }

  get reader(): PeekReader {
    return this.#reader
  }

  /** The array of the window; the reader's offset is a position in it. */
  get bytes(): Uint8Array {
    return this.#bytes
  }

  get view(): DataView {
    return this.#view
  }

  /** Returns the reader if that many bytes are in the window. */
  readerIfAvailable(count: number): PeekReader | undefined {
    return this.#reader.remaining >= count ? this.#reader : undefined
  }

  /** Resolves to the reader when that many bytes are in the window. Rejects with a `DamageError` when the snapshot ends before. */
  async require(count: number): Promise<PeekReader> {
    const available = await this.fillUpTo(count)
    if (available >= count) return this.#reader
    throw this.damage(`Expected ${count} more bytes, got the end of the snapshot after ${available}`)
  }

  /** Loads that many bytes into the window, or all that are left; resolves to the number of bytes available. */
  async fillUpTo(count: number): Promise<number> {
    if (this.#reader.remaining < count && !this.#isFinished) await this.#fill(count)
    return this.#reader.remaining
  }

  /** Resolves to whether no byte is left. */
  async isAtEnd(): Promise<boolean> {
    return (await this.fillUpTo(1)) === 0
  }

  /** Returns a view of the unread bytes of the window. */
  unread(): Uint8Array {
    return this.#bytes.subarray(this.#reader.offset, this.#length)
  }

  /** Returns the Adler-32 of everything read so far. */
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
    while (this.#length < count && !this.#isFinished) {
      const part = await this.#source.next()
      if (part === undefined) this.#isFinished = true
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

/** Reads and decompresses a file. The next chunk is read while the consumer parses one. Call `drain` before closing the file. */
export class FileChunks implements ChunkSource {
  readonly #file: DiskReader
  readonly #path: string
  readonly #decompressor: ByteTransform | undefined
  readonly #pause: Pause | undefined
  /** The next chunk is read into the first one. They are no longer than the file. */
  #buffers: Uint8Array[] = []
  #reading: Promise<number> | undefined
  /** What is left of a compressed chunk. */
  #packed: Uint8Array | undefined
  #position = 0
  #isFinished = false

  /** `pause` is called before each chunk. */
  constructor(file: DiskReader, path: string, decompressor: ByteTransform | undefined, pause?: Pause) {
    this.#pause = pause
    this.#file = file
    this.#path = path
    this.#decompressor = decompressor
  }

  async next(): Promise<Uint8Array | undefined> {
    if (this.#pause !== undefined) await this.#pause()
    if (this.#packed !== undefined) return this.#unpack(this.#packed)
    if (this.#isFinished) return undefined
    if (this.#buffers.length === 0) {
      const length = Math.min(CHUNK, (await this.#file.size()) + 1)
      this.#buffers = [new Uint8Array(length), new Uint8Array(length)]
    }
    const read = await (this.#reading ?? this.#read())
    const bytes = this.#buffers[0]!
    this.#reading = undefined
    this.#position += read
    const part = bytes.subarray(0, read)
    if (read < bytes.length) this.#isFinished = true
    else {
      this.#buffers.reverse()
      this.#reading = this.#read()
    }
    return this.#decompressor === undefined ? part : this.#unpack(part)
  }

  async #unpack(packed: Uint8Array): Promise<Uint8Array> {
    const decompressor = this.#decompressor!
    this.#packed = packed.length > PACKED_PART ? packed.subarray(PACKED_PART) : undefined
    try {
      const decompressed =
        packed.length > 0 ? await decompressor.write(packed.subarray(0, PACKED_PART)) : new Uint8Array(0)
      if (!this.#isFinished || this.#packed !== undefined) return decompressed
      const last = await decompressor.end()
      const whole = new Uint8Array(decompressed.length + last.length)
      whole.set(decompressed)
      whole.set(last, decompressed.length)
      return whole
    } catch (cause) {
      const what = 'Expected a compressed stream that can be decompressed'
      throw new DamageError(what, this.#path, this.#position, `${TRY_OLDER_SNAPSHOT}.`, { cause })
    }
  }

  /** Resolves when no read is in flight, so that the file can be closed. */
  async drain(): Promise<void> {
    await this.#reading?.catch(() => {})
  }

  #read(): Promise<number> {
    const reading = this.#file.read(this.#buffers[0]!, this.#position)
    // `next` reports a failure; without this handler the rejection of a chunk that is never requested would be unhandled.
    reading.catch(() => {})
    return reading
  }
}
