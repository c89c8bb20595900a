import type { Bytes, Client, Stat } from '@zabra/client/core'
import type { Abortable, WaitOptions } from '../handles/types.ts'
import { withLimits } from '../support/limits.ts'
import { untilAborted } from '../support/until-aborted.ts'
import { watchEach, watchUntil, type WatchingReader } from '../support/watch.ts'
import { abortable, checkArgument, checkRecipe, milliseconds, waiting } from '../support/checks.ts'

/**
 * Yields the data of a znode, then the newest data after each change; undefined while it does not exist.
 * Intermediate states are skipped when they change faster than the loop.
 */
export async function* watchData(
  client: Client,
  path: string,
  options: Abortable = {},
): AsyncGenerator<{ readonly data: Bytes; readonly stat: Stat } | undefined, void, undefined> {
  checkRecipe('watchData', client, path, options, abortable)
  const { signal } = options
  const mark = ({ czxid, mzxid }: Stat): string => `${czxid} ${mzxid}`
  const states = watchNewest(client, 'watchData', signal, path, (at) => at.data(path), mark)
  for await (const found of states) yield found && { data: found.data, stat: found.stat }
}

/** Yields the sorted child names of a znode in the same way. */
export async function* watchChildren(
  client: Client,
  path: string,
  options: Abortable = {},
): AsyncGenerator<readonly string[] | undefined, void, undefined> {
  checkRecipe('watchChildren', client, path, options, abortable)
  const { signal } = options
  const mark = ({ czxid, pzxid }: Stat): string => `${czxid} ${pzxid}`
  const states = watchNewest(client, 'watchChildren', signal, path, (at) => at.children(path), mark)
  for await (const found of states) yield found?.children.toSorted()
}

/** Yields what is read of a znode, again whenever its mark changes; undefined while it does not exist. */
async function* watchNewest<T extends { readonly stat: Stat }>(
  client: Client,
  operation: string,
  signal: AbortSignal | undefined,
  path: string,
  read: (at: WatchingReader) => Promise<T | undefined>,
  markOf: (stat: Stat) => string,
): AsyncGenerator<T | undefined, void, undefined> {
  let last: string | undefined
  const reader = async (at: WatchingReader): Promise<{ found: T | undefined } | undefined> => {
    const found = (await read(at)) ?? ((await at.exists(path)) ? await read(at) : undefined)
    const mark = found === undefined ? 'none' : markOf(found.stat)
    if (mark === last) return undefined
    last = mark
    return { found }
  }
  const rounds = watchEach(client, { signal, operation }, reader)
  for await (const { found } of untilAborted(signal, rounds)) yield found
}

/**
 * Resolves with the children of a znode once they have not changed for `settleMs`; for many members that
 * start one after another.
 */
export async function settledChildren(
  client: Client,
  path: string,
  settleMs: number,
  options: WaitOptions = {},
): Promise<readonly string[]> {
  checkRecipe('settledChildren', client, path, options, waiting)
  checkArgument('settledChildren', 'settleMs', settleMs, milliseconds)
  const { clock } = client.platform
  const operation = 'settledChildren'
  let last: { readonly pzxid: bigint; readonly at: number } | undefined
  const look = async (reader: WatchingReader): Promise<readonly string[] | undefined> => {
    const found =
      (await reader.children(path)) ?? ((await reader.exists(path)) && (await reader.children(path)))
    const pzxid = found?.stat.pzxid ?? -1n
    const now = clock.monotonic()
    if (last?.pzxid !== pzxid) last = { pzxid, at: now }
    const left = last.at + settleMs - now
    if (left <= 0) return found?.children.toSorted() ?? []
    reader.recheckAfter(left)
    return undefined
  }
  return withLimits(client, options, { operation, path }, (signal) =>
    watchUntil(client, { signal, operation }, look),
  )
}
