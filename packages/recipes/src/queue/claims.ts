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
import { AmbiguousResultError } from '../support/ambiguous-result.ts'
import {
  causeAt,
  isNewSession,
  isAmbiguous,
  undefinedIfMissing,
  retryInNewSession,
} from '../support/retry.ts'
import type { QueueEntry } from '../lock-queue/lock-queue.ts'
import { commitWithMarker, deleteMarker, type Committed } from '../support/commit-with-marker.ts'
import { Message } from './message.ts'
import type { QueueLayout } from './names.ts'
import type { ServerClock } from '../support/server-clock.ts'

export interface ClaimContext<T> {
  readonly client: Client
  readonly layout: QueueLayout
  readonly codec: Codec<T>
  readonly clock: ServerClock
  /** Deliveries after which an item counts as poison. */
  readonly deadLetterAfter: number | undefined
}

export interface ClaimOptions {
  readonly signal: AbortSignal | undefined
  /** Left together with the claim. */
  readonly head: QueueEntry | undefined
}

/** `gone`: somebody else was first, or the item is dead; `again`: the place in the line is lost, or the session over. */
export type ClaimFailure = 'gone' | 'again'

interface FoundItem<T> {
  readonly name: string
  readonly value: T
  readonly data: Bytes
  readonly version: number
  /** Tells it from another item of the same name: names begin anew when a server has removed the empty folder. */
  readonly czxid: bigint
}

/** Takes an item out of the queue for good, for one caller of all. */
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
    if (!(error instanceof AmbiguousResultError)) throw error
    // The session is over, so nothing of it is on its way any more: an item that is there was not taken.
    if (await retryInNewSession(client, () => isThere(client, path, found.czxid))) return 'again'
    const message = `The session ended before it could be told whether the item ${name} was taken by us or by somebody else`
    throw new AmbiguousResultError(message, { path, cause: error, value: found.value })
  }
}

/** Claims an item for as long as the session lasts, or until it is acknowledged or given back. */
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
    // Each delivery raises the version: it counts them, and only the newest claim can be acknowledged.
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

async function isThere(client: Client, path: string, czxid: bigint): Promise<boolean> {
  await client.sync(path)
  return (await client.exists(path))?.czxid === czxid
}

/** Makes the claim, does with the item what is to be done, and leaves the line, all at once. */
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
    if (isLostRace(error)) return 'gone'
    if (causeAt(error, 1) instanceof NoNodeError) return 'again'
    throw error
  }
}

const isLostRace = (error: unknown): boolean =>
  causeAt(error, -1) instanceof NodeExistsError ||
  causeAt(error, 0) instanceof NoNodeError ||
  causeAt(error, 0) instanceof BadVersionError

/** Undefined when it is gone, or was no good and has been put away. */
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
      // It will not be readable the next time either: whoever looks at the dead letters sees what it is.
    }
  }
  await moveToDeadLetters(context, { name, data, version: stat.version })
  return undefined
}

/** Moves an item that nobody is at work on to the dead letters. */
async function moveToDeadLetters<T>(
  { client, layout }: ClaimContext<T>,
  { name, data, version }: { readonly name: string; readonly data: Bytes; readonly version: number },
): Promise<void> {
  const claim = `${layout.claims}/${name}`
  const operations: WriteOp[] = [
    { op: 'create', path: claim, mode: 'ephemeral' },
    { op: 'create', path: `${layout.dead}/${name}`, data },
    { op: 'delete', path: `${layout.items}/${name}`, version },
    { op: 'delete', path: claim },
  ]
  for (;;) {
    try {
      return void (await client.multi(operations))
    } catch (error) {
      if (isAmbiguous(error) || isNewSession(client, error)) continue
      if (!(error instanceof MultiError)) throw error
      const noParent = error.cause instanceof NoNodeError && error.index < 2
      // Otherwise somebody else did it, or is at work on it.
      if (!noParent) return
      await client.mkdirp(layout.claims, { mode: layout.parents })
      await client.mkdirp(layout.dead, { mode: layout.parents })
    }
  }
}
