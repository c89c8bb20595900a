import { fstatSync, writeSync } from 'node:fs'
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
  readonly #stream: Writable & { readonly fd?: number }
  readonly #onRoom: (lost: number) => void
  #isFull = false
  #isBroken = false
  /** Lines that were lost since the last call of `onRoom`. */
  #lostNow = 0

  /** `onRoom` is called with the number of lines that were lost when there is room again. */
  constructor(stream: Writable & { readonly fd?: number }, onRoom: (lost: number) => void) {
    this.#stream = stream
    this.#onRoom = onRoom
    stream.on('drain', () => this.#continue())
    // The reader has ended, or a file has no room. The server serves on without its log.
    stream.on('error', () => (this.#isBroken = true))
  }

  write(line: string): void {
    // Without the need for it no drain follows; then a line is written, however long it is.
    const { writableNeedDrain, writableLength } = this.#stream
    this.#isFull ||= writableNeedDrain && writableLength + line.length > MAX_WAITING
    if (this.#isBroken ? !this.#writeToFile(line) : this.#isFull) {
      this.lost++
      this.#lostNow++
    } else if (!this.#isBroken) this.#stream.write(line)
  }

  /** Writes to the file of the stream, which takes nothing after an error: the disk may have room again. Returns whether it has. */
  #writeToFile(line: string): boolean {
    const { fd } = this.#stream
    try {
      if (fd === undefined || !fstatSync(fd).isFile()) return false
      // Ends the line that the error has cut.
      if (this.#lostNow > 0) writeSync(fd, '\n')
      this.#continue()
      return writeSync(fd, line) === Buffer.byteLength(line)
    } catch {
      return false
    }
  }

  /** Tells of lost lines, in a line before the next one. */
  #continue(): void {
    this.#isFull = false
    const lost = this.#lostNow
    this.#lostNow = 0
    if (lost > 0) this.#onRoom(lost)
  }
}
