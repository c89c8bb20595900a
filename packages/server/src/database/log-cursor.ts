import { counterOf, formatZxid } from '@zabra/protocol'
import type { Zxid } from '../core/types.ts'
import { DamageError, isSuccessor, type LogRange, type RawTxn } from '../persistence/index.ts'

/** The transactions that a cursor must find. */
export interface LogCursorBounds {
  /** Returns the transaction after which the log may be read. */
  readonly begin: () => Zxid
  readonly range: Pick<LogRange, 'hasBetween'>
  readonly folder: string
  readonly upTo: Zxid
}

/** Reads the log and checks that nothing is missing. While it is open the files that it needs are not purged. */
export class LogCursor implements AsyncIterableIterator<RawTxn> {
  readonly after: Zxid
  readonly #open: () => Promise<AsyncGenerator<RawTxn, void, undefined>>
  readonly #bounds: LogCursorBounds
  readonly #onEnd: () => void
  #source: AsyncGenerator<RawTxn, void, undefined> | undefined
  #last: Zxid

  constructor(
    after: Zxid,
    open: () => Promise<AsyncGenerator<RawTxn, void, undefined>>,
    bounds: LogCursorBounds,
    onEnd: () => void,
  ) {
    this.after = after
    this.#open = open
    this.#bounds = bounds
    this.#onEnd = onEnd
    this.#last = after
  }

  [Symbol.asyncIterator](): this {
    return this
  }

  async next(): Promise<IteratorResult<RawTxn>> {
    try {
      const found = await this.#step()
      if (found === undefined) return await this.return()
      return { done: false, value: found }
    } catch (error) {
      this.#onEnd()
      throw error
    }
  }

  async return(): Promise<IteratorResult<RawTxn>> {
    this.#onEnd()
    await this.#source?.return()
    return { done: true, value: undefined }
  }

  async #step(): Promise<RawTxn | undefined> {
    const { begin, range, upTo } = this.#bounds
    if (this.#source === undefined && this.after < begin()) throw this.#missing(begin())
    this.#source ??= await this.#open()
    const { done, value } = await this.#source.next()
    if (done !== true) {
      const isNext = value.zxid === this.#last + 1
      // The first of an epoch follows the last one before it, and not any other.
      if (!isNext && (!isSuccessor(value.zxid, this.#last) || range.hasBetween(this.#last, value.zxid)))
        throw this.#missing(value.zxid)
      this.#last = value.zxid
      return value
    }
    if (this.#last < upTo && counterOf(upTo) > 0) throw this.#missing(upTo)
    return undefined
  }

  #missing(found: Zxid): DamageError {
    return new DamageError(
      `Expected the transaction after 0x${formatZxid(this.#last)}, got 0x${formatZxid(found)}`,
      this.#bounds.folder,
      0,
      'Send the learner a snapshot.',
    )
  }
}
