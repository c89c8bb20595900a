import { MAX_DISK_USED, MIN_CERTIFICATE_DAYS } from '@zabra/server/settings'
import { safeLine } from './bytes.ts'
import type { CellStyle } from './table.ts'

/** A member in the answer of `GET /api/v1/cluster`. Older servers leave out what is optional, and null is not known. */
export interface ShownMember {
  readonly id: number
  readonly state: string
  readonly participant: boolean
  readonly zxid: string | null
  readonly ageMs: number | null
  readonly problem: string | null
  readonly zxidLag?: number | null
  readonly behindLeader?: number | null
  readonly ready?: boolean | null
  readonly uptimeMs?: number | null
  readonly disk?: { readonly data: Space | null; readonly log: Space | null } | null
  /** When they end. */
  readonly certificates?: Readonly<Record<string, string | null>> | null
  readonly findings?: readonly { readonly id: string; readonly detail: string }[] | null
  /** Why there is no report of the member. */
  readonly reason?: string | null
}

interface Space {
  readonly free: number
  readonly size: number
}

/** The width of the table in characters, and the least of its last column. */
const WIDTH = 120
const MIN_PROBLEM = 16
const MINUTE_MS = 60_000
const DAY_MS = 86_400_000

const HEAD = [
  'id',
  'votes',
  'state',
  'zxid',
  'lag',
  'ready',
  'uptime',
  'disk',
  'certificate',
  'known',
  'problem',
] as const
const PROBLEM = HEAD.indexOf('problem')

/** What is printed of an ensemble. */
export interface ClusterTable {
  readonly head: readonly string[]
  readonly rows: readonly (readonly string[])[]
  readonly style: CellStyle
  /** Lines below the table: problems that it has cut, findings, and members that make no reports. */
  readonly notes: readonly string[]
}

/** Returns the members as a table that fits 120 columns. `now` in milliseconds since 1970. */
export function clusterTable(members: readonly ShownMember[], now: number): ClusterTable {
  const cells = members.map((member) => [
    String(member.id),
    member.participant ? 'voter' : 'observer',
    safeLine(member.state),
    safeLine(member.zxid ?? '-'),
    lagOf(member),
    member.ready === undefined || member.ready === null ? '-' : member.ready ? 'yes' : 'no',
    typeof member.uptimeMs === 'number' ? span(member.uptimeMs) : '-',
    diskOf(member),
    certificateOf(member, now),
    knownOf(member),
  ])
  const widths = HEAD.slice(0, PROBLEM).map((name, column) =>
    Math.max(name.length, ...cells.map((row) => row[column]!.length)),
  )
  const left = Math.max(MIN_PROBLEM, WIDTH - widths.reduce((sum, width) => sum + width + 2, 0))
  const problems = members.map(({ problem }) => safeLine(problem ?? ''))
  const rows = cells.map((row, index) => [...row, cut(problems[index]!, left)])
  const notes = members.flatMap(({ id, problem, reason, findings }, index) => [
    ...(problems[index]!.length > left ? [`server ${id}: ${problems[index]!}`] : []),
    ...(problem === null && typeof reason === 'string' ? [`server ${id}: ${safeLine(reason)}`] : []),
    ...(findings ?? []).map((found) => `server ${id}: ${safeLine(found.detail)} (${safeLine(found.id)})`),
  ])
  return { head: HEAD, rows, notes, style: styleOf }
}

const styleOf: CellStyle = (row, column) => {
  const [name, cell] = [HEAD[column], row[column]!]
  if (name === 'problem' || (name === 'ready' && cell === 'no')) return 'bad'
  if (name === 'certificate' && cell === 'over') return 'bad'
  const isLow = name === 'certificate' && Number.parseInt(cell, 10) < MIN_CERTIFICATE_DAYS
  const isHigh = name === 'disk' && Number.parseInt(cell, 10) > MAX_DISK_USED
  return isLow || isHigh ? 'warning' : undefined
}

const cut = (text: string, width: number): string =>
  text.length > width ? `${text.slice(0, width - 1)}…` : text

/** The transactions that a member has not applied: those that it knows of, or that its leader has applied. */
function lagOf({ zxidLag, behindLeader }: ShownMember): string {
  const known = [zxidLag, behindLeader].filter((lag) => typeof lag === 'number')
  return known.length === 0 ? '-' : String(Math.max(...known))
}

/** The share of the fuller disk that is used. */
function diskOf({ disk }: ShownMember): string {
  const shares = [disk?.data, disk?.log].flatMap((space) =>
    space === null || space === undefined || !(space.size > 0) ? [] : [1 - space.free / space.size],
  )
  return shares.length === 0 ? '-' : `${Math.floor(Math.max(...shares) * 100)} %`
}

/** The days until the first certificate ends. */
function certificateOf({ certificates }: ShownMember, now: number): string {
  const ends = Object.values(certificates ?? {}).flatMap((end) => (end === null ? [] : [Date.parse(end)]))
  if (ends.length === 0) return '-'
  const days = Math.floor((Math.min(...ends) - now) / DAY_MS)
  return days < 0 ? 'over' : `${days} d`
}

function knownOf({ ageMs }: ShownMember): string {
  if (ageMs === null) return 'never'
  return ageMs < 1000 ? 'now' : span(ageMs)
}

function span(ms: number): string {
  if (ms < MINUTE_MS) return `${Math.floor(ms / 1000)} s`
  if (ms < 60 * MINUTE_MS) return `${Math.floor(ms / MINUTE_MS)} min`
  if (ms < DAY_MS) return `${Math.floor(ms / 60 / MINUTE_MS)} h`
  return `${Math.floor(ms / DAY_MS)} d`
}
