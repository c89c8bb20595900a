import { formatSessionId } from '../connections/log-context.ts'
import { tickAfter, type SessionRegistry } from '../core/sessions/index.ts'
import type { SessionId } from '../core/types.ts'
import { javaDate } from './format.ts'
import type { ServerReport } from './server-report.ts'

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
  const timeouts = new Map<SessionId, number>()
  for (const { id, timeout } of registry) {
    timeouts.set(id, timeout)
    yield ''
  }
  yield `Global Sessions(${timeouts.size}):\n`
  // A typed array is sorted without a call of a comparison function for each pair.
  for (const id of BigInt64Array.from(timeouts.keys()).sort())
    yield `${formatSessionId(id)}\t${timeouts.get(id)!}ms\n`
}

function* ephemerals({ tree }: ServerReport): Generator<string> {
  const owners = [...tree.owners.sessions()]
  yield `Sessions with Ephemerals (${owners.length}):\n`
  for (const id of owners) {
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
  elements: Iterable<T>,
  deadlineOf: (element: T) => number,
  lineOf: (element: T) => string,
): Generator<string> {
  const { tickTimeMs } = server.settings
  const setsByTick = new Map<number, T[]>()
  let count = 0
  for (const element of elements) {
    const tick = tickAfter(deadlineOf(element), tickTimeMs)
    const set = setsByTick.get(tick)
    if (set === undefined) setsByTick.set(tick, [element])
    else set.push(element)
    count++
    yield ''
  }
  yield `${title} Sets (${setsByTick.size})/(${count}):\n`
  for (const [tick, set] of [...setsByTick].sort(([a], [b]) => a - b)) {
    yield `${set.length} expire at ${wallDate(server, tick * tickTimeMs)}:\n`
    for (const element of set) yield `\t${lineOf(element)}\n`
  }
}

/** Returns the date of a time on the monotonic clock. */
function wallDate({ platform: { clock } }: ServerReport, at: number): string {
  return javaDate(clock.wall() + at - clock.monotonic())
}
