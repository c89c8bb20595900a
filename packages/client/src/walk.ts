import { childPath } from '@zabra/protocol'
import { DEFAULT_CONCURRENCY } from './map-in-order.ts'
import { remainingCallOptions } from './call-options.ts'
import { checkCall } from './call-checks.ts'
import { NoAuthError, NoNodeError } from './errors.ts'
import { syncResult } from './sync-result.ts'
import type { TreeOptions, Visit, WalkOptions } from './tree-types.ts'
import type { Client } from './client-api.ts'
import type { CallOptions, Stat } from './types.ts'

/** Returns a function that gives the options for each request of a call that makes many. */
export function perRequestOptions(client: Client, options: TreeOptions): () => CallOptions {
  const nextOptions = remainingCallOptions(options, client.platform.clock)
  const { requestTimeoutMs } = options
  if (requestTimeoutMs === undefined) return nextOptions
  return () => {
    const call = nextOptions()
    return { ...call, timeoutMs: Math.min(call.timeoutMs ?? Infinity, requestTimeoutMs) }
  }
}

interface Listing {
  readonly stat: Stat | undefined
  readonly children: readonly string[]
}

/**
 * Returns the children of a znode by name; undefined when it has vanished. At the first znode of a walk that is an
 * error.
 */
export async function listChildren(
  client: Client,
  path: string,
  call: CallOptions,
  isFirst: boolean,
  onUnreadable: TreeOptions['onUnreadable'],
): Promise<Listing | undefined> {
  try {
    const { stat, children } = await client.getChildren(path, call)
    return { stat, children: children.toSorted() }
  } catch (error) {
    if (isFirst) throw error
    if (error instanceof NoNodeError) return undefined
    if (!(error instanceof NoAuthError) || onUnreadable === undefined) throw error
    // The rejection of an async callback ends the call, as an error does.
    await (onUnreadable(path) as unknown)
    return { stat: undefined, children: [] }
  }
}

/** A znode to visit. */
interface PendingVisit {
  readonly path: string
  readonly depth: number
  readonly isLast: boolean
  listing?: Promise<Listing | undefined>
}

/**
 * Yields each znode from a path down, parents first and children by name. Skips znodes that vanish meanwhile.
 * Prefetches the next ones while the consumer works.
 */
async function* visit(
  client: Client,
  path: string,
  options: WalkOptions,
): AsyncGenerator<Visit, void, undefined> {
  checkCall('walk', options, 'walk', path)
  const { maxDepth = Infinity, filter = () => true, onUnreadable } = options
  const call = perRequestOptions(client, options)
  const pending: PendingVisit[] = [{ path, depth: 0, isLast: true }]
  const prefetch = (node: PendingVisit): void => {
    node.listing = listChildren(client, node.path, call(), node.depth === 0, onUnreadable)
    // A rejection is thrown when the walk reaches this znode, if it does.
    node.listing.catch(() => {})
  }
  while (pending.length > 0) {
    for (let i = 1; i <= Math.min(DEFAULT_CONCURRENCY, pending.length); i++) {
      const next = pending[pending.length - i]!
      if (next.listing === undefined) prefetch(next)
    }
    const { path: current, depth, isLast, listing } = pending.pop()!
    const listed = await listing
    if (listed === undefined) continue
    yield { path: current, ...listed, depth, isLast }
    if (depth >= maxDepth) continue
    const accepted = listed.children
      .map((name) => childPath(current, name))
      .filter((child) => syncResult('a filter', filter(child)))
    for (let i = accepted.length - 1; i >= 0; i--) {
      pending.push({ path: accepted[i]!, depth: depth + 1, isLast: i === accepted.length - 1 })
    }
  }
}

/** Yields the znodes of a tree or, without `stats`, their paths. */
export async function* walk(
  client: Client,
  path: string,
  options: WalkOptions,
): AsyncGenerator<Visit | string, void, undefined> {
  for await (const node of visit(client, path, options)) yield options.stats ? node : node.path
}
