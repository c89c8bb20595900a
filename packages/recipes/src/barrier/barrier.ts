import type { ACL, Bytes, Client, CreateOptions } from '@zabra/client/core'
import { createIfMissing, retryInNewSession } from '../support/retry.ts'
import { watchUntil } from '../support/watch.ts'
import { canPass, type SeenVersion } from './decide.ts'

export interface BarrierOptions {
  /** Default: open to all clients. */
  readonly acl?: readonly ACL[]
  /** Mode of missing parents (default `container`). */
  readonly parents?: 'container' | 'persistent'
  /** Data of the znode. */
  readonly data?: Bytes
}

export interface BarrierWaitOptions {
  readonly signal?: AbortSignal
  /** Also pass when the barrier was removed and set again before this waiter read it. */
  readonly generation?: boolean
}

/** Blocks waiters while a znode exists. */
export class Barrier {
  readonly #client: Client
  readonly #options: BarrierOptions
  readonly path: string

  constructor(client: Client, path: string, options: BarrierOptions = {}) {
    this.#client = client.unordered()
    this.path = path
    this.#options = options
  }

  /** Closes the barrier. Idempotent. */
  async set(): Promise<void> {
    const { acl, parents, data } = this.#options
    const options: CreateOptions = {
      parents: parents === 'persistent' ? 'persistent' : true,
      ...(acl && { acl }),
    }
    await retryInNewSession(this.#client, () => createIfMissing(this.#client, this.path, data, options))
  }

  /** Opens the barrier and releases all waiters. Idempotent. */
  remove(): Promise<void> {
    return retryInNewSession(this.#client, () => this.#client.delete(this.path, { missingOk: true }))
  }

  /** Resolves when the barrier is open. Keeps waiting through lost connections and sessions. */
  async wait({ signal, generation = false }: BarrierWaitOptions = {}): Promise<void> {
    let first: SeenVersion
    await watchUntil(this.#client, { signal, operation: 'barrier.wait' }, async (reader) => {
      const now = (await reader.data(this.path))?.stat.czxid
      first ??= now
      return canPass(now, first, generation) || undefined
    })
  }

  /** Resolves when the znode exists: the reverse barrier, opened by creating the znode. */
  async waitForPresence({ signal }: { readonly signal?: AbortSignal } = {}): Promise<void> {
    await watchUntil(this.#client, { signal, operation: 'barrier.waitForPresence' }, (reader) =>
      reader.exists(this.path),
    )
  }
}
