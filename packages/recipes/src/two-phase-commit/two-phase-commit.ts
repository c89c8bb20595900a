import type { Client } from '@zabra/client/core'
import { withoutTimeout } from '@zabra/client/recipe-kit'
import type { Handle, WaitOptions } from '../handles/types.ts'
import { orAborted, withLimits } from '../support/limits.ts'
import { ignoreFailure } from '../support/retry.ts'
import { decideTransaction, type TransactionRequest } from './coordinate.ts'
import type { Decision } from './decide.ts'
import { participate, type ParticipantHandlers } from './participate.ts'

/** Transactions of several sites: every site applies one, or none does. */
export class TwoPhaseCommit {
  readonly path: string
  readonly #client: Client

  constructor(client: Client, path: string) {
    this.#client = withoutTimeout(client)
    this.path = path
  }

  /**
   * Collects the votes of all participants and decides: committed if all vote to commit in time, else aborted. There is
   * exactly one decision: if this client fails, a participant takes over. Rejects with an `AmbiguousResultError` when the
   * transaction was decided, applied and deleted while this client was disconnected.
   */
  run(request: TransactionRequest): Promise<Decision> {
    return decideTransaction(this.#client, this.path, request)
  }

  /**
   * Takes part in all transactions as one site until the handle is released, and resolves when they are followed. A release
   * resolves when the handlers that run have settled.
   */
  async join(site: string, handlers: ParticipantHandlers, options: WaitOptions = {}): Promise<Handle> {
    const { started, stop } = participate(this.#client, this.path, site, handlers)
    const waiting = { operation: 'twoPhaseCommit.join', path: this.path }
    try {
      await withLimits(this.#client, options, waiting, (signal) => orAborted(started, signal, waiting))
    } catch (error) {
      ignoreFailure(stop())
      throw error
    }
    let released: Promise<void> | undefined
    const release = (): Promise<void> => (released ??= stop())
    return { release, [Symbol.asyncDispose]: release }
  }
}
