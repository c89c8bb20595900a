import type { Client } from '@zabra/client/core'
import { withoutTimeout } from '@zabra/client/recipe-kit'
import type { WaitOptions } from '../handles/types.ts'
import { orAborted, withLimits } from '../support/limits.ts'
import { Counter, type CounterOptions } from './atomic-value.ts'
import { anything, checkArgument, checkRecipe, whole } from '../support/checks.ts'

export interface UniqueIdsOptions extends Pick<CounterOptions, 'format'> {
  /** Number of ids that are reserved with one update (default 100). */
  readonly blockSize?: number | undefined
}

/**
 * Ids that no other client gets from the same counter, reserved in blocks. Those of one client grow; those of a block that
 * was reserved and not used are never given out.
 */
export class UniqueIds {
  readonly #client: Client
  readonly #path: string
  readonly #counter: Counter
  readonly #blockSize: bigint
  #next = 0n
  #end = 0n
  /** Serialises calls, so that concurrent ones reserve one block. */
  #pending: Promise<unknown> = Promise.resolve()

  constructor(client: Client, path: string, options: UniqueIdsOptions = {}) {
    checkRecipe('UniqueIds', client, path, options, { format: anything, blockSize: anything })
    const { format, blockSize = 100 } = options
    checkArgument('UniqueIds', 'blockSize', blockSize, ['a whole number of 1 id or more', whole(1)])
    this.#client = withoutTimeout(client)
    this.#path = path
    this.#counter = new Counter(client, path, format === undefined ? {} : { format })
    this.#blockSize = BigInt(blockSize)
  }

  /** Returns an id, from 0 up. Rejects as `add` of a `Counter` does. */
  next(options: WaitOptions = {}): Promise<bigint> {
    const waiting = { operation: 'uniqueIds.next', path: this.#path }
    const before = this.#pending
    const id = withLimits(this.#client, options, waiting, async (signal) => {
      await orAborted(before, signal, waiting)
      return this.#take(signal)
    })
    // A call whose limits have ended does not let the next one overtake those before it. The results are dropped: each list
    // would hold the one before it.
    this.#pending = Promise.allSettled([before, id]).then(() => {})
    return id
  }

  async #take(signal: AbortSignal | undefined): Promise<bigint> {
    if (this.#next === this.#end) {
      this.#end = await this.#counter.add(this.#blockSize, { signal })
      this.#next = this.#end - this.#blockSize
    }
    return this.#next++
  }
}
