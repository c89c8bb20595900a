import { Writer, type adler32 } from '@zabra/protocol'

/** An array of another owner among the bytes of a writer. */
interface Attachment {
  /** How many bytes of the writer's own array precede it. */
  readonly at: number
  readonly bytes: Uint8Array
}

/**
 * A writer that refers to long arrays in place of copying them. What is attached must not change until the bytes are sent or dropped.
 * Positions count all bytes; only the writer's own ones can be overwritten.
 */
export class PieceWriter extends Writer {
  /** In their order. */
  #attachments: Attachment[] = []
  #attachedBytes = 0

  override get length(): number {
    return super.length + this.#attachedBytes
  }

  /** Whether some of the bytes are in arrays of others. */
  get hasAttachments(): boolean {
    return this.#attachedBytes > 0
  }

  /** Writes bytes without their length and without a copy. */
  attach(bytes: Uint8Array): void {
    if (bytes.length === 0) return
    this.#attachments.push({ at: super.length, bytes })
    this.#attachedBytes += bytes.length
  }

  /** Returns views of all bytes written, in their order and without a copy, valid until the next write. */
  pieces(): Uint8Array[] {
    const own = super.bytes()
    const pieces: Uint8Array[] = []
    let from = 0
    for (const { at, bytes } of this.#attachments) {
      if (at > from) pieces.push(own.subarray(from, at))
      pieces.push(bytes)
      from = at
    }
    if (own.length > from) pieces.push(own.subarray(from))
    return pieces
  }

  /** Does as `take` for `pieces`, without a copy. */
  takePieces(): Uint8Array[] {
    const taken = this.pieces()
    super.take()
    this.#detach()
    return taken
  }

  override intAt(position: number, value: number): void {
    super.intAt(this.#own(position), value)
  }

  override longNumberAt(position: number, value: number): void {
    super.longNumberAt(this.#own(position), value)
  }

  override truncate(length: number): void {
    for (let last = this.#attachments.at(-1); last !== undefined; last = this.#attachments.at(-1)) {
      if (last.at + this.#attachedBytes <= length) break
      this.#attachments.pop()
      this.#attachedBytes -= last.bytes.length
    }
    super.truncate(length - this.#attachedBytes)
  }

  /** Returns a view of all bytes written, valid until the next write. Copies what is attached. */
  override bytes(): Uint8Array {
    this.#join()
    return super.bytes()
  }

  override bytesFrom(start: number): Uint8Array {
    this.#join()
    return super.bytesFrom(start)
  }

  override checksum(sum: typeof adler32, start: number, previous?: number): number {
    this.#join()
    return super.checksum(sum, start, previous)
  }

  override take(): Uint8Array {
    this.#join()
    return super.take()
  }

  override release(): void {
    this.#detach()
    super.release()
  }

  override reset(): void {
    this.#detach()
    super.reset()
  }

  #detach(): void {
    if (this.#attachedBytes === 0) return
    this.#attachments = []
    this.#attachedBytes = 0
  }

  /** Returns the offset in its own array of one of its bytes. */
  #own(position: number): number {
    let own = position
    for (const { at, bytes } of this.#attachments) {
      if (own <= at) break
      own = Math.max(at, own - bytes.length)
    }
    return own
  }

  /** Copies what is attached into its own array. */
  #join(): void {
    if (this.#attachedBytes === 0) return
    const pieces = this.takePieces()
    for (const piece of pieces) this.raw(piece)
  }
}
