import { tickAfter, type SessionRegistry } from '../core/sessions/index.ts'
import type { SessionId } from '../core/types.ts'
import type { ClientService } from '../connections/client-service.ts'
import { formatSessionId } from '../connections/format-session-id.ts'
import { javaDate } from './format.ts'

/** What `dump` shows, line by line: when sessions and connections would end if they were silent, and who holds ephemeral nodes. */
export function* dump(core: ClientService): Generator<string> {
  yield 'SessionTracker dump:\n'
  yield* sessions(core)
  yield 'ephemeral nodes dump:\n'
  yield* ephemerals(core)
  yield 'Connections dump:\n'
  yield* connections(core)
}

/** A server that does not decide when sessions end shows the table that it has, and those that are its own. */
function* sessions(core: ClientService): Generator<string> {
  const { localSessions: locals, sessions: global } = core
  if (locals !== undefined) {
    yield 'Local '
    yield* byEnd(core, locals)
  }
  if (global.nextDeadline === Infinity) return yield* table(global)
  if (locals !== undefined) yield 'Global '
  yield* byEnd(core, global)
}

function* byEnd(core: ClientService, those: SessionRegistry): Generator<string> {
  yield* sets(
    core,
    'Session',
    those,
    ({ deadline }) => deadline,
    ({ id }) => formatSessionId(id),
  )
}

function* table(those: SessionRegistry): Generator<string> {
  const timeouts = new Map<SessionId, number>()
  for (const { id, timeout } of those) {
    timeouts.set(id, timeout)
    yield ''
  }
  yield `Global Sessions(${timeouts.size}):\n`
  // The platform sorts numbers of a typed array by itself, and would call us for each pair of others.
  for (const id of BigInt64Array.from(timeouts.keys()).sort())
    yield `${formatSessionId(id)}\t${timeouts.get(id)!}ms\n`
}

function* ephemerals({ tree }: ClientService): Generator<string> {
  const held = [...tree.owners.sessions()]
  yield `Sessions with Ephemerals (${held.length}):\n`
  for (const id of held) {
    yield `${formatSessionId(id)}:\n`
    for (const node of tree.owners.ofSession(id)) yield `\t${tree.pathOf(node)}\n`
  }
}

function* connections(core: ClientService): Generator<string> {
  const { clock } = core.ports
  yield* sets(
    core,
    'Connections',
    core.connections,
    ({ session, establishedAt }) =>
      session?.deadline ??
      clock.monotonic() + establishedAt + core.settings.sessionlessTimeoutMs - clock.wall(),
    ({ host, port, sessionId }) => `ip: /${host}:${port} sessionId: ${formatSessionId(sessionId)}`,
  )
}

/** What ends at the same tick together, by ticks. Each that is looked at is a piece, though an empty one: they may be very many. */
function* sets<One>(
  core: ClientService,
  title: string,
  those: Iterable<One>,
  deadlineOf: (one: One) => number,
  line: (one: One) => string,
): Generator<string> {
  const { tickTimeMs } = core.settings
  const byTick = new Map<number, One[]>()
  let count = 0
  for (const one of those) {
    const tick = tickAfter(deadlineOf(one), tickTimeMs)
    const set = byTick.get(tick)
    if (set === undefined) byTick.set(tick, [one])
    else set.push(one)
    count++
    yield ''
  }
  yield `${title} Sets (${byTick.size})/(${count}):\n`
  for (const [tick, set] of [...byTick].sort(([a], [b]) => a - b)) {
    yield `${set.length} expire at ${date(core, tick * tickTimeMs)}:\n`
    for (const one of set) yield `\t${line(one)}\n`
  }
}

/** The wall time of a moment on the monotonic clock. */
function date({ ports: { clock } }: ClientService, at: number): string {
  return javaDate(clock.wall() + at - clock.monotonic())
}
