import { writeMultiHeader, Writer, type BufferPool } from '@zabra/protocol'
import { MULTI_END } from '../core/operations/index.ts'
import type { Tree } from '../core/tree/index.ts'
import type { SubTxn } from '../core/types.ts'
import { writeMultiResult } from './replies.ts'

/** A chunk with this many bytes is full: one more result still fits into a buffer of the pool. */
const CHUNK_BYTES = 60_000

/** Collects the results of the parts of one multi in chunks. One buffer for millions of bytes would be copied whenever it grows. */
export class MultiResults {
  readonly #pool: BufferPool
  readonly #fullChunks: Writer[] = []
  #lastChunk: Writer
  /** Bytes of the full chunks. */
  #length = 0

  /** Takes the buffers of the chunks from `pool`. */
  constructor(pool: BufferPool) {
    this.#pool = pool
    this.#lastChunk = new Writer(512, pool)
  }

  /** Adds the result of a part. Call it right after the part is applied, while the tree shows its result. */
  add(tree: Tree, txn: SubTxn, isApplied: boolean): void {
    if (this.#lastChunk.length >= CHUNK_BYTES) {
      this.#fullChunks.push(this.#lastChunk)
      this.#length += this.#lastChunk.length
      this.#lastChunk = new Writer(512, this.#pool)
    }
    writeMultiResult(tree, txn, isApplied, this.#lastChunk)
  }

  /** Ends the reply at `mark` with these results as its body, calling `flush` after each full chunk. Returns the length of the reply. */
  finish(writer: Writer, mark: number, flush: () => void): number {
    writeMultiHeader(this.#lastChunk, MULTI_END)
    const size = writer.length - mark + this.#length + this.#lastChunk.length
    writer.intAt(mark, size - 4)
    for (const chunk of [...this.#fullChunks, this.#lastChunk]) {
      writer.raw(chunk.bytes())
      chunk.release()
      if (writer.length >= CHUNK_BYTES) flush()
    }
    return size
  }
}
