import { bool, list, optional, text, users } from './kinds.ts'
import { row } from './row.ts'

const auth = 'Authentication and authorization'

/** Logins by SASL with DIGEST-MD5: who may log in, what a login is good for, and who must. */
export const saslRows = {
  saslUsers: row({
    group: auth,
    key: 'sasl.digest.users',
    kind: users(),
    fallback: {} as Readonly<Record<string, string>>,
    fallbackText: 'none',
    apacheDefault: 'in a JAAS file only',
    secret: true,
    meaning:
      'Who may log in by SASL, with passwords. Those of `sasl.digest.usersFile` and `jaas.config` come on top.',
  }),
  saslUsersFile: row({
    group: auth,
    key: 'sasl.digest.usersFile',
    kind: optional(text('a file with lines name=password')),
    path: true,
    fallback: undefined,
    fallbackText: 'unset',
    apacheDefault: 'no such file',
    meaning: 'File of users for SASL, a line `name=password` for each, in the format of this file.',
  }),
  jaasConfig: row({
    group: auth,
    key: 'jaas.config',
    property: 'java.security.auth.login.config',
    kind: optional(text('a JAAS file')),
    path: true,
    fallback: undefined,
    fallbackText: 'unset',
    meaning:
      'JAAS file with users for SASL: options `user_name="password"` of `DigestLoginModule`. Kerberos is not supported.',
  }),
  saslServerSection: row({
    group: auth,
    key: 'sasl.serverconfig',
    property: 'zookeeper.sasl.serverconfig',
    kind: text('the name of a section'),
    fallback: 'Server',
    meaning: 'Section of the JAAS file that has the users.',
  }),
  saslAclScheme: row({
    group: auth,
    key: 'sasl.aclScheme',
    kind: bool(),
    fallback: (basis) => Object.keys(basis.saslUsers).length > 0,
    fallbackText:
      'true with `authProvider.N` for SASL or users outside of a JAAS file, else false as in ZooKeeper',
    meaning: 'Lets access lists name SASL users: `sasl:name`.',
  }),
  saslSuperUsers: row({
    group: auth,
    key: 'superUser',
    property: 'zookeeper.superUser',
    kind: list('names of SASL users, separated by commas'),
    fallback: [] as readonly string[],
    fallbackText: 'nobody',
    meaning: 'SASL users who may do everything; `superUser.x` adds one more.',
  }),
  saslSuperPassword: row({
    group: auth,
    key: 'SASLAuthenticationProvider.superPassword',
    property: 'zookeeper.SASLAuthenticationProvider.superPassword',
    kind: optional(text('a password')),
    fallback: undefined,
    fallbackText: 'unset',
    secret: true,
    meaning: 'Password of the SASL user `super` instead of the one among the users.',
  }),
  requireSasl: row({
    group: auth,
    key: 'sessionRequireClientSASLAuth',
    property: 'zookeeper.sessionRequireClientSASLAuth',
    kind: bool(),
    fallback: false,
    meaning:
      'Refuses requests of sessions that have not logged in by SASL; `enforce.auth.*` do not count then.',
  }),
  allowSaslFailedClients: row({
    group: auth,
    key: 'allowSaslFailedClients',
    property: 'zookeeper.allowSaslFailedClients',
    kind: bool(),
    fallback: false,
    meaning: 'Lets clients go on without an identity when their SASL login fails, unless one is required.',
  }),
} as const
