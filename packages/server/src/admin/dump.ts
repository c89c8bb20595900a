import type { Sessions } from '../core/sessions/index.ts'
import type { SessionId } from '../core/types.ts'
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
    yield* byEnd(core, locals)
  }
  if (global.nextDeadline === Infinity) return yield* table(global)
  if (locals !== undefined) yield 'Global '
  yield* byEnd(core, global)
}

function* byEnd(core: ServerCore, those: Sessions): Generator<string> {
  const sets = yield* grouped(those, ({ deadline }) => tickBehind(core, deadline))
  yield `Session Sets (${sets.length})/(${total(sets)}):\n`
  for (const [at, set] of sets) {
    yield `${set.length} expire at ${date(core, at)}:\n`
    for (const { id } of set) yield `\t${hex(id)}\n`
  }
}

function* table(those: Sessions): Generator<string> {
  const timeouts = new Map<SessionId, number>()
  for (const { id, timeout } of those) {
    timeouts.set(id, timeout)
    yield ''
  }
  yield `Global Sessions(${timeouts.size}):\n`
  // The platform sorts numbers of a typed array by itself, and would call us for each pair of others.
  for (const id of BigInt64Array.from(timeouts.keys()).sort()) yield `${hex(id)}\t${timeouts.get(id)!}ms\n`
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
  const sets = yield* grouped(core.connections, ({ session, establishedAt }) => {
    const sessionless = clock.monotonic() + establishedAt + core.settings.sessionlessTimeoutMs - clock.wall()
    return tickBehind(core, session?.deadline ?? sessionless)
  })
  yield `Connections Sets (${sets.length})/(${total(sets)}):\n`
  for (const [at, set] of sets) {
    yield `${set.length} expire at ${date(core, at)}:\n`
    for (const { host, port, sessionId } of set) yield `\tip: /${host}:${port} sessionId: ${hex(sessionId)}\n`
  }
}

/** What ends at the same tick together, by ticks. Each that is looked at is a piece, though an empty one: they may be very many. */
function* grouped<One>(
  those: Iterable<One>,
  endOf: (one: One) => number,
): Generator<string, [number, One[]][]> {
  const sets = new Map<number, One[]>()
  for (const one of those) {
    const at = endOf(one)
    const set = sets.get(at)
    if (set === undefined) sets.set(at, [one])
    else set.push(one)
    yield ''
  }
  return [...sets].sort(([a], [b]) => a - b)
}

const total = (sets: readonly [number, readonly unknown[]][]): number =>
  sets.reduce((sum, [, set]) => sum + set.length, 0)

/** The tick at which a deadline has passed for certain. */
const tickBehind = ({ settings: { tickTimeMs } }: ServerCore, deadline: number): number =>
  (Math.floor(deadline / tickTimeMs) + 1) * tickTimeMs

/** The wall time of a moment on the monotonic clock. */
function date({ ports: { clock } }: ServerCore, at: number): string {
  return javaDate(clock.wall() + at - clock.monotonic())
}
