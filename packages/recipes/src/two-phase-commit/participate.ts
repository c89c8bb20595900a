import { AbortedError, NoNodeError, type Bytes, type Client } from '@zabra/client/core'
import { callObserver, childPath, withoutTimeout } from '@zabra/client/recipe-kit'
import { watchChildren } from '../tree-cache/watchers.ts'
import { isFinished, retryInNewSession } from '../support/retry.ts'
import { checkArgument, oneOf } from '../support/checks.ts'
import { delay } from '../support/delay.ts'
import { acquireHead } from '../lock-queue/queue-head.ts'
import { encodeName } from '../support/name-codec.ts'
import { watchUntil } from '../support/watch.ts'
import { coordinate, fromBase64 } from './coordinate.ts'
import { COORDINATOR, type Decision, type TransactionRecord, type Vote } from './decide.ts'
import { decodeRecord, Transaction } from './transaction.ts'

/**
 * The longest delay in milliseconds between two checks whether a transaction that this site has applied can be deleted.
 */
const MAX_CHECK_DELAY_MS = 600_000

const aVote = oneOf('commit', 'abort')

/**
 * The handlers of a site. Each is called at least once for an id: again, with the same id, when the site ended during it or before
 * the servers had its result. The id of a transaction is never used again: store it together with the effect of a handler, and do
 * nothing for an id that is stored.
 */
export interface ParticipantHandlers {
  /**
   * Makes sure, durably, that the site can commit or abort, and votes. `signal` aborts when the transaction is
   * already decided.
   */
  prepare(transaction: { readonly id: string; readonly payload: Bytes }, signal: AbortSignal): Promise<Vote>
  /** Applies what was prepared: the transaction is committed. */
  commit(transaction: { readonly id: string }): Promise<void>
  /** Reverts what was prepared, if anything: the transaction is aborted. */
  abort(transaction: { readonly id: string }): Promise<void>
  /**
   * Receives the error of a handler, or of a transaction that the site cannot continue; the id is empty when it cannot follow
   * the transactions at all. A failed `prepare` is a vote to abort. Its own errors are ignored.
   */
  onFailed?(error: unknown, transaction: { readonly id: string }): void
}

/** A site that takes part. */
export interface Participation {
  /** Resolves when the transactions are followed. Rejects when they cannot be listed. */
  readonly started: Promise<void>
  /** Aborts with the error for which the transactions cannot be followed any more, or with an `AbortedError` by a stop. */
  readonly signal: AbortSignal
  /** Takes part no longer. Resolves when the handlers that run have settled. */
  readonly stop: () => Promise<void>
}

/** Takes part in all transactions below a path as one site. */
export function participate(
  client: Client,
  path: string,
  site: string,
  handlers: ParticipantHandlers,
): Participation {
  const stop = new AbortController()
  const ended = new AbortController()
  const working = new Map<string, Work>()
  const over = (error: unknown): boolean => error instanceof AbortedError || isFinished(client)
  const begin = (name: string): void => {
    const gone = new AbortController()
    const done = new Site(client, childPath(path, name), site, handlers, stop.signal)
      .run(gone.signal)
      .catch((error: unknown) => {
        if (!over(error)) reportFailure(handlers, error, name)
      })
    working.set(name, { done, gone })
  }
  /** Forgets it only when its work has ended: the listing of a server that lags behind may lack a transaction. */
  const end = async (name: string, { done, gone }: Work): Promise<void> => {
    gone.abort()
    await done
    working.delete(name)
  }
  let isStarted = false
  let following: Promise<void> = Promise.resolve()
  const started = new Promise<void>((resolve, reject) => {
    const follow = async (): Promise<void> => {
      for await (const names of watchChildren(client, path, { signal: stop.signal })) {
        isStarted = true
        resolve()
        const there = new Set(names)
        for (const [name, work] of working)
          if (!there.has(name) && !work.gone.signal.aborted) void end(name, work)
        for (const name of there) if (name.startsWith('tx-') && !working.has(name)) begin(name)
      }
    }
    following = follow().catch((error: unknown) => {
      ended.abort(error)
      if (!isStarted) reject(error as Error)
      else if (!over(error)) reportFailure(handlers, error, '')
    })
  })
  started.catch(() => {})
  return {
    started,
    signal: ended.signal,
    stop: async () => {
      ended.abort(new AbortedError(`The site ${site} takes part no longer`, { path }))
      stop.abort()
      await Promise.all([following, ...[...working.values()].map(({ done }) => done)])
    },
  }
}

function reportFailure(handlers: ParticipantHandlers, error: unknown, id: string): void {
  callObserver(() => handlers.onFailed?.(error, { id }))
}

/** The work of a site on one transaction. */
interface Work {
  readonly done: Promise<void>
  /** Aborts when the transaction is gone. */
  readonly gone: AbortController
}

/** One site in one transaction. */
class Site {
  readonly #transaction: Transaction
  readonly #client: Client
  readonly #site: string
  readonly #handlers: ParticipantHandlers
  readonly #stop: AbortSignal

  constructor(client: Client, path: string, site: string, handlers: ParticipantHandlers, stop: AbortSignal) {
    this.#client = withoutTimeout(client)
    this.#transaction = new Transaction(client, path)
    this.#site = site
    this.#handlers = handlers
    this.#stop = stop
  }

  /** Takes part until the transaction is gone, or `gone` aborts. */
  async run(gone: AbortSignal): Promise<void> {
    const found = await this.#transaction.readFor(encodeName(this.#site))
    if (!found?.record.participants.includes(this.#site)) return
    const { record, hasAcknowledged } = found
    const isGone = hasAcknowledged ? await this.#transaction.removeIfDone(record) : await this.#apply(record)
    if (!isGone) await this.#cleanUp(record, AbortSignal.any([gone, this.#stop]))
  }

  /**
   * Votes and applies the decision. Returns whether the transaction is gone. Rejects with a `NoNodeError` when it was deleted before:
   * only by hand, since no site deletes a transaction that this one has not acknowledged.
   */
  async #apply(record: TransactionRecord): Promise<boolean> {
    const decision = await this.#vote(record)
    const { id, path } = this.#transaction
    if (decision === undefined)
      throw new NoNodeError(
        `The transaction ${path} was deleted, and this site does not know its decision; settle what it has prepared by hand`,
        'NO_NODE',
        { path },
      )
    await (decision === 'committed' ? this.#handlers.commit({ id }) : this.#handlers.abort({ id }))
    return this.#transaction.acknowledge(encodeName(this.#site), record)
  }

  /**
   * Deletes the transaction when all sites have applied it, should the coordinator and the last site have ended before
   * they did. Checks at random times, so that one of many sites does it, and more and more rarely, since a site may be
   * away for long.
   */
  async #cleanUp(record: TransactionRecord, ended: AbortSignal): Promise<void> {
    const { random } = this.#client.platform
    for (let wait = this.#client.session.timeoutMs; ; wait *= 2) {
      wait = Math.min(wait, MAX_CHECK_DELAY_MS)
      // Not before the session of a coordinator that has ended can have expired.
      await delay(this.#client, wait + random.below(wait), ended)
      if (ended.aborted || (await this.#transaction.removeIfDone(record))) return
    }
  }

  /** Votes, and waits for the decision at the same time. */
  async #vote(record: TransactionRecord): Promise<Decision | undefined> {
    const early = new AbortController()
    const decision = this.#decision()
    decision.then(
      () => early.abort(),
      (error: unknown) => early.abort(error),
    )
    const voted = this.#prepareAndVote(record, AbortSignal.any([early.signal, this.#stop]))
    const [decided] = await Promise.all([decision, voted])
    return decided
  }

  async #prepareAndVote({ payload }: TransactionRecord, signal: AbortSignal): Promise<void> {
    if (await this.#transaction.hasVoted(this.#site)) return
    const { id } = this.#transaction
    let vote: Vote = 'abort'
    try {
      const prepared = await this.#handlers.prepare({ id, payload: fromBase64(payload) }, signal)
      checkArgument('twoPhaseCommit.prepare', 'a vote', prepared, aVote)
      vote = prepared
    } catch (error) {
      if (signal.aborted) return
      reportFailure(this.#handlers, error, id)
    }
    // A vote with an unknown outcome is cast again: it counts once.
    while (!signal.aborted && !(await this.#transaction.hasVoted(this.#site))) {
      await this.#transaction.vote(this.#site, vote)
    }
  }

  /** Waits for the decision; when the coordinator is gone, the sites take over one after the other. */
  async #decision(): Promise<Decision | undefined> {
    const { path } = this.#transaction
    const waiting = { signal: this.#stop, operation: 'participate' }
    for (;;) {
      await retryInNewSession(this.#client, () => this.#transaction.announcePresence(encodeName(this.#site)))
      const session = this.#client.session.id
      const seen = await watchUntil(this.#client, waiting, async (reader) => {
        const found = await reader.data(path)
        const record = found && decodeRecord(found.data)
        if (record === undefined) return 'gone'
        const { state } = record
        if (state !== 'voting') return state
        if (this.#client.session.id !== session) return 'newSession'
        return (await reader.data(`${path}/alive/${COORDINATOR}`)) === undefined ? 'orphan' : undefined
      })
      if (seen === 'gone') return undefined
      if (seen === 'orphan') return this.#takeOver()
      if (seen !== 'newSession') return seen
    }
  }

  async #takeOver(): Promise<Decision | undefined> {
    const { path } = this.#transaction
    if ((await this.#transaction.read()) === undefined) return undefined
    const head = await acquireHead(this.#client, `${path}/line`, {
      signal: this.#stop,
      operation: 'participate',
    })
    try {
      return await coordinate(this.#transaction, { leave: this.#stop })
    } finally {
      head.release()
    }
  }
}
