import {
  ConfigurationError,
  buildConfiguration,
  votersOf,
  type EnsembleConfiguration,
  type MemberConfiguration,
} from '../core/quorum/index.ts'
import type { SettingEntry, Finding } from './sources.ts'

/** The members that a configuration file declares. */
export interface DeclaredMembership {
  /** Absent for a standalone server. */
  readonly ensemble?: EnsembleConfiguration
  /** The only member line, of a standalone server. */
  readonly standalone?: {
    readonly id: number
    readonly client?: NonNullable<MemberConfiguration['client']>
    readonly where: string
  }
}

const memberKey = /^(server|group|weight)\.(\d+)$/
const MAX_ID = 255

/** Returns the fewest voters that a change of the members may leave: one alone is a standalone server, unless the settings say otherwise. */
export const fewestVoters = ({ standaloneEnabled }: { readonly standaloneEnabled: boolean }): number =>
  standaloneEnabled ? 2 : 1

/** Returns whether a key declares something about members. */
export function isMembershipKey(key: string): boolean {
  return /^(server|group|weight)\./.test(key)
}

/**
 * Parses the `server.N`, `group.N` and `weight.N` lines. One server means a standalone server, as in Apache ZooKeeper, unless
 * `standaloneEnabled` is off. `version` is the one in the name of the dynamic file.
 */
export function parseMembership(
  entries: readonly SettingEntry[],
  { standaloneEnabled, version }: { standaloneEnabled: boolean; version: number },
  findings: Finding[],
): DeclaredMembership {
  const lines = validLines(entries, findings)
  if (lines.length === 0) return {}
  const servers = lines.filter(({ key }) => key.startsWith('server.'))
  if (servers.length === 1 && lines.length === 1 && standaloneEnabled)
    return readStandalone(servers[0]!, findings)
  const ensemble = readAll(lines, version, findings)
  if (ensemble === undefined) return {}
  const voters = votersOf(ensemble).length
  if (voters === 1 && standaloneEnabled) {
    findings.push({
      severity: 'error',
      where: servers[0]!.where,
      key: servers[0]!.key,
      text: 'is the only participant, and observers need an ensemble. Set standaloneEnabled=false, or add participants.',
    })
    return {}
  }
  if (voters % 2 === 0)
    findings.push({
      severity: 'warning',
      where: servers[0]!.where,
      text: `${voters} participants tolerate the loss of no more members than ${voters - 1} do. Prefer an odd number.`,
    })
  return { ensemble }
}

/** Returns the last line of each key, and reports lines with invalid keys. */
function validLines(entries: readonly SettingEntry[], findings: Finding[]): SettingEntry[] {
  const lines = new Map<string, SettingEntry>()
  for (const entry of entries) {
    const [, kind, id] = memberKey.exec(entry.key) ?? []
    if (kind !== undefined && (kind === 'group' || Number(id) <= MAX_ID)) lines.set(entry.key, entry)
    else
      findings.push({
        severity: 'error',
        where: entry.where,
        key: entry.key,
        text: `expected server.N, group.N or weight.N with N a number, for servers from 0 to ${MAX_ID}.`,
      })
  }
  return [...lines.values()]
}

function readAll(
  lines: readonly SettingEntry[],
  version: number,
  findings: Finding[],
): EnsembleConfiguration | undefined {
  try {
    return buildConfiguration(
      lines.map(({ key, value }, at) => ({ key, value, line: at + 1 })),
      version,
    )
  } catch (error) {
    if (!(error instanceof ConfigurationError)) throw error
    const entry = lines[error.line - 1]
    findings.push({
      severity: 'error',
      where: entry?.where ?? lines[0]!.where,
      ...(entry === undefined ? {} : { key: entry.key }),
      text: error.message.replace(/^line \d+: /, ''),
    })
    return undefined
  }
}

/** Reads the line of a standalone server, which needs no election port; files of old versions have none. */
function readStandalone(entry: SettingEntry, findings: Finding[]): DeclaredMembership {
  const value = entry.value.replace(
    /^(\[[^\]]*\]|[^[\]:;|]+):(\d+)(?=;|$)/,
    (whole, _, port) => `${whole}:${port === '1' ? 2 : 1}`,
  )
  const ensemble = readAll([{ ...entry, value }], 0, findings)
  if (ensemble === undefined) return {}
  findings.push({
    severity: 'warning',
    where: entry.where,
    key: entry.key,
    text: 'is the only member, so the server is standalone; its quorum and election ports are not opened.',
  })
  const [member] = ensemble.members.values()
  const { id, client } = member!
  return { standalone: { id, where: entry.where, ...(client === undefined ? {} : { client }) } }
}

/** Adds findings about the member `self` that this server is in the ensemble. */
export function checkOwnMembership(
  ensemble: EnsembleConfiguration,
  self: number,
  {
    idFrom,
    where,
    peerType,
    multiAddress,
  }: {
    /** The place where the id was set; undefined if it is not set. */
    idFrom: string | undefined
    where: string
    peerType: string | undefined
    multiAddress: boolean
  },
  findings: Finding[],
): void {
  const ids = [...ensemble.members.keys()].join(', ')
  const member = ensemble.members.get(self)
  if (idFrom === undefined || member === undefined) {
    findings.push({
      severity: 'error',
      where: idFrom ?? where,
      text:
        idFrom === undefined
          ? `expected a file myid in dataDir that says which member this is, got none. Write one of ${ids} into it.`
          : `expected the id of a member (${ids}), got ${self}. Correct it, or add a line server.${self}=…`,
    })
    return
  }
  if (peerType !== undefined && peerType !== member.role)
    findings.push({
      severity: 'warning',
      where,
      key: 'peerType',
      text: `is ${peerType}, but server.${self} makes this member ${member.role === 'observer' ? 'an observer' : 'a participant'}, which takes precedence.`,
    })
  for (const { id, addresses } of ensemble.members.values())
    if (addresses.length > 1 && !multiAddress)
      findings.push({
        severity: 'error',
        where,
        key: `server.${id}`,
        text: `names ${addresses.length} addresses, which needs multiAddress.enabled=true on all members. Set it, or leave one address.`,
      })
}
