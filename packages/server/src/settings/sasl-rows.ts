import { bool, list, optional, text, users } from './value-types.ts'
import { row } from './row.ts'

const auth = 'Authentication and authorization'

/** SASL logins with DIGEST-MD5: users, their identities in access control lists, and whether a login is required. */
export const saslRows = {
  saslUsers: row({
    group: auth,
    key: 'sasl.digest.users',
    isOwn: true,
    type: users(),
    defaultValue: {} as Readonly<Record<string, string>>,
    defaultText: 'none',
    apacheDefault: 'in a JAAS file only',
    isSecret: true,
    description:
      'Names and passwords of SASL users, in addition to those of `sasl.digest.usersFile` and `jaas.config`.',
  }),
  saslUsersFile: row({
    group: auth,
    key: 'sasl.digest.usersFile',
    isOwn: true,
    type: optional(text('a file with lines name=password')),
    isPath: true,
    isSecretFile: true,
    defaultValue: undefined,
    defaultText: 'unset',
    apacheDefault: 'not supported',
    description: 'File of SASL users with a line `name=password` for each, in the format of `zoo.cfg`.',
  }),
  jaasConfig: row({
    group: auth,
    key: 'jaas.config',
    isOwn: true,
    property: 'java.security.auth.login.config',
    type: optional(text('a JAAS file')),
    isPath: true,
    isSecretFile: true,
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
    description: 'Section of the JAAS file that contains the users.',
  }),
  saslAclScheme: row({
    group: auth,
    key: 'sasl.aclScheme',
    isOwn: true,
    type: bool(),
    defaultValue: (inputs) => Object.keys(inputs.saslUsers).length > 0,
    defaultText:
      'true with `authProvider.N` for SASL or users outside of a JAAS file, else false as in ZooKeeper',
    description: 'Enables the scheme `sasl` in access control lists: `sasl:name`.',
  }),
  saslSuperUsers: row({
    group: auth,
    key: 'superUser',
    property: 'zookeeper.superUser',
    type: list('names of SASL users, separated by commas'),
    defaultValue: [] as readonly string[],
    defaultText: 'none',
    description: 'SASL users who may do everything; each `superUser.x` adds one.',
  }),
  saslSuperPassword: row({
    group: auth,
    key: 'SASLAuthenticationProvider.superPassword',
    property: 'zookeeper.SASLAuthenticationProvider.superPassword',
    type: optional(text('a password')),
    defaultValue: undefined,
    defaultText: 'unset',
    isSecret: true,
    description: 'Password of the SASL user `super`, in place of the one among the users.',
  }),
  requireSasl: row({
    group: auth,
    key: 'sessionRequireClientSASLAuth',
    property: 'zookeeper.sessionRequireClientSASLAuth',
    type: bool(),
    defaultValue: false,
    description:
      'Rejects requests of sessions that have not logged in by SASL; `enforce.auth.*` is ignored then.',
  }),
  allowSaslFailedClients: row({
    group: auth,
    key: 'allowSaslFailedClients',
    property: 'zookeeper.allowSaslFailedClients',
    type: bool(),
    defaultValue: false,
    description:
      'Lets clients continue without an identity when their SASL login fails, unless a login is required.',
  }),
} as const
