import { ErrorCode } from '@zabra/protocol'
import {
  votersOf,
  type EnsembleConfiguration,
  type MemberConfiguration,
  type MemberAddress,
} from './configuration.ts'
import { ConfigurationError, parseConfiguration } from './parse-configuration.ts'
import type { ServerId } from './verifier.ts'

/** A change of the membership as a client asks for it; one that names `newMembers` says everything anew. */
export interface ReconfigRequest {
  /** Lines `server.N=…` with commas between them. */
  readonly joiningServers: string | null
  /** Ids with commas between them. */
  readonly leavingServers: string | null
  /** The whole text of a configuration, without a version. */
  readonly newMembers: string | null
}

/** A change that is refused. `code` is what the client is told. */
export class ReconfigurationError extends Error {
  override readonly name = 'ReconfigurationError'
  readonly code: number
  constructor(message: string, code: number = ErrorCode.BADARGUMENTS) {
    super(message)
    this.code = code
  }
}

/**
 * The configuration that a change makes of another one (`PrepRequestProcessor`, op code reconfig). `version` is the zxid
 * of the change. Throws a `ReconfigurationError`.
 */
export function applyReconfig(
  current: EnsembleConfiguration,
  change: ReconfigRequest,
  { version, leastVoters }: { version: number; leastVoters: number },
): EnsembleConfiguration {
  const next =
    change.newMembers === null
      ? applyIncremental(current, change)
      : { ...parseMembership(change.newMembers), version: 0 }
  const voters = votersOf(next).length
  if (voters < leastVoters)
    throw new ReconfigurationError(
      `Expected a configuration with at least ${leastVoters} participants, got one with ${voters}.`,
    )
  refuseSharedAddresses(next)
  return { ...next, version }
}

function applyIncremental(
  current: EnsembleConfiguration,
  { joiningServers, leavingServers }: ReconfigRequest,
): EnsembleConfiguration {
  if (current.hierarchy !== undefined)
    throw new ReconfigurationError(
      'Expected the whole new membership, got single changes. With groups or weights, say everything anew.',
    )
  const members = new Map(current.members)
  for (const id of words(leavingServers)) members.delete(readId(id))
  for (const line of words(joiningServers)) {
    const joiner = readJoiner(line)
    members.set(joiner.id, joiner)
  }
  return { version: 0, members: new Map([...members].sort(([a], [b]) => a - b)) }
}

function readId(word: string): ServerId {
  if (!/^\d{1,15}$/.test(word))
    throw new ReconfigurationError(`Expected the id of a server that leaves, got "${word.slice(0, 40)}".`)
  return Number(word)
}

function readJoiner(line: string): MemberConfiguration {
  // One who observes is no configuration by itself, so the reader gets a participant to go with it.
  const [, id] = /^server\.(\d{1,15})\s*=/.exec(line) ?? []
  if (id === undefined)
    throw new ReconfigurationError(`Expected server.N=… for a server that joins, got "${line.slice(0, 80)}".`)
  const companion = id === '0' ? 1 : 0
  const member = parseMembership(`${line}\nserver.${companion}=companion:1:2`).members.get(Number(id))!
  if (member.client === undefined)
    throw new ReconfigurationError(
      `Expected three ports for server.${id}, its client port behind a ";" among them, got "${line.slice(0, 80)}".`,
    )
  return member
}

function parseMembership(text: string): EnsembleConfiguration {
  try {
    return parseConfiguration(text)
  } catch (error) {
    if (error instanceof ConfigurationError)
      throw new ReconfigurationError(`The new membership: ${error.message}`)
    throw error
  }
}

/** Two members that others would find at one place cannot be told apart. */
function refuseSharedAddresses({ members }: EnsembleConfiguration): void {
  const owners = new Map<string, ServerId>()
  for (const { id, addresses, client } of members.values())
    for (const place of addressesOf(addresses, client)) {
      const other = owners.get(place) ?? id
      if (other !== id)
        throw new ReconfigurationError(
          `Expected an address for each server, got ${place} for ${other} and ${id}.`,
        )
      owners.set(place, id)
    }
}

function addressesOf(addresses: readonly MemberAddress[], client: MemberConfiguration['client']): string[] {
  const own = addresses.flatMap(({ host, quorumPort, electionPort }) => [
    `${host}:${quorumPort}`,
    `${host}:${electionPort}`,
  ])
  // A wildcard is another place on each host.
  return client === undefined || client.host === '0.0.0.0' ? own : [...own, `${client.host}:${client.port}`]
}

const words = (list: string | null): string[] =>
  list === null
    ? []
    : list
        .split(',')
        .map((word) => word.trim())
        .filter((word) => word !== '')
