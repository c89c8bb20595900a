import { formatZxid } from '@zabra/protocol'
import { hierarchical, majority, type Hierarchy, type QuorumVerifier, type ServerId } from './verifier.ts'

/** A participant votes; an observer is told of what was decided. */
export type MemberRole = 'participant' | 'observer'

/** Where a member takes the connections of other members. */
export interface MemberAddress {
  /** A name or an address; IPv6 without brackets. */
  readonly host: string
  /** Learners connect here while the member leads. */
  readonly quorumPort: number
  /** Votes come in here. */
  readonly electionPort: number
}

/** One `server.N` line. */
export interface MemberConfiguration {
  readonly id: ServerId
  /** At least one; several for a member that is reached over several networks. */
  readonly addresses: readonly MemberAddress[]
  readonly role: MemberRole
  /** Where the member serves clients, when the ensemble's configuration says so. */
  readonly client?: { readonly host: string; readonly port: number }
}

/** Who belongs to the ensemble and what their voices count: the same text on every member that has the same version. */
export interface EnsembleConfiguration {
  /** The zxid of the change that made it, or 0 for one that was written by hand. */
  readonly version: number
  /** By id, ascending. */
  readonly members: ReadonlyMap<ServerId, MemberConfiguration>
  /** Present when voices are weighed in groups. */
  readonly hierarchy?: Hierarchy
}

/** Members that vote, ascending. */
export function votersOf({ members }: EnsembleConfiguration): ServerId[] {
  return [...members.values()].filter(({ role }) => role === 'participant').map(({ id }) => id)
}

/** The judge of what a quorum of this configuration is. `oracle` lets one of two voters go on alone. */
export function verifierOf(
  configuration: EnsembleConfiguration,
  { oracle = false }: { oracle?: boolean } = {},
): QuorumVerifier {
  const { hierarchy } = configuration
  return hierarchy === undefined ? majority(votersOf(configuration), { oracle }) : hierarchical(hierarchy)
}

/** Whether two configurations say the same, whatever their versions. */
export function sameMembership(a: EnsembleConfiguration, b: EnsembleConfiguration): boolean {
  return lines(a).join('\n') === lines(b).join('\n')
}

/**
 * The text that members send each other and that `/zookeeper/config` holds: members, groups and weights in the order of
 * their numbers, then the version, without a line break at the end.
 */
export function printConfiguration(configuration: EnsembleConfiguration): string {
  return [...lines(configuration), versionLine(configuration)].join('\n')
}

/**
 * The text of a dynamic configuration file: the same lines in alphabetical order. The active file carries its version in
 * its name; the file of a configuration that is only `proposed` ends in a version line.
 */
export function printDynamicFile(
  configuration: EnsembleConfiguration,
  { proposed = false }: { proposed?: boolean } = {},
): string {
  const keyed = lines(configuration).map((line) => ({ line, key: line.slice(0, line.indexOf('=')) }))
  const sorted = keyed.sort((a, b) => (a.key < b.key ? -1 : 1)).map(({ line }) => line)
  return (proposed ? [...sorted, versionLine(configuration)] : sorted).join('\n')
}

const versionLine = ({ version }: EnsembleConfiguration): string => `version=${formatZxid(version)}`

function lines({ members, hierarchy }: EnsembleConfiguration): string[] {
  const text = [...members.values()].map((member) => `server.${member.id}=${printMember(member)}`)
  if (hierarchy === undefined) return text
  for (const [group, ids] of ascending(hierarchy.groups)) text.push(`group.${group}=${ids.join(':')}`)
  const ids = [...hierarchy.groups.values()].flat().sort((a, b) => a - b)
  for (const id of ids) text.push(`weight.${id}=${hierarchy.weights.get(id) ?? 1}`)
  return text
}

function printMember({ addresses, role, client }: MemberConfiguration): string {
  const places = [...addresses]
    .sort((a, b) => (a.host < b.host ? -1 : a.host > b.host ? 1 : 0))
    .map(({ host, quorumPort, electionPort }) => `${bracketed(host)}:${quorumPort}:${electionPort}`)
  const served = client === undefined ? '' : `;${bracketed(client.host)}:${client.port}`
  return `${places.join('|')}:${role}${served}`
}

const bracketed = (host: string): string => (host.includes(':') ? `[${host}]` : host)

const ascending = <T>(map: ReadonlyMap<number, T>): [number, T][] => [...map].sort(([a], [b]) => a - b)
