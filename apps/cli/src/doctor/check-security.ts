import { digestId } from '@zabra/protocol'
import { usesAdminTls, usesQuorumTls, type ServerSettings } from '@zabra/server/settings'
import { finding, type Finding } from './finding.ts'

/** Passwords that documents, examples and images of Zabra and Apache ZooKeeper print. */
const EXAMPLES = (
  'SECRET secret password passwd admin admin-secret adminsecret adminpw super super123 superpw bobsecret ' +
  'changeit changeme test testpass zookeeper zabra 123456'
).split(' ')

/** Checks who may reach a server with these settings, and how. Names users, and no passwords. */
export function* checkSecurity(file: string, settings: ServerSettings): Generator<Finding> {
  if (settings.skipAcl)
    yield finding('skip-acl', file, 'skipACL=yes: no access list is checked', 'Remove skipACL.')
  yield* checkPasswords(file, settings)
  yield* checkPorts(file, settings)
  if (!isLoopback(settings.adminAddress) && settings.adminAnonymous.includes('view'))
    yield finding(
      'open-admin',
      file,
      `anyone who reaches ${settings.adminAddress} may read the state of the server (admin.anonymous=view)`,
      'Remove view from admin.anonymous, and give roles with admin.role.view.',
    )
  if (!settings.auditEnabled)
    yield finding(
      'no-audit',
      file,
      'audit.enable is off: who has changed what is not recorded',
      'Set audit.enable=true where that must be known later.',
    )
}

function* checkPasswords(file: string, settings: ServerSettings): Generator<Finding> {
  const remedy = (what: string): string => `Set another one, which no document prints: ${what}.`
  const [user = ''] = (settings.superDigest ?? '').split(':', 1)
  if (EXAMPLES.some((password) => digestId(`${user}:${password}`) === settings.superDigest))
    yield finding(
      'known-password',
      file,
      'the password of the superuser is one of examples',
      remedy('zabra digest super makes the superDigest'),
    )
  const users = { ...settings.saslUsers, ...settings.quorumSaslUsers }
  const own = settings.quorumSaslPassword
  if (settings.quorumSaslUser !== undefined && own !== undefined) users[settings.quorumSaslUser] = own
  const known = Object.keys(users).filter((name) => EXAMPLES.includes(users[name]!))
  if (known.length > 0)
    yield finding(
      'known-password',
      file,
      `the SASL passwords of ${known.join(', ')} are ones of examples`,
      remedy('in the file of sasl.digest.usersFile, or the JAAS file'),
    )
}

function* checkPorts(file: string, settings: ServerSettings): Generator<Finding> {
  const ports = [
    ['clientPort', settings.clientPort, settings.clientPortAddress, true],
    ['webSocketPort', settings.webSocketPort, settings.webSocketPortAddress, !settings.webSocketSecure],
  ] as const
  const open = ports
    .filter(([, port, host, isPlain]) => port !== undefined && isPlain && !isLoopback(host ?? ''))
    .map(([name, port]) => `${name} ${port}`)
  if (open.length > 0)
    yield finding(
      'plain-clients',
      file,
      `${open.join(' and ')} ${open.length === 1 ? 'accepts' : 'accept'} connections without TLS from other machines: passwords and data cross the network as they are`,
      'Set secureClientPort with ssl.keyStore.location, move the clients, then remove clientPort or bind it to 127.0.0.1 (clientPortAddress).',
    )
  const hosts = [...(settings.ensemble?.members.values() ?? [])].flatMap(({ addresses }) =>
    addresses.map(({ host }) => host),
  )
  const isPlain = !usesQuorumTls(settings) || settings.quorumPortUnification
  if (hosts.some((host) => !isLoopback(host)) && isPlain)
    yield finding(
      'plain-members',
      file,
      settings.sslQuorum
        ? 'portUnification=true: members may also connect without TLS'
        : 'sslQuorum is off: anyone who reaches the ports of members can read all data, and pose as a member',
      'Set sslQuorum=true and portUnification=false, in the order of the page; zabra cert makes the certificates.',
    )
  if (settings.adminEnabled && !isLoopback(settings.adminAddress) && !usesAdminTls(settings))
    yield finding(
      'plain-admin',
      file,
      `the HTTP port on ${settings.adminAddress} has no TLS: passwords and tokens of its callers cross the network as they are`,
      'Set admin.forceHttps=true with admin.ssl.keyStore.location, or admin.serverAddress=127.0.0.1.',
    )
}

export const isLoopback = (host: string): boolean => /^(?:127\.|localhost$|::1$|\[::1\]$)/.test(host)
