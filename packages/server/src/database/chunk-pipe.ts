import { invariant, type Clock } from '@zabra/runtime'

const PIECE_BYTES = 1 << 16

/** Passes bytes from a writer that pushes to a reader that pulls. A push resolves when its bytes are consumed. */
export class ChunkPipe {
  readonly #clock: Clock
  #resolveNext: ((chunk: Uint8Array | undefined) => void) | undefined
  #onConsumed: (() => void) | undefined
  #isEnded = false

  constructor(clock: Clock) {
    this.#clock = clock
  }

  /** Resolves to the next chunk, or to undefined at the end. Called by the reader. */
  next(): Promise<Uint8Array | undefined> {
    invariant(this.#resolveNext === undefined, 'A pipe has one pending read at a time.')
    this.#onConsumed?.()
    if (this.#isEnded) return Promise.resolve(undefined)
    return new Promise((resolve) => (this.#resolveNext = resolve))
  }

  /**
   * Passes bytes in pieces, one in a turn of the event loop, so that parsing takes a few milliseconds at a time. Called by the writer.
   * `done` settles when the reader stops reading. Resolves to the number of bytes passed.
   */
  async push(bytes: Uint8Array, done: Promise<unknown>): Promise<number> {
    const over = done.catch(() => {})
    for (let at = 0; at < bytes.length; at += PIECE_BYTES) {
      if (at > 0) await yieldToEventLoop(this.#clock)
      const piece = bytes.subarray(at, at + PIECE_BYTES)
      const consumed = new Promise<void>((resolve) => (this.#onConsumed = resolve))
      const resolveNext = this.#resolveNext
      this.#resolveNext = undefined
      if (resolveNext === undefined) return at
      resolveNext(piece)
      await Promise.race([consumed, over])
    }
    return bytes.length
  }

  /** Ends the read that waits and each later one. */
  end(): void {
    this.#isEnded = true
    const resolveNext = this.#resolveNext
    this.#resolveNext = undefined
    resolveNext?.(undefined)
  }
}

/** Resolves in a later turn of the event loop. */
export const yieldToEventLoop = (clock: Clock): Promise<void> =>
  new Promise((resolve) => clock.immediate(resolve))
