import type { ACL, Client, CreateOptions, Data } from '@zabra/client/core'
import { withoutTimeout } from '@zabra/client/recipe-kit'
import type { WaitOptions } from '../handles/types.ts'
import { orAmbiguous } from '../support/in-doubt.ts'
import { withLimits } from '../support/limits.ts'
import { createIfMissing, retryInNewSession } from '../support/retry.ts'
import { watchUntil } from '../support/watch.ts'
import { canPass, type SeenVersion } from './decide.ts'
import { acl, checkRecipe, data, parents, trueOrFalse, waiting } from '../support/checks.ts'

export interface BarrierOptions {
  /** Default: open to all clients. */
  readonly acl?: readonly ACL[] | undefined
  /** Mode of missing parents (default `container`). */
  readonly parents?: 'container' | 'persistent' | undefined
  /** Data of the znode. */
  readonly data?: Data | undefined
}

export interface BarrierWaitOptions extends WaitOptions {
  /** Also pass when the barrier was removed and set again before this waiter read it. */
  readonly generation?: boolean | undefined
}

/** Blocks waiters while a znode exists. */
export class Barrier {
  readonly #client: Client
  readonly #options: BarrierOptions
  readonly path: string

  constructor(client: Client, path: string, options: BarrierOptions = {}) {
    checkRecipe('Barrier', client, path, options, { acl, parents, data })
    this.#client = withoutTimeout(client).unordered()
    this.path = path
    this.#options = options
  }

  /** Closes the barrier. Idempotent. */
  async set(options: WaitOptions = {}): Promise<void> {
    const { acl, parents, data } = this.#options
    const create: CreateOptions = {
      parents: parents === 'persistent' ? 'persistent' : true,
      ...(acl && { acl }),
    }
    await withLimits(this.#client, options, { operation: 'barrier.set', path: this.path }, (signal) =>
      orAmbiguous(
        retryInNewSession(this.#client, () =>
          createIfMissing(this.#client, this.path, data, { ...create, signal }),
        ),
        this.path,
      ),
    )
  }

  /** Opens the barrier and releases all waiters. Idempotent. */
  remove(options: WaitOptions = {}): Promise<void> {
    return withLimits(this.#client, options, { operation: 'barrier.remove', path: this.path }, (signal) =>
      orAmbiguous(
        retryInNewSession(this.#client, () => this.#client.delete(this.path, { missingOk: true, signal })),
        this.path,
      ),
    )
  }

  /** Resolves when the barrier is open. Keeps waiting through lost connections and sessions. */
  async wait(options: BarrierWaitOptions = {}): Promise<void> {
    const operation = 'barrier.wait'
    const rules = { ...waiting, generation: trueOrFalse }
    let first: SeenVersion
    await withLimits(this.#client, options, { operation, path: this.path, rules }, (signal) =>
      watchUntil(this.#client, { signal, operation }, async (reader) => {
        const now = (await reader.data(this.path))?.stat.czxid
        first ??= now
        return canPass(now, first, options.generation ?? false) || undefined
      }),
    )
  }

  /** Resolves when the znode exists: the reverse barrier, opened by creating the znode. */
  async waitForPresence(options: WaitOptions = {}): Promise<void> {
    const operation = 'barrier.waitForPresence'
    await withLimits(this.#client, options, { operation, path: this.path }, (signal) =>
      watchUntil(this.#client, { signal, operation }, (reader) => reader.exists(this.path)),
    )
  }
}
