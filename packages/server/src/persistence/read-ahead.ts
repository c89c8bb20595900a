import type { DiskReader } from '@zabra/runtime'

const CHUNK = 1 << 20

interface Piece {
  readonly at: number
  readonly bytes: Uint8Array
  readonly reading: Promise<number>
}

/** Reads a file forwards: while one piece is looked at, the next one is read. Call `done` before the file is closed. */
export class ReadAheadFile {
  readonly #file: DiskReader
  #next: Piece | undefined
  /** The array of the next piece; what it holds is copied before it is filled again. */
  #spare: Uint8Array<ArrayBuffer> | undefined

  constructor(file: DiskReader) {
    this.#file = file
  }

  /**
   * The bytes from `at` on, at least `needed` unless the file ends before, in an array of their own. `tail` are the first
   * of them, those that are at hand; `size` is the length of the file.
   */
  async readFrom(at: number, needed: number, tail: Uint8Array, size: number): Promise<Uint8Array> {
    const next = this.#next
    const fits = next?.at === at + tail.length && tail.length + next.bytes.length >= needed
    if (!fits) await this.drain()
    this.#next = undefined
    const bytes = fits
      ? await joined(tail, next)
      : await this.#read(at, Math.min(Math.max(needed, CHUNK), size - at))
    const end = at + bytes.length
    if (end < size && bytes.length >= needed) this.#next = this.#begin(end, Math.min(CHUNK, size - end))
    return bytes
  }

  /** Calls `look` for each piece from an offset to the end of the file. What it gets holds until it returns. */
  async forEachChunk(
    from: number,
    size: number,
    look: (bytes: Uint8Array, at: number) => void,
  ): Promise<void> {
    await this.drain()
    const begin = (at: number): Piece | undefined =>
      at < size ? this.#begin(at, Math.min(CHUNK, size - at)) : undefined
    let free = new Uint8Array(CHUNK)
    for (let piece = begin(from); piece !== undefined;) {
      const { at, bytes, reading } = piece
      const read = await reading
      ;[this.#spare, free] = [free, this.#spare!]
      piece = begin(at + bytes.length)
      look(bytes.subarray(0, read), at)
    }
  }

  /** Resolves once nothing is read any more. */
  async drain(): Promise<void> {
    await this.#next?.reading.catch(() => {})
    this.#next = undefined
  }

  #begin(at: number, length: number): Piece {
    this.#spare ??= new Uint8Array(CHUNK)
    const bytes = this.#spare.subarray(0, length)
    const reading = this.#file.read(bytes, at)
    // Whoever wants the piece hears of a failure; nobody may.
    reading.catch(() => {})
    return { at, bytes, reading }
  }

  async #read(at: number, length: number): Promise<Uint8Array> {
    const bytes = new Uint8Array(length)
    const read = await this.#file.read(bytes, at)
    return read === length ? bytes : bytes.subarray(0, read)
  }
}

async function joined(tail: Uint8Array, { bytes, reading }: Piece): Promise<Uint8Array> {
  const read = await reading
  const whole = new Uint8Array(tail.length + read)
  whole.set(tail)
  whole.set(bytes.subarray(0, read), tail.length)
  return whole
}
