import {
  BadVersionError,
  MultiError,
  NoAuthError,
  NodeExistsError,
  NoNodeError,
  ZooKeeperError,
  type Bytes,
  type CallOptions,
  type Client,
} from '@zabra/client/core'
import { waitForConnection } from '../handles/own-node-watcher.ts'
import type { RecipeOptions } from '../handles/types.ts'
import { throwIfAborted } from '../lock-queue/turn.ts'
import { pauses, undefinedIfMissing } from '../support/retry.ts'

/** The leader as observers see it. */
export interface Leader {
  readonly id: string
  /** The fencing token of the leadership. */
  readonly token: bigint
}

export const encodeLeader = ({ id, token }: Leader): Bytes =>
  new TextEncoder().encode(JSON.stringify({ id, token: String(token) }))

/** Returns undefined for data of another format. */
export function decodeLeader(data: Bytes): Leader | undefined {
  try {
    const value = JSON.parse(new TextDecoder().decode(data)) as Record<string, unknown> | null
    const { id, token } = value ?? {}
    if (typeof id === 'string' && typeof token === 'string') return { id, token: BigInt(token) }
  } catch (error) {
    if (!(error instanceof SyntaxError)) throw error
  }
  return undefined
}

export function isAnnouncementOf(data: Bytes, { id, token }: Leader): boolean {
  const found = decodeLeader(data)
  return found?.id === id && found.token === token
}

/**
 * Writes the leader's announcement in a transaction that checks the leader's znode. Replaces the announcement of
 * an earlier leader. Rejects with a `NoNodeError` when the leader's znode is gone, and with the error of the servers when
 * they refuse the announcement. Once the signal has aborted, no request follows that could write it after its removal.
 */
export async function announce(
  client: Client,
  path: string,
  own: string,
  leader: Leader,
  { acl, signal }: RecipeOptions & { readonly signal: AbortSignal },
): Promise<void> {
  const data = encodeLeader(leader)
  const check = { op: 'check', path: own } as const
  const create = {
    op: 'create',
    path,
    data,
    mode: 'ephemeral',
    ...(acl === undefined ? {} : { acl }),
  } as const
  let mayMark = true
  const pause = pauses(client, signal)
  for (let stale: number | undefined; ;) {
    const drop = stale === undefined ? [] : [{ op: 'delete', path, version: stale } as const]
    // The version differs from the one before, so that its leader cannot remove this one in its place.
    const mark = stale === 0 && mayMark ? [{ op: 'setData', path, data } as const] : []
    try {
      await client.unordered().multi([check, ...drop, create, ...mark])
      return
    } catch (error) {
      const lost = ZooKeeperError.is(error) && error.retryable && error.maybeApplied
      const cause = error instanceof MultiError ? error.cause : error
      // Its own ACL may keep the leader from writing an announcement that it may create.
      const isUnmarked =
        cause instanceof NoAuthError && error instanceof MultiError && error.index === drop.length + 2
      if (isUnmarked) {
        mayMark = false
        continue
      }
      if (!lost && !(error instanceof MultiError && error.index > 0 && hasChanged(cause))) throw cause
      const exists = lost || cause instanceof NodeExistsError
      const found = exists ? await readAnnouncementOf(client, path, leader.token) : undefined
      // Another client may have written over it another identifier with the same token.
      if (found?.isOwn && isAnnouncementOf(found.data, leader)) return
      stale = found?.version
      await pause()
      throwIfAborted(signal, path, 'announce')
    }
  }
}

/** Returns whether the announcement has changed since it was read: any other error would come again. */
const hasChanged = (cause: unknown): boolean =>
  cause instanceof NodeExistsError || cause instanceof NoNodeError || cause instanceof BadVersionError

/**
 * Deletes the announcement and the queue entry in one transaction: no other client can announce itself while the
 * entry exists. Returns what is left: nothing, the entry when no announcement could be deleted, or perhaps the announcement when
 * another client has deleted the entry.
 */
export async function withdrawAnnouncement(
  client: Client,
  path: string,
  own: string,
): Promise<'nothing' | 'entry' | 'announcement'> {
  const pause = pauses(client)
  for (;;) {
    try {
      await client.unordered().multi(
        [
          { op: 'delete', path: own },
          { op: 'delete', path },
        ],
        { retry: {} },
      )
      return 'nothing'
    } catch (error) {
      // An announcement that cannot be deleted must not keep the entry in the queue.
      if (error instanceof MultiError && error.index > 0) return 'entry'
      // Perhaps an earlier attempt deleted both.
      if (error instanceof MultiError && error.cause instanceof NoNodeError) return 'announcement'
      if (!ZooKeeperError.is(error) || !error.retryable) throw error
      await pause()
      await waitForConnection(client)
    }
  }
}

/**
 * Removes the announcement of a leader whose queue entry another client has deleted, while a contender that need not announce
 * itself is the head of the queue: `head` is its znode. Returns false when that contender has left meanwhile.
 *
 * Only the head may replace the announcement, once, by one with another version: none but the own one is removed. Where its ACL forbids
 * the write that changes the version, that of the head may be removed as well, which the head then writes again.
 */
export async function removeAnnouncement(
  client: Client,
  path: string,
  head: string,
  token: bigint,
): Promise<boolean> {
  const pause = pauses(client)
  for (;;) {
    try {
      await client.sync(path)
      const found = await readAnnouncementOf(client, path, token)
      if (!found?.isOwn) return true
      const operations = [
        { op: 'check', path: head } as const,
        { op: 'delete', path, version: found.version } as const,
      ]
      // No automatic retry: another announcement may have the same version by then.
      await client.unordered().multi(operations, { retry: false })
      return true
    } catch (error) {
      const cause = error instanceof MultiError ? error.cause : error
      if (error instanceof MultiError && error.index === 0 && cause instanceof NoNodeError) return false
      if (error instanceof MultiError && hasChanged(cause)) continue
      if (!ZooKeeperError.is(cause) || !cause.retryable) throw cause
      await pause()
      await waitForConnection(client)
    }
  }
}

/** Returns the announcement, and whether it is that of the leadership with this token; undefined if there is none. */
export async function readAnnouncementOf(
  client: Client,
  path: string,
  token: bigint,
  options?: CallOptions,
): Promise<{ readonly data: Bytes; readonly version: number; readonly isOwn: boolean } | undefined> {
  const found = await undefinedIfMissing(client.getData(path, options))
  if (found === undefined) return undefined
  const { data, stat } = found
  const isOwn = stat.ephemeralOwner === client.session.id && decodeLeader(data)?.token === token
  return { data, version: stat.version, isOwn }
}
