import type { Bytes, Client, Stat } from '@zabra/client/core'
import { watchEach, watchUntil, type WatchingReader } from '../support/watch.ts'

export interface WatcherOptions {
  /** Ends the loop with an `AbortError`. */
  readonly signal?: AbortSignal
}

/**
 * What a znode holds: at once, and then the newest whenever it has changed; undefined while it does not exist. States in
 * between are skipped when they pass faster than the loop.
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

/** The same for the names of the children of a znode, sorted. */
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

/** The children of a znode once they have stayed as they are for so long; for crowds that come one by one. */
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
