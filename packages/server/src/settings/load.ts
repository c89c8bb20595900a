import { formatZxid } from '@zabra/protocol'
import { parseConfiguration, votersOf, type EnsembleConfiguration } from '../core/quorum/index.ts'
import {
  asChecked,
  withDefaults,
  MAX_ID_WITH_EXTENDED_TYPES,
  rowOf,
  settingNames,
  transportProblems,
} from './defaults.ts'
import { bareKey, describeValue, checkOtherKey } from './check-key.ts'
import { isMembershipKey, parseMembership, checkOwnMembership, type DeclaredMembership } from './members.ts'
import { adminSecurityProblems } from './admin-security.ts'
import { auditProblems } from './audit-problems.ts'
import { memberSecurityProblems, memberSecurityWarnings } from './member-security.ts'
import { collectQuorumLogin } from './quorum-login.ts'
import { readReferencedFile, type SettingsFiles } from './read-file.ts'
import { checkSasl, collectSasl } from './sasl.ts'
import {
  parseZooCfg,
  settingsFromEnvironment,
  type SettingEntry,
  type Environment,
  type Finding,
} from './sources.ts'
import type { GivenSettings, ServerSettings, SettingName } from './table.ts'

export interface SettingsSources {
  readonly file?: { readonly name: string; readonly text: string }
  readonly environment?: Environment
  /** Values of command-line flags by key; `flag` is what the user typed, such as `--port`. */
  readonly flags?: readonly { readonly flag: string; readonly key: string; readonly value: string }[]
  readonly files: SettingsFiles
}

export interface LoadedSettings {
  /** Undefined if there is an error among the findings. */
  readonly settings: ServerSettings | undefined
  /** All errors and warnings. */
  readonly findings: readonly Finding[]
  /** Where each setting comes from: `zoo.cfg:12`, `JVMFLAGS`, …, or `default`. */
  readonly origins: Readonly<Record<SettingName, string>>
}

const nameOfKey = new Map(settingNames.map((name) => [rowOf(name).key, name]))
const nameOfProperty = new Map(
  settingNames.flatMap((name) => [[rowOf(name).property ?? `zookeeper.${rowOf(name).key}`, name] as const]),
)

/**
 * Merges all sources into settings. Precedence, lowest first: defaults, `-D` in `SERVER_JVMFLAGS`, then in `JVMFLAGS`, variables of the
 * container image (`ZOO_*`), the configuration file, flags. Apache ZooKeeper has the same order: a key in `zoo.cfg`, into which its
 * image writes the variables, overrides the same one given with `-D`.
 */
export function loadSettings(sources: SettingsSources): LoadedSettings {
  const findings: Finding[] = []
  const entries = gather(sources, findings)
  const strict = lastOf(entries, 'strictConfig')?.value.toLowerCase() !== 'false'
  const given = new Map() as GivenSettings
  const members: SettingEntry[] = []
  for (const entry of entries) {
    const name = settingOf(entry, findings)
    if (name !== undefined) readValue(name, entry, given, findings)
    else if (isMembershipKey(entry.key)) members.push(entry)
    else checkOtherKey(entry, strict, findings)
  }
  const standaloneEnabled = given.get('standaloneEnabled')?.value !== false
  const membership = parseMembership(
    members,
    { standaloneEnabled, version: dynamicVersion(entries) },
    findings,
  )
  if (sources.file) requireDataDir(sources.file.name, given, findings)
  resolvePaths(given, sources.files)
  if (sources.file && membership.ensemble)
    rejectUnfinishedReconfig(
      sources.file.name,
      String(given.get('dataDir')?.value),
      membership.ensemble,
      sources.files,
      findings,
    )
  setServerId(given, membership, sources.files, findings)
  setClientPort(given, membership, findings)
  requireClientPort(entries, given, findings)
  collectSasl(entries, given, sources.files, findings)
  collectQuorumLogin(given, sources.files, findings)
  const values = withDefaults(Object.fromEntries([...given].map(([name, { value }]) => [name, value])))
  const { ensemble } = membership
  const secretsInFile = secretsIn(entries, sources)
  const settings = Object.freeze({
    ...values,
    ...(ensemble === undefined ? {} : { ensemble }),
    ...(secretsInFile === undefined ? {} : { secretsInFile }),
  })
  if (ensemble !== undefined)
    checkOwnMembership(
      ensemble,
      settings.serverId,
      {
        idFrom: given.get('serverId')?.where,
        where: members[0]!.where,
        peerType: settings.peerType,
        multiAddress: settings.multiAddress,
      },
      findings,
    )
  crossCheck(settings, given, findings)
  const origins = Object.fromEntries(
    settingNames.map((name) => [name, given.get(name)?.where ?? 'default']),
  ) as Record<SettingName, string>
  const failed = findings.some(({ severity }) => severity === 'error')
  return {
    settings: failed ? undefined : asChecked(settings, origins),
    findings,
    origins,
  }
}

/** Returns the configuration file with the keys of the secrets in it, also of those that another source overrides. */
function secretsIn(
  entries: readonly SettingEntry[],
  { file, files }: SettingsSources,
): ServerSettings['secretsInFile'] {
  const keys = entries
    .filter(({ source, key }) => {
      const name = source === 'file' ? nameOfKey.get(key) : undefined
      return name !== undefined && rowOf(name).isSecret === true
    })
    .map(({ key }) => key)
  return file === undefined || keys.length === 0
    ? undefined
    : { path: files.resolve(file.name), keys: [...new Set(keys)] }
}

/** Collects the entries of all sources, lowest precedence first. */
function gather(sources: SettingsSources, findings: Finding[]): SettingEntry[] {
  const fromEnvironment = settingsFromEnvironment(sources.environment ?? {})
  findings.push(...fromEnvironment.findings)
  const entries = [...fromEnvironment.entries]
  if (sources.file) {
    const { name, text } = sources.file
    const fromFile = parseZooCfg(text, name)
    findings.push(...fromFile.findings)
    entries.push(...fromFile.entries)
    addDynamicFile(fromFile.entries, entries, sources.files, findings)
  }
  for (const { flag, key, value } of sources.flags ?? [])
    entries.push({ key, value, where: flag, source: 'flag' })
  return entries
}

/** Adds the members of the file that `dynamicConfigFile` names; the static file must not declare any then. */
function addDynamicFile(
  fromFile: readonly SettingEntry[],
  entries: SettingEntry[],
  files: SettingsFiles,
  findings: Finding[],
): void {
  const link = lastOf(fromFile, 'dynamicConfigFile')
  if (!link) return
  for (const { key, where } of fromFile)
    if (/^(server\.|group|weight)/.test(key))
      findings.push({
        severity: 'error',
        where,
        key,
        text: `must be in the dynamic file, since dynamicConfigFile (${link.where}) is set.`,
      })
  const text = readReferencedFile(files, files.resolve(link.value), link, findings)
  if (text === undefined) return
  const dynamic = parseZooCfg(text, link.value)
  findings.push(...dynamic.findings)
  for (const entry of dynamic.entries) {
    if (/^(server|group|weight)\./.test(entry.key)) entries.push(entry)
    else
      findings.push({
        severity: 'error',
        where: entry.where,
        key: entry.key,
        text:
          entry.key === 'version'
            ? 'must not be in a dynamic file. Remove this line: the version is the end of the name of the file, as in zoo.cfg.dynamic.100000000.'
            : 'expected only server.N, group.N and weight.N in a dynamic file. Move this line to the static one.',
      })
  }
}

function lastOf(entries: readonly SettingEntry[], key: string): SettingEntry | undefined {
  return entries.findLast((entry) => bareKey(entry) === key)
}

/** Returns the setting of an entry; warns when Apache ZooKeeper would ignore the entry. */
function settingOf(entry: SettingEntry, findings: Finding[]): SettingName | undefined {
  const { key, source: by, where } = entry
  const exact = by === 'property' ? nameOfProperty.get(key) : nameOfKey.get(key)
  const name = exact ?? (by === 'property' ? nameOfKey.get(key.replace(/^zookeeper\./, '')) : undefined)
  if (name === undefined) return undefined
  const row = rowOf(name)
  const ignoredThere =
    (by === 'file' && (row.isPropertyOnly || key !== row.key)) ||
    (by === 'property' && (row.property === undefined || key !== row.property))
  if (ignoredThere)
    findings.push({
      severity: 'warning',
      where,
      key,
      text: `is accepted here, but ZooKeeper ignores it in this place and takes ${apacheKeys(name)} only.`,
    })
  return name
}

/** Describes how Apache ZooKeeper accepts a setting. */
function apacheKeys(name: SettingName): string {
  const { key, property, isPropertyOnly: propertyOnly } = rowOf(name)
  return propertyOnly
    ? `-D${property}`
    : property === undefined
      ? `${key} in zoo.cfg`
      : `${key} in zoo.cfg or -D${property}`
}

function readValue(name: SettingName, entry: SettingEntry, given: GivenSettings, findings: Finding[]): void {
  const { where, key } = entry
  const row = rowOf(name)
  // Apache ZooKeeper raises a smaller number to 3 instead of rejecting it; files that rely on that must still work.
  if (name === 'purgeRetainCount' && /^-?[0-9]$/.test(entry.value) && Number(entry.value) < 3) {
    findings.push({
      severity: 'warning',
      where,
      key,
      text: `expected at least 3, got ${entry.value}; 3 is used.`,
    })
    given.set(name, { value: 3, where })
    return
  }
  const value = row.type.read(entry.value)
  if (value === undefined) {
    findings.push({
      severity: 'error',
      where,
      key,
      text: `expected ${row.type.expected}, ${describeValue(entry, row.isSecret)}`,
    })
    return
  }
  given.set(name, { value, where })
  const apacheReading =
    entry.source === 'flag' || row.isOwn === true ? undefined : row.type.apacheReading?.(entry.value)
  if (apacheReading !== undefined)
    findings.push({
      severity: 'warning',
      where,
      key,
      text: `is taken as ${row.type.show(value)}; ${apacheReading}.`,
    })
}

function requireDataDir(file: string, given: GivenSettings, findings: Finding[]): void {
  if (
    !given.has('dataDir') &&
    !findings.some(({ key, severity }) => key === 'dataDir' && severity === 'error')
  )
    findings.push({
      severity: 'error',
      where: file,
      key: 'dataDir',
      text: 'is not set. Add a line such as dataDir=/var/lib/zookeeper, or pass --data.',
    })
}

function requireClientPort(
  entries: readonly SettingEntry[],
  given: GivenSettings,
  findings: Finding[],
): void {
  const address = lastOf(entries, 'clientPortAddress')
  if (given.has('clientPort') || lastOf(entries, 'secureClientPort')) return
  if (address && address.source === 'file')
    findings.push({
      severity: 'error',
      where: address.where,
      key: 'clientPortAddress',
      text: 'is set but clientPort is not. Add a line such as clientPort=2181.',
    })
}

function resolvePaths(given: GivenSettings, files: SettingsFiles): void {
  if (!given.has('dataDir')) given.set('dataDir', { value: rowOf('dataDir').defaultValue, where: 'default' })
  for (const [name, { value, where }] of given)
    if (rowOf(name).isPath) given.set(name, { value: files.resolve(String(value)), where })
}

/** Returns the version of a dynamic file: the hexadecimal suffix of its name (disk-format 11). */
function dynamicVersion(entries: readonly SettingEntry[]): number {
  const [, suffix = ''] = /\.([\da-f]{1,13})$/i.exec(lastOf(entries, 'dynamicConfigFile')?.value ?? '') ?? []
  return suffix === '' ? 0 : Number.parseInt(suffix, 16)
}

/** Takes the client port from the member line of this server; it must not contradict `clientPort`. */
function setClientPort(
  given: GivenSettings,
  { ensemble, standalone }: DeclaredMembership,
  findings: Finding[],
): void {
  const self = given.get('serverId')?.value
  const client = standalone?.client ?? ensemble?.members.get(Number(self))?.client
  if (client === undefined) return
  const where = standalone?.where ?? `server.${String(self)}`
  const own = given.get('clientPort')
  if (own !== undefined && own.value !== client.port && ensemble !== undefined)
    findings.push({
      severity: 'error',
      where: own.where,
      key: 'clientPort',
      text: `is ${String(own.value)}, but server.${String(self)} says ${client.port}. Leave one of them.`,
    })
  if (own !== undefined) return
  given.set('clientPort', { value: client.port, where })
  if (client.host !== '0.0.0.0' && !given.has('clientPortAddress'))
    given.set('clientPortAddress', { value: client.host, where })
}

/**
 * Refuses to start beside a file in which ZooKeeper keeps a reconfiguration from its proposal until it is committed
 * (disk-format 11): whether it counts is not known. A file in the data folder is one of this server.
 */
function rejectUnfinishedReconfig(
  file: string,
  dataDir: string,
  { version }: EnsembleConfiguration,
  files: SettingsFiles,
  findings: Finding[],
): void {
  const path = files.resolve(`${file}.dynamic.next`)
  if (path === `${dataDir}/zoo.cfg.dynamic.next`) return
  const error = (text: string): void => void findings.push({ severity: 'error', where: path, text })
  try {
    const text = files.read(path)
    if (text === undefined) return
    const next = parseConfiguration(text)
    if (next.version > version)
      error(
        `holds the reconfiguration ${formatZxid(next.version)}, which ZooKeeper has not finished. Start ZooKeeper with this file once more until it has, or remove the file if the members in ${file} are the ones that count.`,
      )
  } catch (reason) {
    error(
      `is where ZooKeeper keeps an unfinished reconfiguration, and cannot be read as one: ${reason instanceof Error ? reason.message : String(reason)} Correct the file, or remove it.`,
    )
  }
}

/** Takes the server id from `myid`. Invalid contents are an error only for a member of an ensemble. */
function setServerId(
  given: GivenSettings,
  { ensemble, standalone }: DeclaredMembership,
  files: SettingsFiles,
  findings: Finding[],
): void {
  const path = `${String(given.get('dataDir')?.value)}/myid`
  let text: string | undefined
  try {
    text = files.read(path)?.trim()
  } catch (error) {
    findings.push({
      severity: 'warning',
      where: path,
      text: `cannot be read: ${error instanceof Error ? error.message : String(error)}.`,
    })
  }
  if (text !== undefined) {
    const id = /^\d+$/.test(text) ? Number(text) : Number.NaN
    const member = standalone?.id ?? (ensemble === undefined ? undefined : 'the id of this member')
    if (id <= 255) given.set('serverId', { value: id, where: path })
    else
      findings.push({
        severity: member === undefined ? 'warning' : 'error',
        where: `${path}:1`,
        text: `expected a number from 0 to 255, got "${text.slice(0, 40)}".${member === undefined ? ' A standalone server continues without it.' : ` Write ${member} into it.`}`,
      })
  } else if (standalone !== undefined && !given.has('serverId'))
    given.set('serverId', { value: standalone.id, where: `server.${standalone.id}` })
}

function crossCheck(settings: ServerSettings, given: GivenSettings, findings: Finding[]): void {
  const { minSessionTimeoutMs: min, maxSessionTimeoutMs: max } = settings
  if (min > max) {
    const where = given.get('minSessionTimeoutMs')?.where ?? given.get('maxSessionTimeoutMs')?.where ?? ''
    findings.push({
      severity: 'error',
      where,
      key: 'minSessionTimeout',
      text: `expected at most maxSessionTimeout (${max} ms), got ${min} ms. Unset, they are 2 and 20 times tickTime (${settings.tickTimeMs} ms).`,
    })
  }
  if (settings.extendedTypesEnabled && settings.serverId > MAX_ID_WITH_EXTENDED_TYPES)
    findings.push({
      severity: 'error',
      where: given.get('serverId')?.where ?? '',
      key: 'myid',
      text: `expected an id of at most ${MAX_ID_WITH_EXTENDED_TYPES} while extendedTypesEnabled is on, got ${settings.serverId}: the owners of TTL nodes begin with 255.`,
    })
  for (const name of settingNames) {
    const { type, key, defaultValue } = rowOf(name)
    if (given.has(name) || typeof defaultValue !== 'function' || type.accepts(settings[name])) continue
    findings.push({
      severity: 'error',
      where: 'default',
      key,
      text: `expected ${type.expected}, got ${type.show(settings[name])}, which follows from other settings. Set it.`,
    })
  }
  checkSasl(settings, (name) => given.get(name)?.where ?? '', findings)
  const warn = (name: SettingName, text: string): void => {
    findings.push({ severity: 'warning', where: given.get(name)?.where ?? '', key: rowOf(name).key, text })
  }
  for (const { name, text } of [
    ...transportProblems(settings),
    ...auditProblems(settings),
    ...memberSecurityProblems(settings),
    ...adminSecurityProblems(settings),
  ])
    findings.push({
      severity: 'error',
      where: given.get(name)?.where ?? 'default',
      key: rowOf(name).key,
      text: `${text}.`,
    })
  for (const { name, text } of memberSecurityWarnings(settings)) warn(name, `${text}.`)
  if (settings.oraclePath !== undefined) warn('oraclePath', oracleWarning(settings))
  if (settings.skipAcl)
    warn('skipAcl', 'is on: access control lists are not checked, every client may do everything.')
  if (!settings.forceSync) warn('forceSync', 'is off: a power cut loses acknowledged writes.')
  if (settings.enforceAuthEnabled && settings.enforceAuthSchemes.length === 0)
    findings.push({
      severity: 'error',
      where: given.get('enforceAuthEnabled')?.where ?? '',
      key: 'enforce.auth.enabled',
      text: 'needs enforce.auth.schemes. Add a line such as enforce.auth.schemes=digest.',
    })
}

/** Returns the warning about an oracle: its risk, or that it is not used. */
function oracleWarning({ ensemble }: ServerSettings): string {
  const voters = ensemble === undefined ? 0 : votersOf(ensemble).length
  return voters === 2 && ensemble?.hierarchy === undefined
    ? 'lets one of two members continue alone. If it does so for both while they cannot reach each other, acknowledged writes of one are lost.'
    : 'is used in an ensemble of exactly two participants only; it has no effect here.'
}
