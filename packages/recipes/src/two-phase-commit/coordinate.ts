import { utf8, UsageError, ZooKeeperError, type Bytes, type Client, type Data } from '@zabra/client/core'
import { abortError, childPath, onAbort, withoutTimeout } from '@zabra/client/recipe-kit'
import { TreeCache } from '../tree-cache/tree-cache.ts'
import { watchData } from '../tree-cache/watchers.ts'
import { AmbiguousResultError } from '../support/ambiguous-result.ts'
import { ignoreFailure, pauses } from '../support/retry.ts'
import { toBytes } from '../support/to-bytes.ts'
import { uniqueName } from '../support/commit-with-marker.ts'
import { decodeName } from '../support/name-codec.ts'
import { COORDINATOR, decide, type Decision, type TransactionRecord, type Vote } from './decide.ts'
import { decodeRecord, Transaction, voteOf } from './transaction.ts'

export interface TransactionRequest {
  /** Names of the sites that must all agree. */
  readonly participants: readonly string[]
  /** Data that every site receives. */
  readonly payload: Data
  /**
   * Milliseconds until the votes must be in, by this client's clock from now, or by a successor's from when it
   * takes over.
   */
  readonly deadlineMs: number
  /** Aborts the transaction unless it is decided; the call resolves with the decision then. */
  readonly signal?: AbortSignal | undefined
}

/** Creates a transaction and coordinates it to its decision. */
export async function decideTransaction(
  client: Client,
  path: string,
  request: TransactionRequest,
): Promise<Decision> {
  const { participants, payload, deadlineMs, signal } = request
  if (participants.length === 0 || new Set(participants).size < participants.length) {
    throw new UsageError('Expected different participants, at least one', { path })
  }
  const transaction = new Transaction(client, childPath(path, `tx-${uniqueName(client)}`))
  const record: TransactionRecord = {
    state: 'voting',
    participants,
    payload: toBase64(toBytes(payload)),
    deadlineMs,
  }
  await transaction.create(record)
  const decision = await coordinate(transaction, { giveUp: signal }).catch((error: unknown) => {
    // While this client is its coordinator, no site takes over.
    ignoreFailure(transaction.removeCoordinator(record))
    if (!ZooKeeperError.is(error) || error.scope !== 'request') throw error
    const message = 'The coordinator failed, and the sites decide without it'
    throw new AmbiguousResultError(message, { path: transaction.path, cause: error })
  })
  if (decision === undefined) {
    const message = 'The transaction was decided, applied and deleted while this client was disconnected'
    throw new AmbiguousResultError(message, { path: transaction.path })
  }
  ignoreFailure(transaction.removeCoordinator(record))
  return decision
}

interface CoordinateOptions {
  /** Aborts the transaction unless it is decided. */
  readonly giveUp?: AbortSignal | undefined
  /** Stops coordinating without a decision. */
  readonly leave?: AbortSignal | undefined
}

/**
 * Watches the votes until the transaction is decided, by this coordinator or another. Returns undefined when the
 * transaction is gone.
 */
export async function coordinate(
  transaction: Transaction,
  { giveUp, leave }: CoordinateOptions,
): Promise<Decision | undefined> {
  const poll = new VoteTracker(transaction)
  const call = (): void => poll.wakeTimer.wake()
  const stops = [giveUp, leave].map((signal) => onAbort(signal, call))
  try {
    for (;;) {
      if (leave?.aborted)
        throw abortError(leave.reason, { operation: 'twoPhaseCommit', path: transaction.path })
      const decided = await poll.step(giveUp?.aborted ?? false)
      if (decided !== 'wait') return decided
      await poll.wait()
    }
  } finally {
    for (const stop of stops) stop()
    poll.close()
  }
}

/**
 * Tracks the votes of a transaction. Recursive watches are set on its directories and not on the transaction
 * itself: Apache servers before 3.9 lose one when the same client sets a one-shot watch on its path, as the sites
 * do.
 */
class VoteTracker {
  readonly wakeTimer: WakeTimer
  readonly #transaction: Transaction
  readonly #votes: TreeCache
  readonly #presence: TreeCache
  readonly #startedAt: number
  readonly #stop = new AbortController()
  readonly #pause: () => Promise<void>
  readonly #lost = new Set<string>()
  /** The record of the transaction; undefined until it was read. */
  #transactionState: { readonly record: TransactionRecord | undefined } | undefined
  #failure: { readonly error: unknown } | undefined

  constructor(transaction: Transaction) {
    const { client, path } = transaction
    this.#transaction = transaction
    this.wakeTimer = new WakeTimer(client)
    this.#pause = pauses(client)
    this.#startedAt = client.platform.clock.monotonic()
    this.#votes = new TreeCache(client, `${path}/votes`, { depth: 1 })
    this.#presence = new TreeCache(client, `${path}/alive`, { depth: 1 })
    for (const work of [this.#followVotes(), this.#followSites(), this.#followRecord()]) {
      work.catch((error: unknown) => {
        this.#failure ??= { error }
        this.wakeTimer.wake()
      })
    }
  }

  /** Returns the decision, if there is one or one is possible. */
  async step(givenUp: boolean): Promise<Decision | 'wait' | undefined> {
    if (this.#failure !== undefined) throw this.#failure.error
    if (this.#transactionState === undefined || this.#votes.stale || this.#presence.stale) return 'wait'
    const { record } = this.#transactionState
    if (record === undefined || record.state !== 'voting') return record?.state as Decision | undefined
    const { participants } = record
    const deadlinePassed = this.#remainingMs(record) <= 0
    const decision = decide({
      participants,
      votes: this.#votesBySite(),
      lost: this.#lost,
      isDeadlinePassed: deadlinePassed,
      isGivenUp: givenUp,
    })
    if (decision === undefined) return 'wait'
    await this.#transaction.writeDecision(decision, record)
    const found = await this.#transaction.read()
    if (found === undefined) return undefined
    if (found.record.state !== 'voting') return found.record.state
    // No event follows a decision that a server has refused without a word on the outcome.
    await this.#pause()
    this.wakeTimer.wake()
    return 'wait'
  }

  /** Resolves on a change, or at the deadline. */
  wait(): Promise<void> {
    const record = this.#transactionState?.record
    return this.wakeTimer.wait(record === undefined ? 0 : this.#remainingMs(record))
  }

  close(): void {
    this.#stop.abort()
    this.wakeTimer.close()
    ignoreFailure(Promise.all([this.#votes.close(), this.#presence.close()]))
  }

  #remainingMs({ deadlineMs }: TransactionRecord): number {
    return this.#startedAt + deadlineMs - this.#transaction.client.platform.clock.monotonic()
  }

  #votesBySite(): Map<string, Vote> {
    const { path } = this.#transaction
    const votes = new Map<string, Vote>()
    for (const name of this.#votes.children(`${path}/votes`) ?? []) {
      const site = decodeName(name)
      const { value, stat } = this.#votes.get(`${path}/votes/${name}`)!
      const vote = voteOf(utf8.decode(value))
      // A decision checks this version: no site votes twice, so another client has written any later one.
      if (site !== undefined && vote !== undefined && stat.version === 1) votes.set(site, vote)
    }
    return votes
  }

  async #followVotes(): Promise<void> {
    for await (const event of this.#votes.events()) if (event.type !== 'added') this.wakeTimer.wake()
  }

  async #followSites(): Promise<void> {
    const prefix = `${this.#transaction.path}/alive/`
    for await (const event of this.#presence.events()) {
      if (event.type === 'removed' && event.path.startsWith(prefix)) {
        const name = event.path.slice(prefix.length)
        const site = name === COORDINATOR ? undefined : decodeName(name)
        if (site !== undefined) this.#lost.add(site)
      }
      this.wakeTimer.wake()
    }
  }

  async #followRecord(): Promise<void> {
    const { client, path } = this.#transaction
    for await (const found of watchData(client, path, { signal: this.#stop.signal })) {
      this.#transactionState = { record: found && decodeRecord(found.data) }
      this.wakeTimer.wake()
    }
  }
}

/** Waits until a timeout or until woken. */
class WakeTimer {
  readonly #client: Client
  #cancel = (): void => {}
  #called = false
  #resolve = (): void => {}

  constructor(client: Client) {
    this.#client = withoutTimeout(client)
  }

  wake(): void {
    this.#called = true
    this.#cancel()
    this.#resolve()
  }

  /** A timeout that has passed is ignored. */
  async wait(ms: number): Promise<void> {
    if (!this.#called) {
      await new Promise<void>((resolve) => {
        this.#resolve = resolve
        if (ms > 0) this.#cancel = this.#client.platform.clock.after(ms, 'deadline of a transaction', resolve)
      })
    }
    this.#called = false
  }

  close(): void {
    this.#cancel()
  }
}

function toBase64(data: Bytes): string {
  return btoa(Array.from(data, (byte) => String.fromCharCode(byte)).join(''))
}

export function fromBase64(text: string): Bytes {
  return Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0))
}
