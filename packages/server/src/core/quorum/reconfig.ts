import { ErrorCode } from '@zabra/protocol'
import {
  votersOf,
  type EnsembleConfiguration,
  type MemberConfiguration,
  type MemberAddress,
} from './configuration.ts'
import { ConfigurationError, parseConfiguration } from './parse-configuration.ts'
import type { ServerId } from './verifier.ts'

/**
 * The fields of a client's reconfig request. With `newMembers` it replaces the whole membership, else it is incremental.
 */
export interface ReconfigRequest {
  /** `server.N=…` lines, separated by commas. */
  readonly joiningServers: string | null
  /** Ids, separated by commas. */
  readonly leavingServers: string | null
  /** The lines of a complete configuration without a version, separated by commas or newlines. */
  readonly newMembers: string | null
}

/** A refused reconfig. `code` is the error code of the reply. */
export class ReconfigurationError extends Error {
  override readonly name = 'ReconfigurationError'
  readonly code: number
  constructor(message: string, code: number = ErrorCode.BADARGUMENTS) {
    super(message)
    this.code = code
  }
}

/**
 * Returns the configuration that results from a reconfig request (`PrepRequestProcessor`, op code reconfig). `version` is
 * the zxid of the reconfig, `minVoters` the fewest participants that the result may have. Throws a `ReconfigurationError`.
 */
export function applyReconfig(
  current: EnsembleConfiguration,
  change: ReconfigRequest,
  { version, minVoters }: { version: number; minVoters: number },
): EnsembleConfiguration {
  const next =
    change.newMembers === null
      ? applyIncremental(current, change)
      : // The shells and the list APIs of the clients join the lines by commas.
        { ...parseMembership(change.newMembers.replaceAll(',', '\n')), version: 0 }
  const voters = votersOf(next).length
  if (voters < minVoters)
    throw new ReconfigurationError(
      `Expected a configuration with at least ${minVoters} participants, got one with ${voters}.`,
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
      'Expected newMembers with the complete membership: a configuration with groups or weights cannot be changed incrementally.',
    )
  const members = new Map(current.members)
  for (const id of splitList(leavingServers)) members.delete(readId(id))
  for (const line of splitList(joiningServers)) {
    const joiner = readJoiner(line)
    members.set(joiner.id, joiner)
  }
  return { version: 0, members: new Map([...members].sort(([a], [b]) => a - b)) }
}

function readId(text: string): ServerId {
  if (!/^\d{1,15}$/.test(text))
    throw new ReconfigurationError(`Expected the id of a leaving server, got "${text.slice(0, 40)}".`)
  return Number(text)
}

function readJoiner(line: string): MemberConfiguration {
  // The parser rejects a configuration without a participant, so an observer is parsed together with a dummy one.
  const [, id] = /^server\.(\d{1,15})\s*=/.exec(line) ?? []
  if (id === undefined)
    throw new ReconfigurationError(`Expected server.N=… for a joining server, got "${line.slice(0, 80)}".`)
  const companion = id === '0' ? 1 : 0
  const member = parseMembership(`${line}\nserver.${companion}=companion:1:2`).members.get(Number(id))!
  if (member.client === undefined)
    throw new ReconfigurationError(
      `Expected three ports for server.${id}, the client port after a ";", got "${line.slice(0, 80)}".`,
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

/** Throws when two members have an address in common. */
function refuseSharedAddresses({ members }: EnsembleConfiguration): void {
  const owners = new Map<string, ServerId>()
  for (const { id, addresses, client } of members.values())
    for (const address of addressesOf(addresses, client)) {
      const other = owners.get(address) ?? id
      if (other !== id)
        throw new ReconfigurationError(
          `Expected different addresses for all servers, got ${address} for ${other} and ${id}.`,
        )
      owners.set(address, id)
    }
}

function addressesOf(addresses: readonly MemberAddress[], client: MemberConfiguration['client']): string[] {
  const own = addresses.flatMap(({ host, quorumPort, electionPort }) => [
    `${host}:${quorumPort}`,
    `${host}:${electionPort}`,
  ])
  // A wildcard is a different address on each host.
  return client === undefined || client.host === '0.0.0.0' ? own : [...own, `${client.host}:${client.port}`]
}

const splitList = (list: string | null): string[] =>
  list === null
    ? []
    : list
        .split(',')
        .map((item) => item.trim())
        .filter((item) => item !== '')
