import type { SessionId } from '../core/types.ts'
import type { ClientConnection } from '../host/connection.ts'
import type { ServerCore } from '../host/core.ts'
import { hex } from '../host/hex.ts'
import { javaDate } from './format.ts'

/** What `dump` shows, line by line: when sessions and connections would end if they were silent, and who holds ephemeral nodes. */
export function* dump(core: ServerCore): Generator<string> {
  yield 'SessionTracker dump:\n'
  yield* sessions(core)
  yield 'ephemeral nodes dump:\n'
  yield* ephemerals(core)
  yield 'Connections dump:\n'
  yield* connections(core)
}

/** A server that does not decide when sessions end shows the table that it has, and those that are its own. */
function* sessions(core: ServerCore): Generator<string> {
  const { locals, sessions: global } = core
  if (locals !== undefined) {
    yield 'Local '
    yield* byDeadline(core, locals.byDeadline(), locals.size)
  }
  const sets = global.byDeadline()
  if (sets !== undefined) {
    if (locals !== undefined) yield 'Global '
    return yield* byDeadline(core, sets, global.size)
  }
  const table = [...global].sort((a, b) => (a.id < b.id ? -1 : 1))
  yield `Global Sessions(${table.length}):\n`
  for (const { id, timeout } of table) yield `${hex(id)}\t${timeout}ms\n`
}

function* byDeadline(core: ServerCore, sets: Map<number, SessionId[]>, size: number): Generator<string> {
  yield `Session Sets (${sets.size})/(${size}):\n`
  for (const [at, ids] of sets) {
    yield `${ids.length} expire at ${date(core, at)}:\n`
    for (const id of ids) yield `\t${hex(id)}\n`
  }
}

function* ephemerals({ tree }: ServerCore): Generator<string> {
  const held = [...tree.owners.sessions()]
  yield `Sessions with Ephemerals (${held.length}):\n`
  for (const id of held) {
    yield `${hex(id)}:\n`
    for (const node of tree.owners.ofSession(id)) yield `\t${tree.pathOf(node)}\n`
  }
}

function* connections(core: ServerCore): Generator<string> {
  const { clock } = core.ports
  const tick = core.settings.tickTimeMs
  const sets = new Map<number, ClientConnection[]>()
  for (const connection of core.connections) {
    const { session, establishedAt } = connection
    const sessionless = clock.monotonic() + establishedAt + core.settings.sessionlessTimeoutMs - clock.wall()
    const at = (Math.floor((session?.deadline ?? sessionless) / tick) + 1) * tick
    const set = sets.get(at)
    if (set === undefined) sets.set(at, [connection])
    else set.push(connection)
  }
  yield `Connections Sets (${sets.size})/(${core.connections.size}):\n`
  for (const [at, set] of [...sets].sort(([a], [b]) => a - b)) {
    yield `${set.length} expire at ${date(core, at)}:\n`
    for (const { host, port, sessionId } of set) yield `\tip: /${host}:${port} sessionId: ${hex(sessionId)}\n`
  }
}

/** The wall time of a moment on the monotonic clock. */
function date({ ports: { clock } }: ServerCore, at: number): string {
  return javaDate(clock.wall() + at - clock.monotonic())
}
