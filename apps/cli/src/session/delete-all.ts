import { ErrorCode } from '@zabra/protocol'
import { isCode } from '../exit-codes.ts'
import { mapAhead, walk } from './walk.ts'
import type { ZooKeeper } from './zookeeper.ts'

/** Who hears of the deletion, and what bounds it. */
export interface DeleteAllOptions {
  readonly signal: AbortSignal
  /** Nodes in one transaction. */
  readonly batch: number
  /** False keeps the node itself. */
  readonly itself: boolean
  /** Hears of nodes whose children may not be listed; they are deleted all the same if they have none. */
  readonly unreadable?: (path: string) => void
  readonly found?: (nodes: number) => void
  readonly deleted?: (nodes: number) => void
}

/** Rounds in which others may go on creating nodes before it is given up. */
const ROUNDS = 10
/** Characters of paths in one transaction. */
const LONGEST = 250_000

/**
 * Deletes a node with all that is below it, children first, many in one transaction. Nodes that others create meanwhile
 * go too, those that others delete are fine. Resolves to how many were deleted.
 */
export async function deleteAll(zk: ZooKeeper, root: string, options: DeleteAllOptions): Promise<number> {
  let deleted = 0
  for (let round = 1; ; round++) {
    const paths: string[] = []
    const unreadable = options.unreadable ?? (() => {})
    for await (const { path } of walk(zk, root, { signal: options.signal, unreadable })) paths.push(path)
    if (!options.itself) paths.shift()
    options.found?.(deleted + paths.length)
    paths.reverse()
    let isGrowing = false
    for (const part of parts(paths, options.batch)) {
      options.signal.throwIfAborted()
      try {
        deleted += await deletePart(zk, part)
      } catch (error) {
        if (!isCode(error, ErrorCode.NOTEMPTY) || round === ROUNDS) throw error
        isGrowing = true
        break
      }
      options.deleted?.(deleted)
    }
    if (!isGrowing) return deleted
  }
}

/** Parts of so many paths at most, and of fewer where they are long: a server takes about a megabyte at once. */
function* parts(paths: readonly string[], most: number): Generator<string[]> {
  let part: string[] = []
  let length = 0
  for (const path of paths) {
    if (part.length >= most || length + path.length > LONGEST) {
      yield part
      part = []
      length = 0
    }
    part.push(path)
    length += path.length + 50
  }
  if (part.length > 0) yield part
}

async function deletePart(zk: ZooKeeper, paths: readonly string[]): Promise<number> {
  try {
    await zk.multi(paths.map((path) => ({ op: 'delete', path })))
    return paths.length
  } catch (error) {
    if (!isCode(error, ErrorCode.NONODE)) throw error
  }
  // One of them is gone already, so the transaction was not carried out: one after the other, then.
  let deleted = 0
  for await (const isDeleted of mapAhead(paths, (path) => deleteOne(zk, path))) if (isDeleted) deleted++
  return deleted
}

async function deleteOne(zk: ZooKeeper, path: string): Promise<boolean> {
  try {
    await zk.delete(path)
    return true
  } catch (error) {
    if (isCode(error, ErrorCode.NONODE)) return false
    throw error
  }
}
