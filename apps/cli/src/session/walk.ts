import { ErrorCode } from '@zabra/protocol'
import { isCode } from '../exit-codes.ts'
import type { Stat, ZooKeeper } from './zookeeper.ts'

/** A node that was met on a walk. */
export interface Visit {
  readonly path: string
  /** Undefined for a node that may not be read. */
  readonly stat: Stat | undefined
  /** Sorted names; empty for a node that may not be read. */
  readonly children: readonly string[]
  /** How far below the start. */
  readonly depth: number
  /** Whether the children are the last ones of their parent, from the start down. */
  readonly isLast: boolean
}

/** What a walk leaves out or cannot see. */
export interface WalkOptions {
  readonly signal: AbortSignal
  /** Hears of nodes whose children may not be listed. */
  readonly unreadable: (path: string) => void
  /** Nodes deeper than this are not met. */
  readonly depth?: number
  /** False leaves out a node with all that is below it. */
  readonly enters?: (path: string) => boolean
}

/** The child's path. */
export const join = (parent: string, name: string): string =>
  parent === '/' ? `/${name}` : `${parent}/${name}`

/** Whether a path is the server's own, which no command changes. */
export const isReserved = (path: string): boolean => path === '/zookeeper' || path.startsWith('/zookeeper/')

/** Requests that are on their way at once. */
const AHEAD = 64

/**
 * Calls `work` for each item, many at once, and yields the results in the order of the items. The first failure ends it
 * when its turn comes.
 */
export async function* mapAhead<T, R>(
  items: Iterable<T> | AsyncIterable<T>,
  work: (item: T) => Promise<R>,
  ahead = AHEAD,
): AsyncGenerator<R> {
  const running: Promise<R>[] = []
  for await (const item of items) {
    const result = work(item)
    // Whoever awaits it later hears of its failure; until then nobody does, and that is no crash.
    result.catch(() => {})
    running.push(result)
    if (running.length >= ahead) yield await running.shift()!
  }
  for (const result of running) yield await result
}

type Listed = { stat: Stat | undefined; children: string[] } | undefined

/**
 * Every node from `root` down, parents first, children by name. Nodes that go away meanwhile are left out. Rejects when
 * the root itself does not exist or may not be listed.
 */
export async function* walk(zk: ZooKeeper, root: string, options: WalkOptions): AsyncGenerator<Visit> {
  const first = await zk.getChildren(root)
  yield* below(zk, root, { stat: first.stat, children: first.children.toSorted() }, 0, true, options)
}

async function* below(
  zk: ZooKeeper,
  path: string,
  listed: NonNullable<Listed>,
  depth: number,
  isLast: boolean,
  options: WalkOptions,
): AsyncGenerator<Visit> {
  options.signal.throwIfAborted()
  yield { path, stat: listed.stat, children: listed.children, depth, isLast }
  if (depth >= (options.depth ?? Infinity)) return
  const names = listed.children.filter((name) => options.enters?.(join(path, name)) !== false)
  const answers = mapAhead(names, (name) => list(zk, join(path, name), options))
  let index = 0
  for await (const answer of answers) {
    const name = names[index++]!
    if (answer !== undefined)
      yield* below(zk, join(path, name), answer, depth + 1, index === names.length, options)
  }
}

async function list(zk: ZooKeeper, path: string, { unreadable }: WalkOptions): Promise<Listed> {
  try {
    const { children, stat } = await zk.getChildren(path)
    return { stat, children: children.toSorted() }
  } catch (error) {
    if (isCode(error, ErrorCode.NONODE)) return undefined
    if (!isCode(error, ErrorCode.NOAUTH)) throw error
    unreadable(path)
    return { stat: undefined, children: [] }
  }
}
