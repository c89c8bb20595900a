import { childPath } from '@zabra/protocol'
import { mapInOrder } from './map-in-order.ts'
import { remainingCallOptions } from './call-options.ts'
import { isReserved, type InternalClient } from './internal-client.ts'
import { MultiError, NoNodeError, NotEmptyError, ZooKeeperError } from './errors.ts'
import { backoff } from './retry.ts'
import type { RecursiveDeleteOptions } from './tree-types.ts'
import type { CallOptions } from './types.ts'
import { listChildren, perRequestOptions } from './walk.ts'

/** Rounds before giving up when another client keeps creating children. */
const MAX_ROUNDS = 8
/**
 * Znodes in one transaction, and the total length of their paths in characters: a server accepts requests of about 1
 * MB.
 */
const DEFAULT_BATCH_SIZE = 500
const MAX_PATH_CHARS = 250_000

/**
 * Deletes a tree from its leaves up, many znodes in one transaction. Also deletes what other clients create
 * meanwhile, and ignores what they delete. At `/` it leaves the reserved znodes. Resolves to the number of znodes
 * deleted.
 */
export async function deleteTree(
  client: InternalClient,
  path: string,
  options: Omit<RecursiveDeleteOptions, 'recursive'>,
): Promise<number> {
  const { batchSize = DEFAULT_BATCH_SIZE, onFound, onDeleted } = options
  const call = perRequestOptions(client, options)
  const remaining = remainingCallOptions(options, client.platform.clock)
  let deleted = 0
  for (let round = 1; ; round++) {
    const paths = await listDeepestFirst(client, path, options, call, round === 1)
    // The rejection of an async callback ends the call, as an error does.
    await (onFound?.(deleted + paths.length) as unknown)
    try {
      for (const batch of splitIntoBatches(paths, batchSize)) {
        await deleteBatch(client, batch, call, (count) => (deleted += count))
        await (onDeleted?.(deleted) as unknown)
      }
      return deleted
    } catch (error) {
      // Another client has created a child meanwhile.
      if (!(unwrapMultiError(error) instanceof NotEmptyError) || round === MAX_ROUNDS)
        throw unwrapMultiError(error)
      await backoff(client, round, remaining())
    }
  }
}

/**
 * Returns the paths of a tree, deepest first. Lists a whole level concurrently, since no consumer reads between
 * requests.
 */
async function listDeepestFirst(
  client: InternalClient,
  path: string,
  { includeRoot = true, onUnreadable }: Omit<RecursiveDeleteOptions, 'recursive'>,
  call: () => CallOptions,
  isFirstRound: boolean,
): Promise<string[]> {
  const paths: string[] = []
  for (let level = [path]; level.length > 0;) {
    const next: string[] = []
    const isStart = isFirstRound && level[0] === path
    let index = 0
    for await (const listing of mapInOrder(level, (at) =>
      listChildren(client, at, call(), isStart, onUnreadable),
    )) {
      const at = level[index++]!
      if (listing === undefined) continue
      paths.push(at)
      for (const name of listing.children) {
        const child = childPath(at, name)
        if (!isReserved(client, child)) next.push(child)
      }
    }
    level = next
  }
  if (paths[0] === path && (!includeRoot || path === '/')) paths.shift()
  return paths.reverse()
}

/** Splits paths into batches of at most `maxPaths` paths, fewer where the paths are long. */
function* splitIntoBatches(paths: readonly string[], maxPaths: number): Generator<string[]> {
  let batch: string[] = []
  let length = 0
  for (const path of paths) {
    if (batch.length >= maxPaths || (batch.length > 0 && length + path.length > MAX_PATH_CHARS)) {
      yield batch
      batch = []
      length = 0
    }
    batch.push(path)
    length += path.length + 50
  }
  if (batch.length > 0) yield batch
}

/** Deletes one batch. Calls `onDeleted` with the number of znodes deleted, also when some could not be. */
async function deleteBatch(
  client: InternalClient,
  paths: readonly string[],
  call: () => CallOptions,
  onDeleted: (count: number) => void,
): Promise<void> {
  if (paths.length > 1) {
    try {
      await client.multi(
        paths.map((path) => ({ op: 'delete' as const, path })),
        call(),
      )
      return onDeleted(paths.length)
    } catch (error) {
      // One of them is gone already, or the outcome of the transaction is unknown: delete them one by one.
      const isOutcomeUnknown = ZooKeeperError.is(error) && error.retryable && error.maybeApplied
      if (!isOutcomeUnknown && !(unwrapMultiError(error) instanceof NoNodeError)) throw error
    }
  }
  for await (const isDeleted of mapInOrder(paths, (path) => deleteOne(client, path, call())))
    if (isDeleted) onDeleted(1)
}

async function deleteOne(client: InternalClient, path: string, call: CallOptions): Promise<boolean> {
  try {
    await client.delete(path, call)
    return true
  } catch (error) {
    if (error instanceof NoNodeError) return false
    throw error
  }
}

/** Returns the error of the operation that made a multi fail. */
const unwrapMultiError = (error: unknown): unknown => (error instanceof MultiError ? error.cause : error)
