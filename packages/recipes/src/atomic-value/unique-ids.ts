import type { Client } from '@zabra/client/core'
import type { WaitOptions } from '../handles/types.ts'
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
    this.#counter = new Counter(client, path, format === undefined ? {} : { format })
    this.#blockSize = BigInt(blockSize)
  }

  /** Returns an id, from 0 up. Rejects as `add` of a `Counter` does. */
  next(options: WaitOptions = {}): Promise<bigint> {
    const id = this.#pending.then(() => this.#take(options))
    this.#pending = id.catch(() => {})
    return id
  }

  async #take(options: WaitOptions): Promise<bigint> {
    if (this.#next === this.#end) {
      this.#end = await this.#counter.add(this.#blockSize, options)
      this.#next = this.#end - this.#blockSize
    }
    return this.#next++
  }
}
