import { formatZxid } from '@zabra/protocol'
import { hierarchical, majority, type Hierarchy, type QuorumVerifier, type ServerId } from './verifier.ts'

/** A participant votes; an observer only receives committed transactions. */
export type MemberRole = 'participant' | 'observer'

/** The ports on which a member accepts connections of other members. */
export interface MemberAddress {
  /** Host name or address; IPv6 without brackets. */
  readonly host: string
  /** Learners connect to this port while the member leads. */
  readonly quorumPort: number
  /** Other members send their votes to this port. */
  readonly electionPort: number
}

/** One `server.N` line of a configuration. */
export interface MemberConfiguration {
  readonly id: ServerId
  /** At least one; several for a member with several networks. */
  readonly addresses: readonly MemberAddress[]
  readonly role: MemberRole
  /** Address of the client port, when the configuration of the ensemble contains it. */
  readonly client?: { readonly host: string; readonly port: number }
}

/** The members of an ensemble and their voting weights. Members with the same version have the same text. */
export interface EnsembleConfiguration {
  /** Zxid of the reconfig that created it; 0 for a hand-written one. */
  readonly version: number
  /** Keyed by id, in ascending order. */
  readonly members: ReadonlyMap<ServerId, MemberConfiguration>
  /** Present when the configuration has groups or weights. */
  readonly hierarchy?: Hierarchy
}

/** Returns the ids of the participants, in ascending order. */
export function votersOf({ members }: EnsembleConfiguration): ServerId[] {
  return [...members.values()].filter(({ role }) => role === 'participant').map(({ id }) => id)
}

/** Returns the quorum verifier of a configuration. `oracle`: an oracle is configured (`oraclePath`). */
export function verifierOf(
  configuration: EnsembleConfiguration,
  { oracle = false }: { oracle?: boolean } = {},
): QuorumVerifier {
  const { hierarchy } = configuration
  return hierarchy === undefined ? majority(votersOf(configuration), { oracle }) : hierarchical(hierarchy)
}

/** Returns whether two configurations are equal except for their versions. */
export function sameMembership(a: EnsembleConfiguration, b: EnsembleConfiguration): boolean {
  return lines(a).join('\n') === lines(b).join('\n')
}

/**
 * Returns the text that members send each other and that `/zookeeper/config` contains: members, groups and weights in
 * numeric order, then the version, without a line break at the end.
 */
export function printConfiguration(configuration: EnsembleConfiguration): string {
  return [...lines(configuration), versionLine(configuration)].join('\n')
}

/** Returns the text of a member, such as `4=zk4:2888:3888:observer;0.0.0.0:2181`: a line of a configuration without `server.`. */
export const formatMember = (member: MemberConfiguration): string => `${member.id}=${printMember(member)}`

/**
 * Returns the text of a dynamic configuration file: the same lines in alphabetical order. The name of the active file
 * contains the version; the file of a configuration that is only `proposed` (`.next`) ends in a version line.
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
  const text = [...members.values()].map((member) => `server.${formatMember(member)}`)
  if (hierarchy === undefined) return text
  for (const [group, ids] of ascending(hierarchy.groups)) text.push(`group.${group}=${ids.join(':')}`)
  const ids = [...hierarchy.groups.values()].flat().sort((a, b) => a - b)
  for (const id of ids) text.push(`weight.${id}=${hierarchy.weights.get(id) ?? 1}`)
  return text
}

function printMember({ addresses, role, client }: MemberConfiguration): string {
  const quorumAddresses = [...addresses]
    .sort((a, b) => (a.host < b.host ? -1 : a.host > b.host ? 1 : 0))
    .map(({ host, quorumPort, electionPort }) => `${bracketed(host)}:${quorumPort}:${electionPort}`)
  const clientAddress = client === undefined ? '' : `;${bracketed(client.host)}:${client.port}`
  return `${quorumAddresses.join('|')}:${role}${clientAddress}`
}

const bracketed = (host: string): string => (host.includes(':') ? `[${host}]` : host)

const ascending = <T>(map: ReadonlyMap<number, T>): [number, T][] => [...map].sort(([a], [b]) => a - b)
