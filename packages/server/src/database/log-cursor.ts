import { counterOf, formatZxid } from '@zabra/protocol'
import type { Zxid } from '../core/types.ts'
import { DamageError, isSuccessor, type RawTxn, type LogRange } from '../persistence/index.ts'

/** What a reading must find. */
export interface LogCursorBounds {
  readonly logRange: LogRange
  readonly folder: string
  readonly upTo: Zxid
}

/** A learner's way through the log. As long as it lasts, the files that it needs are not purged. */
export class LogCursor implements AsyncIterableIterator<RawTxn> {
  readonly after: Zxid
  readonly #open: () => Promise<AsyncGenerator<RawTxn, void, undefined>>
  readonly #bounds: LogCursorBounds
  readonly #over: () => void
  #source: AsyncGenerator<RawTxn, void, undefined> | undefined
  #last: Zxid

  constructor(
    after: Zxid,
    open: () => Promise<AsyncGenerator<RawTxn, void, undefined>>,
    bounds: LogCursorBounds,
    over: () => void,
  ) {
    this.after = after
    this.#open = open
    this.#bounds = bounds
    this.#over = over
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
      this.#over()
      throw error
    }
  }

  async return(): Promise<IteratorResult<RawTxn>> {
    this.#over()
    await this.#source?.return()
    return { done: true, value: undefined }
  }

  async #step(): Promise<RawTxn | undefined> {
    const { logRange: verified, upTo } = this.#bounds
    if (this.after < verified.after) throw this.#missing(verified.after)
    this.#source ??= await this.#open()
    const { done, value } = await this.#source.next()
    if (done !== true) {
      if (!isSuccessor(value.zxid, this.#last)) throw this.#missing(value.zxid)
      this.#last = value.zxid
      return value
    }
    if (this.#last < upTo && counterOf(upTo) > 0) throw this.#missing(upTo)
    return undefined
  }

  #missing(found: Zxid): DamageError {
    return new DamageError(
      `Expected the transaction behind 0x${formatZxid(this.#last)}, got 0x${formatZxid(found)}`,
      this.#bounds.folder,
      0,
      'Send the learner a snapshot.',
    )
  }
}
