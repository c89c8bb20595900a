import {
  BadVersionError,
  MultiError,
  NodeExistsError,
  NoNodeError,
  type Bytes,
  type Client,
  type Codec,
  type WriteOp,
} from '@zabra/client/core'
import { AmbiguousResultError, endOf } from '../support/ambiguous-result.ts'
import {
  causeAt,
  isNewSession,
  isAmbiguous,
  pauses,
  undefinedIfMissing,
  retryInNewSession,
} from '../support/retry.ts'
import type { QueueEntry } from '../lock-queue/lock-queue.ts'
import { commitWithMarker, deleteMarker, uniqueName, type Committed } from '../support/commit-with-marker.ts'
import { Message } from './message.ts'
import type { QueueLayout } from './names.ts'
import type { ServerClock } from '../support/server-clock.ts'

export interface ClaimContext<T> {
  readonly client: Client
  readonly layout: QueueLayout
  readonly codec: Codec<T>
  readonly clock: ServerClock
  /** Number of deliveries after which an item moves to the dead letters. */
  readonly deadLetterAfter: number | undefined
}

export interface ClaimOptions {
  readonly signal: AbortSignal | undefined
  /** The caller's entry at the head of the queue, removed in the same transaction. */
  readonly head: QueueEntry | undefined
}

/**
 * `gone`: another consumer was first, or the item moved to the dead letters. `again`: the queue entry or the
 * session was lost.
 */
export type ClaimFailure = 'gone' | 'again'

interface FoundItem<T> {
  readonly name: string
  readonly value: T
  readonly data: Bytes
  readonly version: number
  /**
   * Distinguishes items with the same name: sequence numbers restart after a server has removed the empty
   * directory.
   */
  readonly czxid: bigint
}

/** Removes an item from the queue; at most one caller succeeds. */
export async function take<T>(
  context: ClaimContext<T>,
  name: string,
  options: ClaimOptions,
): Promise<{ readonly value: T } | ClaimFailure> {
  const { client, layout } = context
  const found = await read(context, name, options.signal)
  if (found === undefined) return 'gone'
  const path = `${layout.items}/${name}`
  try {
    const claimed = await claim(context, name, { op: 'delete', path, version: found.version }, options, false)
    if (typeof claimed === 'string') return claimed
    deleteMarker(client, `${layout.claims}/${name}`)
    return { value: found.value }
  } catch (error) {
    // An abort ended another request, for the folder of the claims.
    const isInDoubt =
      error instanceof AmbiguousResultError || (isAmbiguous(error) && !options.signal?.aborted)
    if (!isInDoubt) throw error
    // The check comes after a sync, so nothing that was sent can still be applied: an item that exists was not taken.
    const check = retryInNewSession(client, () => isThere(client, path, found.czxid, options.signal))
    if (await check.catch(() => false)) return 'again'
    const message = `${endOf(error)}, and it is unknown whether this client or another one took the item ${name}`
    throw new AmbiguousResultError(message, { path, cause: error, value: found.value })
  }
}

/** Claims an item until it is acknowledged or returned, or until the session ends. */
export async function receive<T>(
  context: ClaimContext<T>,
  name: string,
  options: ClaimOptions,
): Promise<Message<T> | ClaimFailure> {
  const { client, layout } = context
  const found = await read(context, name, options.signal)
  if (found === undefined) return 'gone'
  const path = `${layout.items}/${name}`
  try {
    // Each delivery increments the version, which counts deliveries; only the newest claim can be acknowledged.
    const count: WriteOp = { op: 'setData', path, data: found.data, version: found.version }
    const claimed = await claim(context, name, count, options, true)
    if (typeof claimed === 'string') return claimed
    if (claimed.marker?.ephemeralOwner !== client.session.id) return 'again'
    const at = { item: path, claim: `${layout.claims}/${name}`, version: found.version + 1 }
    return new Message(client, found.value, at, claimed.marker)
  } catch (error) {
    if (error instanceof AmbiguousResultError) return 'again'
    throw error
  }
}

async function isThere(
  client: Client,
  path: string,
  czxid: bigint,
  signal: AbortSignal | undefined,
): Promise<boolean> {
  await client.sync(path, { signal })
  return (await client.exists(path, { signal }))?.czxid === czxid
}

/** Creates the claim, applies the operation to the item and removes the queue entry in one transaction. */
async function claim<T>(
  { client, layout, clock }: ClaimContext<T>,
  name: string,
  operation: WriteOp,
  { signal, head }: ClaimOptions,
  needsMarkerStat: boolean,
): Promise<Committed<unknown> | ClaimFailure> {
  const marker = `${layout.claims}/${name}`
  const operations: WriteOp[] = head ? [operation, { op: 'delete', path: head.path }] : [operation]
  const sentAt = client.platform.clock.monotonic()
  try {
    const committed = await commitWithMarker(client, marker, operations, {
      signal,
      parents: layout.parents,
      needsMarkerStat,
    })
    if (committed.results !== undefined && committed.marker !== undefined)
      clock.observe(committed.marker.ctime, sentAt)
    return committed
  } catch (error) {
    if (isLostRace(error, { claim: -1, item: 0 })) return 'gone'
    if (causeAt(error, 1) instanceof NoNodeError) return 'again'
    throw error
  }
}

/** Returns whether another client has claimed or changed the item, given the operations on the claim and on the item. */
const isLostRace = (error: unknown, { claim, item }: { claim: number; item: number }): boolean =>
  causeAt(error, claim) instanceof NodeExistsError ||
  causeAt(error, item) instanceof NoNodeError ||
  causeAt(error, item) instanceof BadVersionError

/** Reads an item. Returns undefined when it is gone, or was moved to the dead letters. */
async function read<T>(
  context: ClaimContext<T>,
  name: string,
  signal: AbortSignal | undefined,
): Promise<FoundItem<T> | undefined> {
  const { client, layout, codec, deadLetterAfter = Infinity } = context
  const found = await undefinedIfMissing(client.getData(`${layout.items}/${name}`, signal ? { signal } : {}))
  if (found === undefined) return undefined
  const { data, stat } = found
  if (stat.version < deadLetterAfter) {
    try {
      return { name, value: codec.decode(data), data, version: stat.version, czxid: stat.czxid }
    } catch {
      // A later read would fail the same way; the dead letters show the data.
    }
  }
  await moveToDeadLetters(context, { name, data, version: stat.version }, signal)
  return undefined
}

/** Moves an unclaimed item to the dead letters. Rejects when the servers refuse that: the item would come again at once. */
async function moveToDeadLetters<T>(
  { client, layout }: ClaimContext<T>,
  { name, data, version }: { readonly name: string; readonly data: Bytes; readonly version: number },
  signal: AbortSignal | undefined,
): Promise<void> {
  const claim = `${layout.claims}/${name}`
  const pause = pauses(client, signal)
  for (let letter = name; ;) {
    const operations: WriteOp[] = [
      { op: 'create', path: claim, mode: 'ephemeral' },
      { op: 'create', path: `${layout.dead}/${letter}`, data },
      { op: 'delete', path: `${layout.items}/${name}`, version },
      { op: 'delete', path: claim },
    ]
    try {
      return void (await client.multi(operations, { signal }))
    } catch (error) {
      if (isAmbiguous(error) || isNewSession(client, error)) {
        await pause()
        continue
      }
      if (!(error instanceof MultiError)) throw error
      const { index, cause } = error
      if (index < 2 && cause instanceof NoNodeError)
        await client.createMissing(
          [layout.claims, layout.dead].map((path) => ({ path, mode: layout.parents })),
          { signal },
        )
      // Names of items begin anew after their directory was deleted.
      else if (index === 1 && cause instanceof NodeExistsError) letter = `${name}-${uniqueName(client)}`
      else if (isLostRace(error, { claim: 0, item: 2 })) return
      else throw cause
    }
  }
}
