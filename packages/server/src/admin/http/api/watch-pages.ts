import { formatSessionId } from '../../../connections/log-context.ts'
import type { ClientChannel } from '../../../connections/client-channel.ts'
import { WatchBits } from '../../../core/watches/index.ts'
import type { SessionId } from '../../../core/types.ts'
import type { ConnectionReport, ServerReport } from '../../server-report.ts'
import { presentIn } from '../../sliced-answers.ts'
import { FirstItems } from './first-items.ts'

export const WATCH_KINDS = ['data', 'exist', 'child', 'persistent', 'persistentRecursive'] as const
export type WatchKind = (typeof WATCH_KINDS)[number]

/** Which watches a page lists. */
export interface WatchQuery {
  readonly path: string | undefined
  readonly session: SessionId | undefined
  readonly kind: WatchKind | undefined
  readonly limit: number
  readonly after: WatchPosition | undefined
}

/** A place in the list: behind a watch of a session or, without `key`, behind all of them. */
export interface WatchPosition {
  readonly session: SessionId
  readonly key: string | undefined
}

/** The watches of a session on a path. */
export interface ListedWatch {
  readonly session: string
  readonly path: string
  readonly kinds: readonly WatchKind[]
}

export interface WatchPage {
  readonly watches: readonly ListedWatch[]
  /** The position of the next page; null at the end of the list. */
  readonly next: string | null
}

/** Short paths that are looked at in one step; `CHARS` of a longer one count as one. */
const PER_STEP = 25
const CHARS = 256
/** Characters of paths that end a page: a path may have a million of them. */
const PAGE_CHARS = 1 << 18
/** Watches that end the search of a page, once those of a session are looked at: few may be of the kind that is asked for. */
const MAX_VISITED = 100_000
/** Longer paths are in the order of their first characters, and of a hash: a request cannot have a longer position. */
const MAX_KEY_CHARS = 1024

/**
 * Lists the watches of a server by session and path, in steps that yield empty strings. A page looks at the connections, and at all
 * watches of those that it lists, for the first ones behind its position: nothing is kept from one page to the next. So a watch that
 * exists all the time is on one page, however many come and go.
 */
export function* watchPage(server: ServerReport, query: WatchQuery): Generator<string, WatchPage> {
  const { limit, kind } = query
  const watches: ListedWatch[] = []
  const candidates = new FirstItems<ConnectionReport>(limit, bySession)
  yield* collectConnections(server, query, candidates)
  const isAll = candidates.size < limit
  const connections = yield* candidates.takeSorted()
  const steps = new Steps()
  let [chars, visited] = [0, 0]
  for (const connection of connections) {
    const room = limit - watches.length
    let last: string | undefined
    visited += query.path === undefined ? connection.watchedPaths.size : 1
    const paths = yield* pathsOf(server, connection, query, { room, steps })
    for (const { key, path } of paths) {
      for (let ended = steps.endWith(path); ended > 0; ended--) yield ''
      const kinds = kindsOf(server, connection, path)
      // It may have fired since it was looked at, or may have been looked at twice.
      if (key === last || !isListed(kinds, kind)) continue
      last = key
      watches.push({ session: formatSessionId(connection.sessionId), path, kinds })
      chars += path.length
      if (chars >= PAGE_CHARS) return { watches, next: positionOf(connection, key) }
    }
    // There may be more of them, also where some of these have fired meanwhile.
    if (paths.length === room) return { watches, next: positionOf(connection, paths.at(-1)!.key) }
    if (visited >= MAX_VISITED) return { watches, next: positionOf(connection) }
  }
  return { watches, next: isAll ? null : positionOf(connections.at(-1)!) }
}

/** Returns the position in a text that `watchPage` has returned as `next`; undefined for any other text. */
export function parsePosition(text: string): WatchPosition | undefined {
  const [, digits, key] = /^0x([\da-f]{1,16})(?::([\s\S]*))?$/.exec(text) ?? []
  return digits === undefined ? undefined : { session: BigInt.asIntN(64, BigInt(`0x${digits}`)), key }
}

const positionOf = ({ sessionId }: ConnectionReport, key?: string): string =>
  `${formatSessionId(sessionId)}${key === undefined ? '' : `:${key}`}`

const bySession = (a: ConnectionReport, b: ConnectionReport): number =>
  a.sessionId < b.sessionId ? -1 : Number(a.sessionId > b.sessionId)

// Connections

/** Adds the connections that may have watches behind the position of a query. */
function* collectConnections(
  server: ServerReport,
  { session, path, after }: WatchQuery,
  found: FirstItems<ConnectionReport>,
): Generator<string> {
  const add = (connection: ConnectionReport): void => {
    const { sessionId } = connection
    const isBehind =
      after === undefined ||
      sessionId > after.session ||
      (sessionId === after.session && after.key !== undefined)
    if (isBehind) found.add(connection)
  }
  let work = 0
  for (const connection of connectionsOf(server, session, path)) {
    if (++work % PER_STEP === 0) yield ''
    if (connection !== undefined && connection.watchBytes > 0) add(connection)
  }
}

function* connectionsOf(
  server: ServerReport,
  session: SessionId | undefined,
  path: string | undefined,
): Generator<ConnectionReport | undefined> {
  const { connections, watches } = server
  if (session !== undefined) yield connections.ofSession(session)
  else if (path === undefined) yield* presentIn(connections)
  else
    for (const table of [watches.data, watches.child]) {
      // Watchers that are added meanwhile would go on without end.
      let left = table.watcherCount(path)
      for (const [watcher] of table.watchersOf(path)) {
        if (left-- === 0) break
        // The others were in the first table.
        const isNew = table === watches.data || watches.data.modes(path, watcher) === 0
        yield isNew ? watcher : undefined
      }
    }
}

// Paths

interface WatchedPath {
  readonly key: string
  readonly path: string
}

/** Returns the first paths that a connection watches behind the position of a query. */
function* pathsOf(
  server: ServerReport,
  connection: ConnectionReport,
  { path: only, kind, after }: WatchQuery,
  { room, steps }: { readonly room: number; readonly steps: Steps },
): Generator<string, readonly WatchedPath[]> {
  const from = after?.session === connection.sessionId ? after.key : undefined
  const found = new FirstItems<WatchedPath>(room, byKey)
  for (const path of only === undefined ? presentIn(connection.watchedPaths) : [only]) {
    for (let ended = steps.endWith(path); ended > 0; ended--) yield ''
    const key = keyOf(server, path)
    if (from !== undefined && key <= from) continue
    // Most paths of a connection with very many are left out here.
    if (found.last !== undefined && key >= found.last.key) continue
    if (kind === undefined || isListed(kindsOf(server, connection, path), kind)) found.add({ key, path })
  }
  return yield* found.takeSorted()
}

const byKey = (a: WatchedPath, b: WatchedPath): number => (a.key < b.key ? -1 : Number(a.key > b.key))

/** Returns the text by which a path is ordered: itself, or its first characters and its hash. */
function keyOf({ tree: { store } }: ServerReport, path: string): string {
  if (path.length <= MAX_KEY_CHARS) return path
  // The first half of a character of two units cannot be sent.
  const isHalf = (path.charCodeAt(MAX_KEY_CHARS - 1) & 0xfc00) === 0xd800
  return `${path.slice(0, MAX_KEY_CHARS - Number(isHalf))}\0${store.hash(path) >>> 0}`
}

/** Counts the steps that the work on paths takes. */
class Steps {
  #work = 0

  /** Returns how many steps end with a path: most often none, and several with a long one. */
  endWith(path: string): number {
    this.#work += 1 + path.length / CHARS
    const ended = Math.floor(this.#work / PER_STEP)
    this.#work -= ended * PER_STEP
    return ended
  }
}

// Kinds

function kindsOf({ watches }: ServerReport, connection: ConnectionReport, path: string): WatchKind[] {
  const watcher = connection as ClientChannel
  const [data, child] = [watches.data.modes(path, watcher), watches.child.modes(path, watcher)]
  const kinds: WatchKind[] = []
  if ((data & WatchBits.MISSING) !== 0) kinds.push('exist')
  else if ((data & WatchBits.ONE_SHOT) !== 0) kinds.push('data')
  if ((child & WatchBits.ONE_SHOT) !== 0) kinds.push('child')
  if ((data & WatchBits.PERSISTENT) !== 0) kinds.push('persistent')
  if ((data & WatchBits.RECURSIVE) !== 0) kinds.push('persistentRecursive')
  return kinds
}

const isListed = (kinds: readonly WatchKind[], kind: WatchKind | undefined): boolean =>
  kind === undefined ? kinds.length > 0 : kinds.includes(kind)
