import type { DiskReader } from '@zabra/runtime'

const CHUNK_BYTES = 1 << 20

interface Chunk {
  readonly at: number
  readonly bytes: Uint8Array
  readonly reading: Promise<number>
}

/** Reads a file forwards; the next chunk is read while the consumer parses one. Call `drain` before closing the file. */
export class ReadAheadFile {
  readonly #file: DiskReader
  #next: Chunk | undefined
  /** The array of the next chunk; its contents are copied before it is filled again. */
  #spare: Uint8Array<ArrayBuffer> | undefined

  constructor(file: DiskReader) {
    this.#file = file
  }

  /**
   * Resolves to the bytes from `at` on, at least `needed` unless the file ends before, in an array of their own. `tail` are the
   * first of them, which the caller has already; `size` is the length of the file.
   */
  async readFrom(at: number, needed: number, tail: Uint8Array, size: number): Promise<Uint8Array> {
    const next = this.#next
    const fits = next?.at === at + tail.length && tail.length + next.bytes.length >= needed
    if (!fits) await this.drain()
    this.#next = undefined
    const bytes = fits
      ? await joined(tail, next)
      : await this.#read(at, Math.min(Math.max(needed, CHUNK_BYTES), size - at))
    const end = at + bytes.length
    if (end < size && bytes.length >= needed) this.#next = this.#begin(end, Math.min(CHUNK_BYTES, size - end))
    return bytes
  }

  /** Calls `visit` with each chunk from an offset to the end of the file. A chunk is valid until `visit` returns. */
  async forEachChunk(
    from: number,
    size: number,
    visit: (bytes: Uint8Array, at: number) => void,
  ): Promise<void> {
    await this.drain()
    const begin = (at: number): Chunk | undefined =>
      at < size ? this.#begin(at, Math.min(CHUNK_BYTES, size - at)) : undefined
    let free: Uint8Array<ArrayBuffer> | undefined
    for (let chunk = begin(from); chunk !== undefined;) {
      const { at, bytes, reading } = chunk
      const read = await reading
      ;[this.#spare, free] = [free, this.#spare]
      chunk = begin(at + bytes.length)
      visit(bytes.subarray(0, read), at)
    }
  }

  /** Resolves when no read is in flight. */
  async drain(): Promise<void> {
    await this.#next?.reading.catch(() => {})
    this.#next = undefined
  }

  #begin(at: number, length: number): Chunk {
    if (this.#spare === undefined || this.#spare.length < length) this.#spare = new Uint8Array(length)
    const bytes = this.#spare.subarray(0, length)
    const reading = this.#file.read(bytes, at)
    // The consumer of the chunk gets a failure; without this handler the rejection of an unused chunk would be unhandled.
    reading.catch(() => {})
    return { at, bytes, reading }
  }

  async #read(at: number, length: number): Promise<Uint8Array> {
    const bytes = new Uint8Array(length)
    const read = await this.#file.read(bytes, at)
    return read === length ? bytes : bytes.subarray(0, read)
  }
}

async function joined(tail: Uint8Array, { bytes, reading }: Chunk): Promise<Uint8Array> {
  const read = await reading
  const whole = new Uint8Array(tail.length + read)
  whole.set(tail)
  whole.set(bytes.subarray(0, read), tail.length)
  return whole
}
