import { CLIENT_PORT } from '@zabra/testing'
import { readMembers, type Role, type VoterSet } from './membership.ts'

const QUORUM_PORT = 2888
const ELECTION_PORT = 3888

/** Voters in groups with weights, for hierarchical quorums. */
export interface GroupsPlan {
  readonly members: readonly (readonly number[])[]
  /** Weight of server 1, 2 and so on. */
  readonly weights: readonly number[]
}

/** How many servers an ensemble has, and which of them do not vote at first. */
interface FirstMembers {
  readonly servers: number
  readonly observers: readonly number[]
  /** Servers outside of the ensemble. */
  readonly nonMembers: readonly number[]
}

/** Returns the line of a server in a configuration. */
export const memberLine = (id: number, role: Role): string =>
  `server.${id}=s${id}:${QUORUM_PORT}:${ELECTION_PORT}:${role};${CLIENT_PORT}`

/** Returns the initial roles. */
export function initialRoles({ servers, observers, nonMembers }: FirstMembers): Map<number, Role> {
  const ids = Array.from({ length: servers }, (_, index) => index + 1).filter(
    (id) => !nonMembers.includes(id),
  )
  return new Map(ids.map((id) => [id, observers.includes(id) ? 'observer' : 'participant']))
}

/** Returns the text of a configuration, without a version. */
export function membershipText(roles: ReadonlyMap<number, Role>, groups: GroupsPlan | undefined): string {
  const lines = [...roles].map(([id, role]) => memberLine(id, role))
  const votes = (id: number): boolean => roles.get(id) === 'participant'
  groups?.members.forEach((members, index) => {
    const voters = members.filter(votes)
    if (voters.length > 0) lines.push(`group.${index + 1}=${voters.join(':')}`)
    lines.push(...voters.map((id) => `weight.${id}=${groups.weights[id - 1]!}`))
  })
  return lines.join('\n')
}

/** Returns the voters of an ensemble and their quorums, which groups count by weight among the voters alone. */
export const votersWith = (roles: ReadonlyMap<number, Role>, groups: GroupsPlan | undefined): VoterSet =>
  readMembers(membershipText(roles, groups))
