import { rowOf } from './defaults.ts'
import { parseJaas, type LoginModule } from './jaas.ts'
import { readReferencedFile, type SettingsFiles } from './read-file.ts'
import type { Finding } from './sources.ts'
import type { GivenSettings, SettingName } from './table.ts'

const MODULE = 'org.apache.zookeeper.server.auth.DigestLoginModule'

/** Adds the users and passwords of logins between members from the JAAS file, and the secret from its file. */
export function collectQuorumLogin(given: GivenSettings, files: SettingsFiles, findings: Finding[]): void {
  readSecret(given, files, findings)
  if (given.get('quorumSaslEnabled')?.value !== true) return
  const link = given.get('jaasConfig')
  if (link === undefined) return
  // Problems of the file as a whole are reported where the users of clients are read.
  const text = readReferencedFile(files, String(link.value), { where: link.where, key: '' }, [])
  if (text === undefined) return
  const jaas = parseJaas(text)
  if ('problem' in jaas) return
  const modulesOf = (name: SettingName): readonly LoginModule[] =>
    jaas.sections.get(String(given.get(name)?.value ?? rowOf(name).defaultValue)) ?? []
  for (const module of modulesOf('quorumServerSection')) readUsers(module, link, given, findings)
  for (const module of modulesOf('quorumLearnerSection')) readUser(module, link, given, findings)
}

interface Link {
  readonly value: unknown
  readonly where: string
}

function readUsers(
  module: LoginModule,
  { value: path, where }: Link,
  given: GivenSettings,
  findings: Finding[],
): void {
  if (!isDigest(module, String(path), findings) || given.has('quorumSaslUsers')) return
  const users = module.options.filter(({ name }) => /^user_./.test(name))
  if (users.length === 0)
    return void findings.push({
      severity: 'error',
      where: `${String(path)}:${module.line}`,
      text: 'expected options such as user_bob="password", got none, so no member can log in.',
    })
  const value = Object.fromEntries(users.map((option) => [option.name.slice('user_'.length), option.value]))
  given.set('quorumSaslUsers', { value, where })
}

function readUser(
  module: LoginModule,
  { value: path, where }: Link,
  given: GivenSettings,
  findings: Finding[],
): void {
  if (!isDigest(module, String(path), findings)) return
  const [user, password] = ['username', 'password'].map(
    (wanted) => module.options.find(({ name }) => name === wanted)?.value,
  )
  if (!user || !password)
    return void findings.push({
      severity: 'error',
      where: `${String(path)}:${module.line}`,
      text: 'expected the options username and password, got one or none of them, so this member cannot log in.',
    })
  if (!given.has('quorumSaslUser')) given.set('quorumSaslUser', { value: user, where })
  if (!given.has('quorumSaslPassword')) given.set('quorumSaslPassword', { value: password, where })
}

function isDigest({ name, line }: LoginModule, path: string, findings: Finding[]): boolean {
  if (name === MODULE) return true
  findings.push({
    severity: 'error',
    where: `${path}:${line}`,
    text: name.endsWith('.Krb5LoginModule')
      ? `Kerberos is not supported between members. Use ${MODULE} instead.`
      : `expected the login module ${MODULE}, got ${name}.`,
  })
  return false
}

function readSecret(given: GivenSettings, files: SettingsFiles, findings: Finding[]): void {
  const link = given.get('quorumSecretFile')
  if (link === undefined || given.has('quorumSecret')) return
  const path = String(link.value)
  const { key } = rowOf('quorumSecretFile')
  const text = readReferencedFile(files, path, { where: link.where, key }, findings)?.trim()
  if (text === undefined) return
  if (rowOf('quorumSecret').type.accepts(text)) given.set('quorumSecret', { value: text, where: link.where })
  else
    findings.push({
      severity: 'error',
      where: path,
      key,
      text: `expected a secret of 32 to 4096 characters, got ${text.length}. Make one with: openssl rand -base64 32 > ${path}`,
    })
}
