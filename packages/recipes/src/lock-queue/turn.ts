import {
  NoNodeError,
  SessionExpiredError,
  UsageError,
  type Client,
  type ErrorPolicy,
  type OneShotWatch,
} from '@zabra/client/core'
import { abortError } from '@zabra/client/recipe-kit'
import { LostError } from '../handles/lost.ts'
import { lossReason, sessionStatusOf } from '../handles/policy.ts'
import type { Abortable } from '../handles/types.ts'
import { orAborted } from '../support/limits.ts'
import { retryInNewSession } from '../support/retry.ts'
import { Notifier } from './notifier.ts'
import { turnStatusOf } from './contenders.ts'
import type { LockQueue, Listing, QueueEntry } from './lock-queue.ts'

/** A condition that is checked while waiting for a turn. */
export interface WaitGuard {
  /** Throws the error that ends the wait. */
  check(): void
}

export interface TurnOptions<T> extends Abortable {
  /** Name of the contender between its protection id and its sequence number. */
  readonly prefix: string
  readonly policy: ErrorPolicy
  /** Name of the waiting operation, for messages (default `acquire`). */
  readonly operation?: string | undefined
  /** Creates the handle, at the moment when the turn is known to be held. */
  readonly grant: (entry: QueueEntry, waitedMs: number) => T
  /** Creates the guard of a waiting entry; the guard calls `notify` to be checked. */
  readonly createGuard?: ((entry: QueueEntry, ring: () => void) => WaitGuard) | undefined
  /** Called when an entry no longer waits, for any reason. */
  readonly onWaitEnd?: ((entry: QueueEntry) => void) | undefined
}

/**
 * Waits in the queue for this contender's turn. Every wake-up only means to read again. Removes its entry on
 * failure. With `entry`, uses that entry instead of a new one if it still exists.
 */
export async function acquireTurn<T>(
  queue: LockQueue,
  options: TurnOptions<T>,
  entry?: QueueEntry,
): Promise<T> {
  const { signal } = options
  const startedAt = queue.client.platform.clock.monotonic()
  for (let own = entry; ; own = undefined) {
    try {
      if (own === undefined) throwIfAborted(signal, queue.directory, options.operation)
      const granted = await attemptTurn(queue, options, own, startedAt)
      // Without a handle the entry went with its session, or with the whole directory.
      if (granted !== undefined) return granted.handle
    } catch (error) {
      if (!(error instanceof SessionExpiredError)) throw error
      if (!(await waitForNewSession(queue, options))) throw error
    }
  }
}

/**
 * Takes the turn only if there is nothing to wait for; else removes its entry and returns undefined. A connection or a session that
 * was lost meanwhile is nothing to wait for.
 */
export const tryAcquireTurn = <T>(
  queue: LockQueue,
  options: TurnOptions<T>,
  isFree: (names: readonly string[]) => boolean,
): Promise<T | undefined> => retryInNewSession(queue.client, () => attemptFreeTurn(queue, options, isFree))

async function attemptFreeTurn<T>(
  queue: LockQueue,
  options: TurnOptions<T>,
  isFree: (names: readonly string[]) => boolean,
): Promise<T | undefined> {
  const { signal, prefix } = options
  throwIfAborted(signal, queue.directory)
  // A read does not disturb other contenders; a znode would.
  const before = await queue.list({ signal })
  if (before !== undefined && !isFree(before.names)) return undefined
  const { entry, listing } = await queue.enqueue(prefix, signal)
  let turn
  try {
    const { names } = listing ?? (await queue.list({ signal })) ?? { names: [] }
    turn = turnStatusOf(names, entry.name, queue.parse).turn
    if (turn === 'now') {
      await renewLease(queue.client, options.policy, signal)
      if (canGrant(queue.client, entry, options.policy)) return options.grant(entry, 0)
    }
  } catch (error) {
    queue.removeInBackground(entry)
    throw error
  }
  // Goes on when the caller has given up.
  await orAborted(queue.remove(entry), signal, { operation: 'acquire', path: entry.path })
  return turn === 'now' || queue.client.session.id !== entry.owner
    ? attemptFreeTurn(queue, options, isFree)
    : undefined
}

async function attemptTurn<T>(
  queue: LockQueue,
  options: TurnOptions<T>,
  own: QueueEntry | undefined,
  startedAt: number,
): Promise<{ handle: T } | undefined> {
  const entered = own === undefined ? await queue.enqueue(options.prefix, options.signal) : { entry: own }
  const { entry, listing } = { listing: undefined, ...entered }
  const notifier = new Notifier(queue.client, options.signal)
  const predecessor = new Predecessor(queue, notifier)
  try {
    const guard = options.createGuard?.(entry, notifier.notify)
    const granted = await waitForTurn(
      { queue, options, entry, notifier, predecessor, guard, startedAt },
      listing,
    )
    if (granted === undefined) queue.removeInBackground(entry)
    return granted
  } catch (error) {
    queue.removeInBackground(entry)
    throw error
  } finally {
    notifier.close()
    predecessor.unwatch()
    options.onWaitEnd?.(entry)
  }
}

interface Wait<T> {
  readonly queue: LockQueue
  readonly options: TurnOptions<T>
  readonly entry: QueueEntry
  readonly notifier: Notifier
  readonly predecessor: Predecessor
  readonly guard: WaitGuard | undefined
  readonly startedAt: number
}

/**
 * Reads and waits in turns. Returns undefined when the entry was lost without a deletion by another client, so
 * that a new one may be created.
 */
async function waitForTurn<T>(wait: Wait<T>, first: Listing | undefined): Promise<{ handle: T } | undefined> {
  const { queue, options, entry, notifier, predecessor, guard } = wait
  const { client } = queue
  const { signal, policy } = options
  let directory = first?.directoryCzxid
  for (let listing = first; ; listing = undefined) {
    throwIfAborted(signal, entry.path, options.operation)
    guard?.check()
    if (client.session.id !== entry.owner) return undefined
    listing ??= await queue.list({ signal })
    if (listing === undefined) return undefined
    directory ??= listing.directoryCzxid
    const status = turnStatusOf(listing.names, entry.name, queue.parse)
    if (status.turn === 'missing') {
      if (client.session.id !== entry.owner || listing.directoryCzxid !== directory) return undefined
      throw entryDeleted(entry)
    }
    if (status.turn === 'behind') {
      if (await predecessor.watch(status.name, signal)) await notifier.wait()
      continue
    }
    await renewLease(client, policy, signal)
    throwIfAborted(signal, entry.path, options.operation)
    guard?.check()
    if (canGrant(client, entry, policy)) {
      return { handle: options.grant(entry, client.platform.clock.monotonic() - wait.startedAt) }
    }
    if (client.state !== 'connected') await notifier.wait()
  }
}

/** The watch on the predecessor, kept over wake-ups that do not concern it. */
class Predecessor {
  readonly #queue: LockQueue
  readonly #notifier: Notifier
  #name: string | undefined
  #watch: OneShotWatch | undefined

  constructor(queue: LockQueue, notifier: Notifier) {
    this.#queue = queue
    this.#notifier = notifier
  }

  /** Returns false when the predecessor is gone. The watch is set by a read, which sets none on a missing znode. */
  async watch(name: string, signal: AbortSignal | undefined): Promise<boolean> {
    if (this.#name === name) return true
    this.unwatch()
    try {
      const path = this.#queue.pathOf(name)
      const watch = await this.#queue.client.watchOnce(path, 'data', signal === undefined ? {} : { signal })
      this.#name = name
      this.#watch = watch
      const onFired = (): void => {
        if (this.#watch === watch) this.#name = this.#watch = undefined
        this.#notifier.notify()
      }
      watch.fired.then(onFired, onFired)
      return true
    } catch (error) {
      if (error instanceof NoNodeError) return false
      throw error
    }
  }

  /** Closes the watch. */
  unwatch(): void {
    const watch = this.#watch
    this.#name = this.#watch = undefined
    void watch?.close()
  }
}

/**
 * Returns whether the lock may be granted. Nothing is granted while disconnected, even if the policy would let a
 * holder keep its lock.
 */
export const canGrant = (client: Client, { owner }: QueueEntry, policy: ErrorPolicy): boolean =>
  client.state === 'connected' && lossReason(policy, sessionStatusOf(client, owner)) === undefined

/** Renews a lease that ran out while waiting, before a lock is granted on it. */
async function renewLease(
  client: Client,
  policy: ErrorPolicy,
  signal: AbortSignal | undefined,
): Promise<void> {
  const now = (): number => client.platform.clock.monotonic()
  if (typeof policy !== 'object' || now() < client.leaseHorizon) return
  await client.syncCommitted(signal === undefined ? {} : { signal })
  if (client.state === 'connected' && now() >= client.leaseHorizon) {
    throw new UsageError(
      `Expected a lease margin below the session timeout of ${client.session.timeoutMs} ms`,
    )
  }
}

/** Waits for the session that follows an expired one. Returns false when there is none. */
async function waitForNewSession(
  { client, directory }: LockQueue,
  { signal, operation }: Pick<TurnOptions<unknown>, 'signal' | 'operation'>,
): Promise<boolean> {
  const notifier = new Notifier(client, signal)
  try {
    while (!signal?.aborted && !notifier.isClientFinished && client.state !== 'connected')
      await notifier.wait()
    throwIfAborted(signal, directory, operation)
    return client.state === 'connected'
  } finally {
    notifier.close()
  }
}

export function throwIfAborted(signal: AbortSignal | undefined, path: string, operation = 'acquire'): void {
  if (signal?.aborted) throw abortError(signal.reason, { path, operation })
}

/** Returns the error for a waiting znode that another client deleted. */
export const entryDeleted = ({ path, token }: QueueEntry): LostError =>
  new LostError(`The queue entry ${path} was deleted`, 'nodeDeleted', token, path)
