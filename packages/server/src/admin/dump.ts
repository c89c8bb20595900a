import { formatSessionId } from '../connections/log-context.ts'
import { tickAfter, type SessionRegistry } from '../core/sessions/index.ts'
import type { SessionId } from '../core/types.ts'
import { javaDate } from './format.ts'
import type { ServerReport } from './server-report.ts'
import { presentIn } from './sliced-answers.ts'

/** Ids that are sorted in one step. */
const SORTED_AT_ONCE = 64

// Each generator yields lines. It yields an empty string for each element that it sorts, since there may be very many.

/** Yields the answer to `dump`: when sessions and connections expire, and which sessions own ephemeral nodes. */
export function* dump(server: ServerReport): Generator<string> {
  yield 'SessionTracker dump:\n'
  yield* sessions(server)
  yield 'ephemeral nodes dump:\n'
  yield* ephemerals(server)
  yield 'Connections dump:\n'
  yield* connections(server)
}

/** A learner does not track when global sessions expire: it shows their timeouts, and the deadlines of its local sessions. */
function* sessions(server: ServerReport): Generator<string> {
  const { localSessions, sessions: globalSessions } = server
  if (localSessions !== undefined) {
    yield 'Local '
    yield* sessionDeadlines(server, localSessions)
  }
  if (globalSessions.nextDeadline === Infinity) return yield* sessionTimeouts(globalSessions)
  if (localSessions !== undefined) yield 'Global '
  yield* sessionDeadlines(server, globalSessions)
}

function* sessionDeadlines(server: ServerReport, registry: SessionRegistry): Generator<string> {
  yield* expirySets(
    server,
    'Session',
    registry,
    ({ deadline }) => deadline,
    ({ id }) => formatSessionId(id),
  )
}

function* sessionTimeouts(registry: SessionRegistry): Generator<string> {
  const ids: SessionId[] = []
  for (const { id } of presentIn(registry)) {
    ids.push(id)
    yield ''
  }
  yield `Global Sessions(${ids.length}):\n`
  for (const id of yield* sorted(ids)) {
    // A session may have ended meanwhile.
    const session = registry.get(id)
    yield session === undefined ? '' : `${formatSessionId(id)}\t${session.timeout}ms\n`
  }
}

/** Sorts ids in steps: parts of them first, then each two parts together. Yields an empty piece after each step. */
function* sorted(ids: readonly SessionId[]): Generator<string, Iterable<SessionId>> {
  let parts: BigInt64Array[] = []
  for (let from = 0; from < ids.length; from += SORTED_AT_ONCE) {
    parts.push(BigInt64Array.from(ids.slice(from, from + SORTED_AT_ONCE)).sort())
    yield ''
  }
  while (parts.length > 1) {
    const merged: BigInt64Array[] = []
    for (let i = 0; i < parts.length; i += 2)
      merged.push(i + 1 === parts.length ? parts[i]! : yield* mergeSorted(parts[i]!, parts[i + 1]!))
    parts = merged
  }
  return parts[0] ?? []
}

function* mergeSorted(a: BigInt64Array, b: BigInt64Array): Generator<string, BigInt64Array> {
  const both = new BigInt64Array(a.length + b.length)
  for (let i = 0, j = 0; i + j < both.length;) {
    const isFirst = j === b.length || (i < a.length && a[i]! <= b[j]!)
    both[i + j] = isFirst ? a[i]! : b[j]!
    if (isFirst) i++
    else j++
    if ((i + j) % SORTED_AT_ONCE === 0) yield ''
  }
  return both
}

function* ephemerals({ tree }: ServerReport): Generator<string> {
  let left = tree.owners.sessionCount
  yield `Sessions with Ephemerals (${left}):\n`
  for (const id of tree.owners.sessions()) {
    if (left-- === 0) return
    yield `${formatSessionId(id)}:\n`
    for (const node of tree.owners.ofSession(id)) yield `\t${tree.pathOf(node)}\n`
  }
}

function* connections(server: ServerReport): Generator<string> {
  const { clock } = server.platform
  yield* expirySets(
    server,
    'Connections',
    server.connections,
    ({ session, establishedAt }) =>
      session?.deadline ??
      clock.monotonic() + establishedAt + server.settings.sessionlessTimeoutMs - clock.wall(),
    ({ host, port, sessionId }) => `ip: /${host}:${port} sessionId: ${formatSessionId(sessionId)}`,
  )
}

/** Yields the elements grouped by the tick at which they expire. */
function* expirySets<T>(
  server: ServerReport,
  title: string,
  elements: Iterable<T> & { readonly size: number },
  deadlineOf: (element: T) => number,
  lineOf: (element: T) => string,
): Generator<string> {
  const { tickTimeMs } = server.settings
  const sets = yield* setsByTick(elements, deadlineOf, tickTimeMs)
  const count = sets.reduce((sum, [, set]) => sum + set.length, 0)
  yield `${title} Sets (${sets.length})/(${count}):\n`
  for (const [tick, set] of sets) {
    yield `${set.length} expire at ${wallDate(server, tick * tickTimeMs)}:\n`
    for (const element of set) yield `\t${lineOf(element)}\n`
  }
}

/** Groups elements by the tick after their deadline, in the order of ticks. Yields an empty piece for each element. */
export function* setsByTick<T>(
  elements: Iterable<T> & { readonly size: number },
  deadlineOf: (element: T) => number,
  tickMs: number,
): Generator<string, [tick: number, set: T[]][]> {
  const sets = new Map<number, T[]>()
  for (const element of presentIn(elements)) {
    const tick = tickAfter(deadlineOf(element), tickMs)
    const set = sets.get(tick)
    if (set === undefined) sets.set(tick, [element])
    else set.push(element)
    yield ''
  }
  return [...sets].sort(([a], [b]) => a - b)
}

/** Returns the date of a time on the monotonic clock. */
function wallDate({ platform: { clock } }: ServerReport, at: number): string {
  return javaDate(clock.wall() + at - clock.monotonic())
}
