/** Memory of a received chunk and of a fragment of a message beside their bytes. */
const CHUNK_BYTES = 400
const FRAGMENT_BYTES = 150

/**
 * Counts the memory that the incomplete message of a WebSocket takes (RFC 6455, section 5.2): fragments are views into the chunks
 * in which they came, each of which stays in memory as a whole.
 */
export class PartialMessage {
  /** The header of a frame, as far as it has come: up to fourteen bytes. */
  readonly #header = new Uint8Array(14)
  #headerLength = 0
  #payloadLeft = 0
  #isInPayload = false
  #fragments = 0
  #chunks = 0
  #chunkBytes = 0

  /** Memory in bytes; 0 while no message is incomplete. */
  get byteSize(): number {
    return this.#chunkBytes + this.#chunks * CHUNK_BYTES + this.#fragments * FRAGMENT_BYTES
  }

  /** Follows the frames of a chunk. Takes bytes that are no frames for some: a WebSocket closes the connection then. */
  push(chunk: Uint8Array): void {
    let at = 0
    let isNew = this.#chunks === 0
    while (at < chunk.length) {
      if (!this.#isInPayload) this.#addToHeader(chunk[at++]!)
      const skipped = Math.min(this.#payloadLeft, chunk.length - at)
      at += skipped
      this.#payloadLeft -= skipped
      if (this.#isInPayload && this.#payloadLeft === 0 && this.#endFrame()) isNew = true
    }
    const isPartial = this.#fragments > 0 || this.#headerLength > 0
    if (isNew) this.#chunks = this.#chunkBytes = 0
    if (isPartial) {
      this.#chunks++
      this.#chunkBytes += chunk.length
    } else this.#chunks = this.#chunkBytes = 0
  }

  #addToHeader(byte: number): void {
    const header = this.#header
    header[this.#headerLength++] = byte
    if (this.#headerLength < 2) return
    const short = header[1]! & 0x7f
    const lengthBytes = short === 127 ? 8 : short === 126 ? 2 : 0
    const maskBytes = header[1]! >= 0x80 ? 4 : 0
    if (this.#headerLength < 2 + lengthBytes + maskBytes) return
    this.#payloadLeft = short
    if (lengthBytes > 0) {
      this.#payloadLeft = 0
      for (let i = 0; i < lengthBytes; i++) this.#payloadLeft = this.#payloadLeft * 256 + header[2 + i]!
    }
    this.#isInPayload = true
  }

  /** Returns whether the frame was the last one of a message. */
  #endFrame(): boolean {
    const [type = 0] = this.#header
    this.#isInPayload = false
    this.#headerLength = 0
    const isControl = (type & 0x08) !== 0
    if (isControl) return false
    const isLast = type >= 0x80
    this.#fragments = isLast ? 0 : this.#fragments + 1
    return isLast
  }
}
