import type { Writable } from 'node:stream'

/** Bytes of lines that may wait for the reader of the log. */
const MAX_WAITING = 1024 * 1024

/**
 * Writes lines to a stream without waiting for its reader: lines wait in memory, and what has no room there is counted and lost. After a
 * loss nothing is added before all that waits is read.
 */
export class LogOutput {
  /** Lines that were lost since the start. */
  lost = 0
  readonly #stream: Writable
  readonly #onRoom: (lost: number) => void
  #isFull = false
  #isBroken = false
  /** Lines that were lost since the last call of `onRoom`. */
  #lostNow = 0

  /** `onRoom` is called with the number of lines that were lost when there is room again. */
  constructor(stream: Writable, onRoom: (lost: number) => void) {
    this.#stream = stream
    this.#onRoom = onRoom
    stream.on('drain', () => this.#continue())
    // The reader has ended. The server serves on without one.
    stream.on('error', () => (this.#isBroken = true))
  }

  write(line: string): void {
    // Without the need for it no drain follows; then a line is written, however long it is.
    const { writableNeedDrain, writableLength } = this.#stream
    this.#isFull ||= writableNeedDrain && writableLength + line.length > MAX_WAITING
    if (this.#isFull || this.#isBroken) {
      this.lost++
      this.#lostNow++
    } else this.#stream.write(line)
  }

  #continue(): void {
    if (!this.#isFull) return
    this.#isFull = false
    const lost = this.#lostNow
    this.#lostNow = 0
    this.#onRoom(lost)
  }
}
