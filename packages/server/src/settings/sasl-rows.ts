import { bool, list, optional, text, users } from './value-types.ts'
import { row } from './row.ts'

const auth = 'Authentication and authorization'

/** Logins by SASL with DIGEST-MD5: who may log in, what a login is good for, and who must. */
export const saslRows = {
  saslUsers: row({
    group: auth,
    key: 'sasl.digest.users',
    type: users(),
    defaultValue: {} as Readonly<Record<string, string>>,
    defaultText: 'none',
    apacheDefault: 'in a JAAS file only',
    isSecret: true,
    description:
      'Who may log in by SASL, with passwords. Those of `sasl.digest.usersFile` and `jaas.config` come on top.',
  }),
  saslUsersFile: row({
    group: auth,
    key: 'sasl.digest.usersFile',
    type: optional(text('a file with lines name=password')),
    isPath: true,
    defaultValue: undefined,
    defaultText: 'unset',
    apacheDefault: 'no such file',
    description: 'File of users for SASL, a line `name=password` for each, in the format of this file.',
  }),
  jaasConfig: row({
    group: auth,
    key: 'jaas.config',
    property: 'java.security.auth.login.config',
    type: optional(text('a JAAS file')),
    isPath: true,
    defaultValue: undefined,
    defaultText: 'unset',
    description:
      'JAAS file with users for SASL: options `user_name="password"` of `DigestLoginModule`. Kerberos is not supported.',
  }),
  saslServerSection: row({
    group: auth,
    key: 'sasl.serverconfig',
    property: 'zookeeper.sasl.serverconfig',
    type: text('the name of a section'),
    defaultValue: 'Server',
    description: 'Section of the JAAS file that has the users.',
  }),
  saslAclScheme: row({
    group: auth,
    key: 'sasl.aclScheme',
    type: bool(),
    defaultValue: (basis) => Object.keys(basis.saslUsers).length > 0,
    defaultText:
      'true with `authProvider.N` for SASL or users outside of a JAAS file, else false as in ZooKeeper',
    description: 'Lets access lists name SASL users: `sasl:name`.',
  }),
  saslSuperUsers: row({
    group: auth,
    key: 'superUser',
    property: 'zookeeper.superUser',
    type: list('names of SASL users, separated by commas'),
    defaultValue: [] as readonly string[],
    defaultText: 'nobody',
    description: 'SASL users who may do everything; `superUser.x` adds one more.',
  }),
  saslSuperPassword: row({
    group: auth,
    key: 'SASLAuthenticationProvider.superPassword',
    property: 'zookeeper.SASLAuthenticationProvider.superPassword',
    type: optional(text('a password')),
    defaultValue: undefined,
    defaultText: 'unset',
    isSecret: true,
    description: 'Password of the SASL user `super` instead of the one among the users.',
  }),
  requireSasl: row({
    group: auth,
    key: 'sessionRequireClientSASLAuth',
    property: 'zookeeper.sessionRequireClientSASLAuth',
    type: bool(),
    defaultValue: false,
    description:
      'Refuses requests of sessions that have not logged in by SASL; `enforce.auth.*` do not count then.',
  }),
  allowSaslFailedClients: row({
    group: auth,
    key: 'allowSaslFailedClients',
    property: 'zookeeper.allowSaslFailedClients',
    type: bool(),
    defaultValue: false,
    description:
      'Lets clients go on without an identity when their SASL login fails, unless one is required.',
  }),
} as const
