import { abortedBy, utf8, UsageError, type Bytes, type Client } from '@zabra/client/core'
import { TreeCache } from '../tree-cache/tree-cache.ts'
import { AmbiguousResultError } from '../waiting/ambiguous.ts'
import { inBackground } from '../waiting/errors.ts'
import { uniqueName } from '../waiting/marked.ts'
import { decodeName } from '../waiting/names.ts'
import { COORDINATOR, decide, type Decision, type Record, type Vote } from './decide.ts'
import { decodeRecord, Transaction, voteOf } from './transaction.ts'

export interface TransactionRequest {
  /** Sites that all have to agree. */
  readonly participants: readonly string[]
  readonly payload: Bytes
  /** Milliseconds for the votes, by this client's clock from now, or by a successor's from when it takes over. */
  readonly deadlineMs: number
  /** Gives the transaction up, if it is not decided by then. */
  readonly signal?: AbortSignal
}

/**
 * Asks all participants for their votes and decides: committed if all agree in time, else aborted. One decision is made,
 * whoever makes it: when this client is gone a participant takes its place.
 */
export async function twoPhaseCommit(
  client: Client,
  path: string,
  request: TransactionRequest,
): Promise<Decision> {
  const { participants, payload, deadlineMs, signal } = request
  if (participants.length === 0 || new Set(participants).size < participants.length) {
    throw new UsageError('Expected participants that differ, and one at least', { path })
  }
  const transaction = new Transaction(client, `${path}/tx-${uniqueName(client)}`)
  const record: Record = { state: 'voting', participants, payload: toBase64(payload), deadlineMs }
  await transaction.create(record)
  const decision = await coordinate(transaction, { giveUp: signal })
  if (decision === undefined) {
    const message = 'The transaction was decided, applied and forgotten while this client was away'
    throw new AmbiguousResultError(message, { path: transaction.path })
  }
  inBackground(transaction.leave(record))
  return decision
}

interface CoordinateOptions {
  /** Aborts the transaction, unless it is decided. */
  readonly giveUp?: AbortSignal | undefined
  /** Leaves it to others. */
  readonly leave?: AbortSignal | undefined
}

/** Watches the votes until the transaction is decided, by this coordinator or another. Undefined when it is gone. */
export async function coordinate(
  transaction: Transaction,
  { giveUp, leave }: CoordinateOptions,
): Promise<Decision | undefined> {
  const { client, path } = transaction
  const wake = new Waker(client)
  const cache = new TreeCache(client, path)
  const startedAt = client.ports.clock.monotonic()
  const lost = new Set<string>()
  const follow = async (): Promise<void> => {
    for await (const event of cache.events()) {
      const gone = event.type === 'removed' ? siteBelow(`${path}/alive/`, event.path) : undefined
      if (gone !== undefined) lost.add(gone)
      wake.now()
    }
  }
  let ended = false
  const following = follow().finally(() => {
    ended = true
    wake.now()
  })
  following.catch(() => {})
  const call = (): void => wake.now()
  for (const signal of [giveUp, leave]) signal?.addEventListener('abort', call, { once: true })
  try {
    await cache.ready
    for (;;) {
      if (leave?.aborted) throw abortedBy(leave.reason, { operation: 'twoPhaseCommit', path })
      const decided = await step(transaction, cache, { lost, startedAt, givenUp: giveUp?.aborted ?? false })
      if (decided !== 'wait') return decided
      if (ended) await following.then(() => transaction.read())
      const entry = cache.get(path)
      const deadline = startedAt + (entry === undefined ? 0 : decodeRecord(entry.value).deadlineMs)
      await wake.wait(deadline - client.ports.clock.monotonic())
    }
  } finally {
    for (const signal of [giveUp, leave]) signal?.removeEventListener('abort', call)
    wake.close()
    inBackground(Promise.all([cache.close(), following]))
  }
}

async function step(
  transaction: Transaction,
  cache: TreeCache,
  { lost, startedAt, givenUp }: { lost: ReadonlySet<string>; startedAt: number; givenUp: boolean },
): Promise<Decision | 'wait' | undefined> {
  const { client, path } = transaction
  if (cache.stale) return 'wait'
  const entry = cache.get(path)
  if (entry === undefined) return undefined
  const record = decodeRecord(entry.value)
  if (record.state !== 'voting') return record.state
  const deadlinePassed = client.ports.clock.monotonic() >= startedAt + record.deadlineMs
  const votes = votesIn(cache, path)
  const decision = decide({ participants: record.participants, votes, lost, deadlinePassed, givenUp })
  if (decision === undefined) return 'wait'
  await transaction.announce(decision, record)
  const found = await transaction.read()
  if (found === undefined) return undefined
  return found.record.state === 'voting' ? 'wait' : found.record.state
}

function votesIn(cache: TreeCache, path: string): Map<string, Vote> {
  const votes = new Map<string, Vote>()
  for (const name of cache.children(`${path}/votes`) ?? []) {
    const site = decodeName(name)
    const vote = voteOf(utf8.decode(cache.get(`${path}/votes/${name}`)!.value))
    if (site !== undefined && vote !== undefined) votes.set(site, vote)
  }
  return votes
}

const siteBelow = (prefix: string, path: string): string | undefined =>
  path.startsWith(prefix) && path !== `${prefix}${COORDINATOR}`
    ? decodeName(path.slice(prefix.length))
    : undefined

/** Waits for a moment or a call. */
class Waker {
  readonly #client: Client
  #cancel = (): void => {}
  #called = false
  #resolve = (): void => {}

  constructor(client: Client) {
    this.#client = client
  }

  now(): void {
    this.#called = true
    this.#cancel()
    this.#resolve()
  }

  /** A moment that has passed already is none to wait for. */
  async wait(ms: number): Promise<void> {
    if (!this.#called) {
      await new Promise<void>((resolve) => {
        this.#resolve = resolve
        if (ms > 0) this.#cancel = this.#client.ports.clock.after(ms, 'deadline of a transaction', resolve)
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
