import { DEFAULT_CONCURRENCY } from './map-concurrent.ts'
import { remainingCallOptions } from './call-options.ts'
import { NoAuthError, NoNodeError } from './errors.ts'
import type { TreeOptions, Visit, WalkOptions } from './tree-types.ts'
import type { CallOptions, Client, Stat } from './types.ts'

/** The path of a child. */
export const childPath = (parent: string, name: string): string =>
  parent === '/' ? `/${name}` : `${parent}/${name}`

/** The options for each request of a call that is made of many. */
export function perRequestOptions(client: Client, options: TreeOptions): () => CallOptions {
  const part = remainingCallOptions(options, client.platform.clock)
  const { requestTimeout } = options
  if (requestTimeout === undefined) return part
  return () => {
    const call = part()
    return { ...call, timeout: Math.min(call.timeout ?? Infinity, requestTimeout) }
  }
}

interface Listing {
  readonly stat: Stat | undefined
  readonly children: readonly string[]
}

/** The children of a znode by name; undefined when it has gone, which the first one must not have. */
export async function listChildren(
  client: Client,
  path: string,
  call: CallOptions,
  isFirst: boolean,
  unreadable: TreeOptions['onUnreadable'],
): Promise<Listing | undefined> {
  try {
    const { stat, children } = await client.getChildren(path, call)
    return { stat, children: children.toSorted() }
  } catch (error) {
    if (isFirst) throw error
    if (error instanceof NoNodeError) return undefined
    if (!(error instanceof NoAuthError) || unreadable === undefined) throw error
    unreadable(path)
    return { stat: undefined, children: [] }
  }
}

/** A znode that will be met. */
interface PendingVisit {
  readonly path: string
  readonly depth: number
  readonly isLast: boolean
  listing?: Promise<Listing | undefined>
}

/**
 * Each znode from a path down, before those below it, children in the order of their names. What vanishes meanwhile is
 * left out. The next ones are asked for while one is looked at.
 */
export async function* visit(
  client: Client,
  path: string,
  options: WalkOptions = {},
): AsyncGenerator<Visit, void, undefined> {
  const { maxDepth: deepest = Infinity, filter: enters, onUnreadable: unreadable } = options
  const call = perRequestOptions(client, options)
  const left: PendingVisit[] = [{ path, depth: 0, isLast: true }]
  const ask = (one: PendingVisit): void => {
    one.listing = listChildren(client, one.path, call(), one.depth === 0, unreadable)
    // It is heard of when its turn comes, if the walk gets there.
    one.listing.catch(() => {})
  }
  while (left.length > 0) {
    for (let i = 1; i <= Math.min(DEFAULT_CONCURRENCY, left.length); i++) {
      const one = left[left.length - i]!
      if (one.listing === undefined) ask(one)
    }
    const { path: at, depth, isLast, listing } = left.pop()!
    const listed = await listing
    if (listed === undefined) continue
    yield { path: at, ...listed, depth, isLast }
    if (depth >= deepest) continue
    const paths = listed.children.map((name) => childPath(at, name))
    const entered = enters === undefined ? paths : paths.filter((one) => enters(one))
    for (let i = entered.length - 1; i >= 0; i--) {
      left.push({ path: entered[i]!, depth: depth + 1, isLast: i === entered.length - 1 })
    }
  }
}

/** The paths of a walk. */
export async function* walk(
  client: Client,
  path: string,
  options?: WalkOptions,
): AsyncGenerator<string, void, undefined> {
  for await (const { path: at } of visit(client, path, options)) yield at
}
