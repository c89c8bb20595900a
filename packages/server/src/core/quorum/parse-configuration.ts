import { parseProperties } from '../properties.ts'
import type {
  EnsembleConfiguration,
  MemberConfiguration,
  MemberAddress,
  MemberRole,
} from './configuration.ts'
import type { Hierarchy, ServerId } from './verifier.ts'

/** An invalid configuration. */
export class ConfigurationError extends Error {
  override readonly name = 'ConfigurationError'
  /** Number of the invalid line, counted from 1; 0 when no single line is invalid. */
  readonly line: number
  constructor(line: number, message: string, options?: ErrorOptions) {
    super(line === 0 ? message : `line ${line}: ${message}`, options)
    this.line = line
  }
}

interface ParsedLines {
  readonly members: Map<ServerId, MemberConfiguration>
  readonly groups: Map<number, { ids: ServerId[]; line: number }>
  readonly weights: Map<ServerId, { weight: number; line: number }>
  version: number | undefined
}

/**
 * Parses the text of a configuration. `version` is the version in the file name; with it the text must not contain a
 * version line. Throws a `ConfigurationError` with the number of the line.
 */
export function parseConfiguration(text: string, version?: number): EnsembleConfiguration {
  const { properties, unreadable } = parseProperties(text)
  for (const { line, reason } of unreadable) throw new ConfigurationError(line, reason)
  return buildConfiguration(properties, version)
}

/** One key of a configuration, and the number of its line for error messages. */
export interface ConfigurationProperty {
  readonly key: string
  readonly value: string
  readonly line: number
}

/** As `parseConfiguration`, from lines that are already parsed, such as those of `zoo.cfg`. */
export function buildConfiguration(
  lines: readonly ConfigurationProperty[],
  version?: number,
): EnsembleConfiguration {
  const read: ParsedLines = { members: new Map(), groups: new Map(), weights: new Map(), version: undefined }
  const seen = new Map<string, number>()
  for (const { key, value, line } of lines) {
    const earlier = seen.get(key)
    if (earlier !== undefined)
      throw new ConfigurationError(line, `${key} repeats line ${earlier}. Remove one of them.`)
    seen.set(key, line)
    readLine(key, value, line, read)
  }
  if (version !== undefined && read.version !== undefined)
    throw new ConfigurationError(
      seen.get('version')!,
      'the file name already contains the version. Remove this line.',
    )
  return assemble(read, version ?? read.version ?? 0)
}

function readLine(key: string, value: string, line: number, read: ParsedLines): void {
  if (key === 'version') {
    read.version = readVersion(value, line)
    return
  }
  const [, kind, number] = /^(server|group|weight)\.(\d{1,15})$/.exec(key) ?? []
  const id = Number(number)
  if (kind === 'server') read.members.set(id, readMember(id, value, line))
  else if (kind === 'group') read.groups.set(id, { ids: readIds(value, line), line })
  else if (kind === 'weight') read.weights.set(id, { weight: readWeight(value, line), line })
  else
    throw new ConfigurationError(
      line,
      `expected server.N, group.N, weight.N or version, got ${quoted(key)}. Other settings belong in zoo.cfg.`,
    )
}

function assemble({ members, groups, weights }: ParsedLines, version: number): EnsembleConfiguration {
  const sorted = new Map([...members].sort(([a], [b]) => a - b))
  const voters = [...sorted.values()].filter(({ role }) => role === 'participant').map(({ id }) => id)
  if (voters.length === 0)
    throw new ConfigurationError(
      0,
      'expected at least one participant; observers alone cannot form a quorum.',
    )
  if (groups.size === 0 && weights.size === 0) return { version, members: sorted }
  const voterIds = new Set(voters)
  const hierarchy: Hierarchy = {
    groups: new Map([...groups].map(([group, { ids }]) => [group, ids])),
    weights: new Map([...weights].map(([id, { weight }]) => [id, weight])),
  }
  checkGroups(groups, voterIds)
  for (const [id, { line }] of weights)
    if (!voterIds.has(id)) throw new ConfigurationError(line, `weight.${id}: server ${id} is no participant.`)
  if (voters.every((id) => hierarchy.weights.get(id) === 0))
    throw new ConfigurationError(
      0,
      'expected a participant with a weight above 0; no server could be elected.',
    )
  return { version, members: sorted, hierarchy }
}

function checkGroups(groups: ParsedLines['groups'], voters: ReadonlySet<ServerId>): void {
  const groupOf = new Map<ServerId, number>()
  for (const [group, { ids, line }] of groups)
    for (const id of ids) {
      const other = groupOf.get(id)
      if (other !== undefined)
        throw new ConfigurationError(
          line,
          `server ${id} is already in group ${other}; a server can be in one group only.`,
        )
      if (!voters.has(id))
        throw new ConfigurationError(
          line,
          `server ${id} is no participant, so it cannot be in group ${group}.`,
        )
      groupOf.set(id, group)
    }
  for (const id of voters)
    if (!groupOf.has(id))
      throw new ConfigurationError(
        0,
        `server ${id} is in no group. With groups or weights, each participant must be in one.`,
      )
}

const ADDRESS_FORM = 'host:quorumPort:electionPort[:participant|observer][|…][;[address:]clientPort]'
const HOST_PATTERN = String.raw`(?:\[([\da-fA-F:.%\w]+)\]|([^\[\]:;|\s]+))`
const ADDRESS_PATTERN = new RegExp(`^${HOST_PATTERN}:(\\d{1,5}):(\\d{1,5})(?::(participant|observer))?$`, 'i')
const CLIENT_PATTERN = new RegExp(`^(?:${HOST_PATTERN}:)?(\\d{1,5})$`)

function readMember(id: ServerId, value: string, line: number): MemberConfiguration {
  const [addresses = '', client, more] = value.split(';').map((part) => part.trim())
  if (more !== undefined)
    throw new ConfigurationError(line, `expected at most one ";", got ${quoted(value)}.`)
  const read = addresses.split('|').map((address) => readAddress(address.trim(), line))
  const roles = new Set(read.map(({ role }) => role).filter((role) => role !== undefined))
  if (roles.size > 1)
    throw new ConfigurationError(
      line,
      `expected one role for all addresses of a server, got ${quoted(value)}.`,
    )
  return {
    id,
    addresses: read.map(({ address }) => address),
    role: [...roles][0] ?? 'participant',
    ...(client === undefined ? {} : { client: readClient(client, line) }),
  }
}

function readAddress(text: string, line: number): { address: MemberAddress; role: MemberRole | undefined } {
  const match = ADDRESS_PATTERN.exec(text)
  if (match === null) throw new ConfigurationError(line, `expected ${ADDRESS_FORM}, got ${quoted(text)}.`)
  const [, bracketed, bare, quorum, election, role] = match
  const address = {
    host: (bracketed ?? bare)!,
    quorumPort: readPort(quorum!, 1, line),
    electionPort: readPort(election!, 1, line),
  }
  if (address.quorumPort === address.electionPort)
    throw new ConfigurationError(
      line,
      `expected different ports for quorum and election, got ${quoted(text)}.`,
    )
  return { address, role: role?.toLowerCase() as MemberRole | undefined }
}

function readClient(text: string, line: number): { host: string; port: number } {
  const match = CLIENT_PATTERN.exec(text)
  if (match === null)
    throw new ConfigurationError(line, `expected [address:]clientPort, got ${quoted(text)}.`)
  const [, bracketed, bare, port] = match
  return { host: bracketed ?? bare ?? '0.0.0.0', port: readPort(port!, 0, line) }
}

function readPort(text: string, min: number, line: number): number {
  const port = Number(text)
  if (port < min || port > 65_535)
    throw new ConfigurationError(line, `expected a port from ${min} to 65535, got ${text}.`)
  return port
}

function readIds(value: string, line: number): ServerId[] {
  if (!/^\d{1,15}(:\d{1,15})*$/.test(value))
    throw new ConfigurationError(line, `expected server ids separated by ":", got ${quoted(value)}.`)
  return value.split(':').map(Number)
}

function readWeight(value: string, line: number): number {
  if (!/^\d{1,9}$/.test(value))
    throw new ConfigurationError(line, `expected a weight from 0 to 999999999, got ${quoted(value)}.`)
  return Number(value)
}

function readVersion(value: string, line: number): number {
  const version = /^[\da-f]{1,16}$/i.test(value) ? Number.parseInt(value, 16) : Number.NaN
  if (!Number.isSafeInteger(version))
    throw new ConfigurationError(line, `expected a zxid in hexadecimal, got ${quoted(value)}.`)
  return version
}

/** Quotes and shortens input text for an error message. */
const quoted = (text: string): string => JSON.stringify(text.length > 80 ? `${text.slice(0, 80)}…` : text)
