import type { SessionId } from '../core/types.ts'
import type { ServerCore } from '../host/core.ts'
import { hex } from '../host/hex.ts'
import { javaDate } from './format.ts'

/** What `dump` shows: when sessions and connections would end if they were silent, and who holds ephemeral nodes. */
export function dump(core: ServerCore): string {
  return `SessionTracker dump:\n${sessions(core)}ephemeral nodes dump:\n${ephemerals(core)}Connections dump:\n${connections(core)}`
}

/** A server that does not decide when sessions end shows the table that it has, and those that are its own. */
function sessions(core: ServerCore): string {
  const { locals, sessions: global } = core
  const own = locals === undefined ? '' : `Local ${byDeadline(core, locals.byDeadline(), locals.size)}`
  const sets = global.byDeadline()
  if (sets !== undefined)
    return `${own}${locals === undefined ? '' : 'Global '}${byDeadline(core, sets, global.size)}`
  const table = [...global].sort((a, b) => (a.id < b.id ? -1 : 1))
  const lines = [`Global Sessions(${table.length}):`]
  for (const { id, timeout } of table) lines.push(`${hex(id)}\t${timeout}ms`)
  return `${own}${text(lines)}`
}

function byDeadline(core: ServerCore, sets: Map<number, SessionId[]>, size: number): string {
  const lines = [`Session Sets (${sets.size})/(${size}):`]
  for (const [at, ids] of sets)
    lines.push(`${ids.length} expire at ${date(core, at)}:`, ...ids.map((id) => `\t${hex(id)}`))
  return text(lines)
}

function ephemerals({ tree }: ServerCore): string {
  const held = [...tree.owners.sessions()].map((id): [SessionId, string[]] => [
    id,
    [...tree.owners.ofSession(id)].map((node) => tree.pathOf(node)),
  ])
  const lines = [`Sessions with Ephemerals (${held.length}):`]
  for (const [id, paths] of held) lines.push(`${hex(id)}:`, ...paths.map((path) => `\t${path}`))
  return text(lines)
}

function connections(core: ServerCore): string {
  const { clock } = core.ports
  const tick = core.settings.tickTimeMs
  const sets = new Map<number, string[]>()
  for (const { host, port, session, sessionId, establishedAt } of core.connections) {
    const sessionless = clock.monotonic() + establishedAt + core.settings.sessionlessTimeoutMs - clock.wall()
    const at = (Math.floor((session?.deadline ?? sessionless) / tick) + 1) * tick
    const line = `\tip: /${host}:${port} sessionId: ${hex(sessionId)}`
    const set = sets.get(at)
    if (set === undefined) sets.set(at, [line])
    else set.push(line)
  }
  const lines = [`Connections Sets (${sets.size})/(${core.connections.size}):`]
  for (const [at, set] of [...sets].sort(([a], [b]) => a - b))
    lines.push(`${set.length} expire at ${date(core, at)}:`, ...set)
  return text(lines)
}

/** The wall time of a moment on the monotonic clock. */
function date({ ports: { clock } }: ServerCore, at: number): string {
  return javaDate(clock.wall() + at - clock.monotonic())
}

const text = (lines: readonly string[]): string => lines.map((line) => `${line}\n`).join('')
