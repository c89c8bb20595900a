import type { Client } from '@zabra/client/core'
import { withoutTimeout } from '@zabra/client/recipe-kit'
import type { KeptHandle, WaitOptions } from '../handles/types.ts'
import { throwIfAborted } from '../lock-queue/turn.ts'
import { orAborted, withLimits } from '../support/limits.ts'
import { ignoreFailure } from '../support/retry.ts'
import { decideTransaction, type TransactionRequest } from './coordinate.ts'
import type { Decision } from './decide.ts'
import { participate, type ParticipantHandlers } from './participate.ts'
import {
  abortable,
  checkArgument,
  checkOptions,
  checkRecipe,
  data,
  milliseconds,
  object,
  text,
  texts,
  type Rule,
  type Rules,
  waiting as waitRules,
} from '../support/checks.ts'

const requesting: Rules<TransactionRequest> = {
  ...abortable,
  participants: texts,
  payload: data,
  deadlineMs: milliseconds,
}
const handling: Rule = [
  'an object with prepare, commit, abort and perhaps onFailed, all functions',
  (value) => {
    const handlers = (value ?? {}) as Readonly<Record<keyof ParticipantHandlers, unknown>>
    const { prepare, commit, abort, onFailed = abort } = handlers
    return [prepare, commit, abort, onFailed].every((handler) => typeof handler === 'function')
  },
]

/** Transactions of several sites: every site applies one, or none does. */
export class TwoPhaseCommit {
  readonly path: string
  readonly #client: Client

  constructor(client: Client, path: string) {
    checkRecipe('TwoPhaseCommit', client, path, undefined, {})
    this.#client = withoutTimeout(client)
    this.path = path
  }

  /**
   * Collects the votes of all participants and decides: committed if all vote to commit in time, else aborted. There is
   * exactly one decision: if this client fails, a participant takes over. Rejects with an `AmbiguousResultError` when that happens
   * because the servers refused a request of this client, and when the transaction was decided, applied and deleted while it was
   * disconnected.
   */
  async run(request: TransactionRequest): Promise<Decision> {
    checkArgument('twoPhaseCommit.run', 'a transaction', request, object)
    checkOptions('twoPhaseCommit.run', request, requesting)
    checkArgument('twoPhaseCommit.run', 'participants', request.participants, texts)
    checkArgument('twoPhaseCommit.run', 'payload', request.payload, data)
    checkArgument('twoPhaseCommit.run', 'deadlineMs', request.deadlineMs, milliseconds)
    return decideTransaction(this.#client, this.path, request)
  }

  /**
   * Takes part in all transactions as one site until the handle is released, and resolves when they are followed. A release
   * resolves when the handlers that run have settled. The signal of the handle aborts when the transactions cannot be followed any
   * more.
   */
  async join(site: string, handlers: ParticipantHandlers, options: WaitOptions = {}): Promise<KeptHandle> {
    checkArgument('twoPhaseCommit.join', 'a site', site, text)
    checkArgument('twoPhaseCommit.join', 'handlers', handlers, handling)
    checkOptions('twoPhaseCommit.join', options, waitRules)
    throwIfAborted(options.signal, this.path, 'twoPhaseCommit.join')
    const { started, signal, stop } = participate(this.#client, this.path, site, handlers)
    const waiting = { operation: 'twoPhaseCommit.join', path: this.path }
    try {
      await withLimits(this.#client, options, waiting, (limit) => orAborted(started, limit, waiting))
    } catch (error) {
      ignoreFailure(stop())
      throw error
    }
    let released: Promise<void> | undefined
    const release = (): Promise<void> => (released ??= stop())
    return { signal, release, [Symbol.asyncDispose]: release }
  }
}
