import { mapConcurrent } from './map-concurrent.ts'
import { toServerPath } from './chroot.ts'
import type { ZooKeeperClient } from './client.ts'
import { MultiError, NoNodeError, NotEmptyError, RecoverableError, UsageError } from './errors.ts'
import { backoff } from './retry.ts'
import type { DeleteTreeOptions } from './tree-types.ts'
import type { CallOptions } from './types.ts'
import { childPath, listChildren, perRequestOptions } from './walk.ts'

/** Rounds against somebody who goes on creating what is being deleted. */
const MAX_ROUNDS = 8
/** Znodes in one transaction, and the characters of their paths: a server takes about a megabyte. */
const DEFAULT_BATCH_SIZE = 500
const MAX_PATH_CHARS = 250_000
const RESERVED_PATH = '/zookeeper'

/**
 * Deletes a tree from its leaves up, many znodes in one transaction. What others create meanwhile goes too, and what
 * they delete is fine. Under `/` everything goes but what is reserved. Resolves to how many were deleted.
 */
export async function deleteTree(
  view: ZooKeeperClient,
  path: string,
  options: DeleteTreeOptions = {},
): Promise<number> {
  const { batchSize: batch = DEFAULT_BATCH_SIZE, onFound: found, onDeleted: told } = options
  if (!Number.isInteger(batch) || batch < 1) {
    throw new UsageError(`Expected a batch of 1 znode or more, got ${batch}`, { path, operation: 'delete' })
  }
  const call = perRequestOptions(view, options)
  let deleted = 0
  for (let round = 1; ; round++) {
    const paths = await listDeepestFirst(view, path, options, call, round === 1)
    found?.(deleted + paths.length)
    try {
      for (const part of splitIntoBatches(paths, batch)) {
        await deleteBatch(view, part, call, (count) => (deleted += count))
        told?.(deleted)
      }
      return deleted
    } catch (error) {
      // Somebody has created something meanwhile.
      if (!(unwrapMultiError(error) instanceof NotEmptyError) || round === MAX_ROUNDS)
        throw unwrapMultiError(error)
      await backoff(view, round)
    }
  }
}

/** The paths of a tree, the deepest first. Whole levels are listed at once, since nobody reads them in between. */
async function listDeepestFirst(
  view: ZooKeeperClient,
  path: string,
  { includeRoot: itself = true, onUnreadable: unreadable }: DeleteTreeOptions,
  call: () => CallOptions,
  isFirstRound: boolean,
): Promise<string[]> {
  const paths: string[] = []
  for (let level = [path]; level.length > 0;) {
    const next: string[] = []
    const isFirst = isFirstRound && level[0] === path
    let index = 0
    for await (const found of mapConcurrent(level, (at) =>
      listChildren(view, at, call(), isFirst, unreadable),
    )) {
      const at = level[index++]!
      if (found === undefined) continue
      paths.push(at)
      for (const name of found.children) {
        const child = childPath(at, name)
        if (toServerPath(view.chrootPath, child) !== RESERVED_PATH) next.push(child)
      }
    }
    level = next
  }
  if (paths[0] === path && (!itself || path === '/')) paths.shift()
  return paths.reverse()
}

/** Parts of so many paths at most, and of fewer where they are long. */
function* splitIntoBatches(paths: readonly string[], most: number): Generator<string[]> {
  let part: string[] = []
  let length = 0
  for (const path of paths) {
    if (part.length >= most || (part.length > 0 && length + path.length > MAX_PATH_CHARS)) {
      yield part
      part = []
      length = 0
    }
    part.push(path)
    length += path.length + 50
  }
  if (part.length > 0) yield part
}

/** `done` hears of what was deleted, also when not all of it could be. */
async function deleteBatch(
  view: ZooKeeperClient,
  paths: readonly string[],
  call: () => CallOptions,
  done: (count: number) => void,
): Promise<void> {
  if (paths.length > 1) {
    try {
      await view.multi(
        paths.map((path) => ({ op: 'delete' as const, path })),
        call(),
      )
      return done(paths.length)
    } catch (error) {
      // One of them is gone already, or nobody knows whether they are: one after the other, then.
      const isOpen = error instanceof RecoverableError && error.maybeApplied
      if (!isOpen && !(unwrapMultiError(error) instanceof NoNodeError)) throw error
    }
  }
  for await (const isDeleted of mapConcurrent(paths, (path) => deleteOne(view, path, call())))
    if (isDeleted) done(1)
}

async function deleteOne(view: ZooKeeperClient, path: string, call: CallOptions): Promise<boolean> {
  try {
    await view.delete(path, call)
    return true
  } catch (error) {
    if (error instanceof NoNodeError) return false
    throw error
  }
}

/** Of a transaction that failed, the error of the operation that is why. */
const unwrapMultiError = (error: unknown): unknown => (error instanceof MultiError ? error.cause : error)
