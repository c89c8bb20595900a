import type { Bytes, Client, Stat } from '@zabra/client/core'
import { watchEach, watchUntil, type WatchingReader } from '../support/watch.ts'

export interface WatcherOptions {
  /** Ends the loop with an `AbortError`. */
  readonly signal?: AbortSignal
}

/**
 * Yields the data of a znode, then the newest data after each change; undefined while it does not exist.
 * Intermediate states are skipped when they change faster than the loop.
 */
export async function* watchData(
  client: Client,
  path: string,
  { signal }: WatcherOptions = {},
): AsyncGenerator<{ readonly data: Bytes; readonly stat: Stat } | undefined, void, undefined> {
  let last: string | undefined
  const reader = async (
    at: WatchingReader,
  ): Promise<{ found: { data: Bytes; stat: Stat } | undefined } | undefined> => {
    const found = (await at.data(path)) ?? ((await at.exists(path)) && (await at.data(path)))
    const mark = found === undefined ? 'none' : `${found.stat.czxid} ${found.stat.mzxid}`
    if (mark === last) return undefined
    last = mark
    return { found: found && { data: found.data, stat: found.stat } }
  }
  for await (const { found } of watchEach(client, { signal, operation: 'watchData' }, reader)) yield found
}

/** Yields the sorted child names of a znode in the same way. */
export async function* watchChildren(
  client: Client,
  path: string,
  { signal }: WatcherOptions = {},
): AsyncGenerator<readonly string[] | undefined, void, undefined> {
  let last: string | undefined
  const reader = async (
    at: WatchingReader,
  ): Promise<{ names: readonly string[] | undefined } | undefined> => {
    const found = (await at.children(path)) ?? ((await at.exists(path)) && (await at.children(path)))
    const mark = found === undefined ? 'none' : `${found.stat.czxid} ${found.stat.pzxid}`
    if (mark === last) return undefined
    last = mark
    return { names: found?.children.toSorted() }
  }
  for await (const { names } of watchEach(client, { signal, operation: 'watchChildren' }, reader)) yield names
}

/**
 * Resolves with the children of a znode once they have not changed for `ms` milliseconds; for many members that
 * start one after another.
 */
export function settledChildren(
  client: Client,
  path: string,
  ms: number,
  { signal }: WatcherOptions = {},
): Promise<readonly string[]> {
  const { clock } = client.platform
  let last: { readonly pzxid: bigint; readonly at: number } | undefined
  return watchUntil(client, { signal, operation: 'settledChildren' }, async (reader) => {
    const found =
      (await reader.children(path)) ?? ((await reader.exists(path)) && (await reader.children(path)))
    const pzxid = found?.stat.pzxid ?? -1n
    const now = clock.monotonic()
    if (last?.pzxid !== pzxid) last = { pzxid, at: now }
    const left = last.at + ms - now
    if (left <= 0) return found?.children.toSorted() ?? []
    reader.recheckAfter(left)
    return undefined
  })
}
