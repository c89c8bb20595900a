import {
  ConfigurationError,
  buildConfiguration,
  votersOf,
  type EnsembleConfiguration,
  type MemberConfiguration,
} from '../core/quorum/index.ts'
import type { SettingEntry, Finding } from './sources.ts'

/** Who belongs together, as the operator has written it. */
export interface DeclaredMembership {
  /** Present when there is an ensemble; a lone server has none. */
  readonly ensemble?: EnsembleConfiguration
  /** The only member line of a lone server. */
  readonly standalone?: {
    readonly id: number
    readonly client?: NonNullable<MemberConfiguration['client']>
    readonly where: string
  }
}

const memberKey = /^(server|group|weight)\.(\d+)$/
const MAX_ID = 255

/** Whether a key declares something of an ensemble. */
export function isMembershipKey(key: string): boolean {
  return /^(server|group|weight)\./.test(key)
}

/**
 * Judges the `server.N`, `group.N` and `weight.N` lines. One server means a server on its own, as in ZooKeeper, unless
 * `standaloneEnabled` is off. `version` is that of the dynamic file's name.
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
      text: `${voters} participants survive the loss of no more members than ${voters - 1} do. Prefer an odd number.`,
    })
  return { ensemble }
}

/** One line for each key, the last one given, without those whose keys say nothing. */
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

/** A lone server needs no election port, and old files have none. */
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
    text: 'is the only member, so the server runs on its own; its quorum and election ports are not opened.',
  })
  const [member] = ensemble.members.values()
  const { id, client } = member!
  return { standalone: { id, where: entry.where, ...(client === undefined ? {} : { client }) } }
}

/** What is wrong between an ensemble and the server that is to be its member `self`. */
export function checkOwnMembership(
  ensemble: EnsembleConfiguration,
  self: number,
  {
    idFrom,
    where,
    peerType,
    multiAddress,
  }: {
    /** Where the id comes from, or undefined when nobody has given one. */
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
      text: `is ${peerType}, but server.${self} makes this member ${member.role === 'observer' ? 'an observer' : 'a participant'}, and that counts.`,
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
