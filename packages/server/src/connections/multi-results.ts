import { writeMultiHeader, Writer, type BufferPool } from '@zabra/protocol'
import { MULTI_END } from '../core/operations/index.ts'
import type { Tree } from '../core/tree/index.ts'
import type { SubTxn } from '../core/types.ts'
import { writeMultiResult } from './replies.ts'

/** A piece that has so many bytes is full: with the part behind them it still fits into an array that is used again. */
const FULL = 60_000

/** The results of the parts of one multi, in small pieces: one array for millions of bytes would be copied whenever it grows. */
export class MultiResults {
  readonly #rooms: BufferPool
  readonly #full: Writer[] = []
  #last: Writer
  #length = 0

  /** The pieces lie in `rooms`. */
  constructor(rooms: BufferPool) {
    this.#rooms = rooms
    this.#last = new Writer(512, rooms)
  }

  /** Adds the result of a part, right after it is applied. */
  add(tree: Tree, txn: SubTxn, isApplied: boolean): void {
    if (this.#last.length >= FULL) {
      this.#full.push(this.#last)
      this.#length += this.#last.length
      this.#last = new Writer(512, this.#rooms)
    }
    writeMultiResult(tree, txn, isApplied, this.#last)
  }

  /** Ends the reply that begins at `mark`, with these results as its body. Many of them are sent at once. Gives its bytes. */
  finish(writer: Writer, mark: number, send: () => void): number {
    writeMultiHeader(this.#last, MULTI_END)
    const size = writer.length - mark + this.#length + this.#last.length
    writer.intAt(mark, size - 4)
    for (const piece of [...this.#full, this.#last]) {
      writer.raw(piece.bytes())
      piece.release()
      if (writer.length >= FULL) send()
    }
    return size
  }
}
