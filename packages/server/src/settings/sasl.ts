import { parseProperties } from '../core/properties.ts'
import { rowOf } from './defaults.ts'
import { parseJaas, type LoginModule } from './jaas.ts'
import { bareKey } from './check-key.ts'
import { readReferencedFile, type SettingsFiles } from './read-file.ts'
import type { SettingEntry, Finding } from './sources.ts'
import type { GivenSettings, ServerSettings, SettingName } from './table.ts'

const PROVIDER = 'org.apache.zookeeper.server.auth.SASLAuthenticationProvider'
const MODULE = 'org.apache.zookeeper.server.auth.DigestLoginModule'

/** Collects the SASL users from all their sources, and settings that several keys determine together. */
export function collectSasl(
  entries: readonly SettingEntry[],
  given: GivenSettings,
  files: SettingsFiles,
  findings: Finding[],
): void {
  const users = new Users(given, findings)
  const ownUsers = users.size + readUsersFile(given, files, users, findings)
  readJaas(given, files, users, findings)
  users.store()
  const provider = entries.find((entry) => isSaslProvider(entry))
  if (!given.has('saslAclScheme') && provider !== undefined)
    given.set('saslAclScheme', { value: true, where: provider.where })
  if (!given.has('saslAclScheme') && ownUsers === 0 && users.size > 0) {
    const { where } = given.get('jaasConfig')!
    given.set('saslAclScheme', { value: false, where })
    findings.push({
      severity: 'warning',
      where,
      key: rowOf('jaasConfig').key,
      text: `its users can log in, but access control lists cannot name them, as in ZooKeeper. Add authProvider.1=${PROVIDER}.`,
    })
  }
  addSuperUsers(entries, given)
}

/** Returns whether an entry enables the scheme `sasl` in access control lists. */
function isSaslProvider(entry: SettingEntry): boolean {
  return bareKey(entry).startsWith('authProvider.') && entry.value === PROVIDER
}

/** Names and passwords from several sources; each name may occur once. */
class Users {
  readonly #byName = new Map<string, { password: string; where: string }>()
  readonly #given: GivenSettings
  readonly #findings: Finding[]
  #where = ''

  constructor(given: GivenSettings, findings: Finding[]) {
    this.#given = given
    this.#findings = findings
    const inline = given.get('saslUsers')
    if (inline === undefined) return
    for (const [name, password] of Object.entries(inline.value as ServerSettings['saslUsers']))
      this.add(name, password, inline.where, inline.where)
  }

  get size(): number {
    return this.#byName.size
  }

  /** `place` is where the user is declared, `where` the entry that refers to it. */
  add(name: string, password: string, place: string, where: string): void {
    this.#where = where
    const other = this.#byName.get(name)
    if (other !== undefined)
      this.#findings.push({
        severity: 'error',
        where: place,
        text: `the SASL user "${name}" has a password already, at ${other.where}. Remove one of them.`,
      })
    else this.#byName.set(name, { password, where: place })
  }

  /** Stores all users in the settings. */
  store(): void {
    if (this.size === 0) return
    const value = Object.fromEntries([...this.#byName].map(([name, { password }]) => [name, password]))
    this.#given.set('saslUsers', { value, where: this.#where })
  }
}

/** Adds the users of the file and returns their number. */
function readUsersFile(
  given: GivenSettings,
  files: SettingsFiles,
  users: Users,
  findings: Finding[],
): number {
  const link = given.get('saslUsersFile')
  if (link === undefined) return 0
  const path = String(link.value)
  const text = readReferencedFile(
    files,
    path,
    { where: link.where, key: rowOf('saslUsersFile').key },
    findings,
  )
  if (text === undefined) return 0
  const { properties, unreadable } = parseProperties(text)
  for (const { line, reason } of unreadable)
    findings.push({ severity: 'error', where: `${path}:${line}`, text: `${reason}.` })
  for (const { key, value, line } of properties) {
    if (key !== '' && value !== '') users.add(key, value, `${path}:${line}`, link.where)
    else findings.push({ severity: 'error', where: `${path}:${line}`, text: 'expected name=password.' })
  }
  return properties.length
}

function readJaas(given: GivenSettings, files: SettingsFiles, users: Users, findings: Finding[]): void {
  const link = given.get('jaasConfig')
  if (link === undefined) return
  const path = String(link.value)
  const text = readReferencedFile(files, path, { where: link.where, key: rowOf('jaasConfig').key }, findings)
  if (text === undefined) return
  const jaas = parseJaas(text)
  if ('problem' in jaas) {
    findings.push({ severity: 'error', where: `${path}:${jaas.line}`, text: `${jaas.problem}.` })
    return
  }
  const named = given.get('saslServerSection')
  const section = String(named?.value ?? rowOf('saslServerSection').defaultValue)
  const modules = jaas.sections.get(section)
  if (modules === undefined) {
    // The file may be there for the logins between members only.
    if (named === undefined && given.get('quorumSaslEnabled')?.value === true) return
    const others = [...jaas.sections.keys()].join(', ')
    findings.push({
      severity: named === undefined ? 'warning' : 'error',
      where: path,
      text: `expected a section ${section}, got ${others === '' ? 'none at all' : `only ${others}`}. No client can log in by SASL; sasl.serverconfig can name another section.`,
    })
    return
  }
  for (const module of modules) readModule(module, path, link.where, users, findings)
}

function readModule(
  { name, line, options }: LoginModule,
  path: string,
  where: string,
  users: Users,
  findings: Finding[],
): void {
  if (name !== MODULE) {
    const kerberos = name.endsWith('.Krb5LoginModule')
    findings.push({
      severity: 'error',
      where: `${path}:${line}`,
      text: kerberos
        ? `Kerberos is not supported. Use ${MODULE} with options user_name="password" instead.`
        : `expected the login module ${MODULE}, got ${name}.`,
    })
    return
  }
  const named = options.filter((option) => option.name.startsWith('user_'))
  if (named.length === 0)
    findings.push({
      severity: 'warning',
      where: `${path}:${line}`,
      text: 'expected options such as user_bob="password", got none, so no client can log in by it.',
    })
  for (const option of named) {
    const user = option.name.slice('user_'.length)
    const place = `${path}:${option.line}`
    if (user === '')
      findings.push({ severity: 'error', where: place, text: 'expected a name after user_, got none.' })
    else if (option.value.includes('${'))
      findings.push({
        severity: 'error',
        where: place,
        text: `the password of "${user}" holds \${…}, which Java would replace by a system property. Write the password itself.`,
      })
    else users.add(user, option.value, place, where)
  }
}

/** Adds the users of keys `superUser.<suffix>`; the whole value is the name. */
function addSuperUsers(entries: readonly SettingEntry[], given: GivenSettings): void {
  for (const entry of entries) {
    if (!bareKey(entry).startsWith('superUser.')) continue
    const names = (given.get('saslSuperUsers')?.value ?? []) as readonly string[]
    given.set('saslSuperUsers', { value: [...names, entry.value], where: entry.where })
  }
}

/** Adds findings about settings that contradict each other. */
export function checkSasl(
  settings: ServerSettings,
  whereOf: (name: SettingName) => string,
  findings: Finding[],
): void {
  const report = (severity: Finding['severity'], name: SettingName, text: string): void =>
    void findings.push({ severity, where: whereOf(name), key: rowOf(name).key, text })
  const { saslUsers, saslAclScheme, requireSasl, enforceAuthEnabled, enforceAuthSchemes } = settings
  const requiring = requireSasl
    ? 'requireSasl'
    : enforceAuthEnabled && enforceAuthSchemes.includes('sasl')
      ? 'enforceAuthSchemes'
      : undefined
  if (requiring !== undefined && !saslAclScheme)
    report('error', requiring, `needs the scheme sasl. Add authProvider.1=${PROVIDER}.`)
  if (requireSasl && Object.keys(saslUsers).length === 0)
    report(
      'error',
      'requireSasl',
      'requires a login by SASL, but there are no users. Name a file in jaas.config.',
    )
  if (settings.saslSuperPassword !== undefined && !Object.hasOwn(saslUsers, 'super'))
    report('warning', 'saslSuperPassword', 'has no effect: there is no SASL user named super.')
}
