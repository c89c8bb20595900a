import { bool, duration, list, optional, pattern, integer } from './value-types.ts'
import { row } from './row.ts'

const tree = 'Data tree'
const auth = 'Authentication and authorization'
const commands = 'Four-letter words'

/** The data tree, access to it, and four-letter words. */
export const accessRows = {
  extendedTypesEnabled: row({
    group: tree,
    key: 'extendedTypesEnabled',
    property: 'zookeeper.extendedTypesEnabled',
    type: bool(),
    defaultValue: true,
    apacheDefault: 'false',
    description: 'Allows znodes with a time to live (TTL nodes).',
  }),
  containerCheckIntervalMs: row({
    group: tree,
    key: 'znode.container.checkIntervalMs',
    property: 'znode.container.checkIntervalMs',
    isPropertyOnly: true,
    type: duration('ms', { min: 1 }),
    defaultValue: 60_000,
    description: 'Interval at which empty containers and expired TTL nodes are deleted.',
  }),
  containerMaxPerMinute: row({
    group: tree,
    key: 'znode.container.maxPerMinute',
    isChangeable: true,
    property: 'znode.container.maxPerMinute',
    isPropertyOnly: true,
    type: integer(1),
    defaultValue: 10_000,
    description: 'Maximum number of containers and TTL nodes that are deleted in a minute.',
  }),
  containerMaxNeverUsedMs: row({
    group: tree,
    key: 'znode.container.maxNeverUsedIntervalMs',
    property: 'znode.container.maxNeverUsedIntervalMs',
    isPropertyOnly: true,
    type: duration('ms', { negativeIsOff: true }),
    defaultValue: 0,
    apacheDefault: '0 (300000 from 3.10)',
    description: 'Age at which a container that never had a child is deleted; 0 keeps it.',
  }),
  enforceQuota: row({
    group: tree,
    key: 'enforceQuota',
    property: 'zookeeper.enforceQuota',
    type: bool(),
    defaultValue: false,
    description: 'Rejects writes that exceed a hard quota; with false they are only logged.',
  }),
  quotaRequiresAdmin: row({
    group: tree,
    key: 'quotaRequiresAdmin',
    property: 'zookeeper.quotaRequiresAdmin',
    type: bool(),
    defaultValue: true,
    apacheDefault: 'no such check',
    description:
      'Rejects changes of `/zookeeper/quota` and below by clients without the permission ADMIN on the subtree that the quota limits. Set it to false in an ensemble with servers of Apache ZooKeeper, so that all leaders decide alike.',
  }),
  skipAcl: row({
    group: tree,
    key: 'skipACL',
    property: 'zookeeper.skipACL',
    type: bool('no-default'),
    defaultValue: false,
    description: 'Disables access control: access control lists are not checked.',
  }),
  eagerAclCheck: row({
    group: tree,
    key: 'enableEagerACLCheck',
    property: 'zookeeper.enableEagerACLCheck',
    type: bool(),
    defaultValue: false,
    description:
      'Checks access where a write arrives, so that a refused one takes no transaction. Members of an ensemble only.',
  }),

  superDigest: row({
    group: auth,
    key: 'DigestAuthenticationProvider.superDigest',
    property: 'zookeeper.DigestAuthenticationProvider.superDigest',
    type: optional(
      pattern(/^super:[A-Za-z0-9+/]+={0,2}$/, '`super:` and the base64 digest of `super:password`'),
    ),
    defaultValue: undefined,
    defaultText: 'unset: no superuser',
    isSecret: true,
    description: 'Digest of the superuser, who may do everything.',
  }),
  digestAuthEnabled: row({
    group: auth,
    key: 'DigestAuthenticationProvider.enabled',
    property: 'zookeeper.DigestAuthenticationProvider.enabled',
    type: bool(),
    defaultValue: true,
    description: 'Enables the digest scheme.',
  }),
  enforceAuthEnabled: row({
    group: auth,
    key: 'enforce.auth.enabled',
    property: 'zookeeper.enforce.auth.enabled',
    type: bool(),
    defaultValue: false,
    description:
      'Rejects requests of sessions that have not authenticated with one of `enforce.auth.schemes`.',
  }),
  enforceAuthSchemes: row({
    group: auth,
    key: 'enforce.auth.schemes',
    property: 'zookeeper.enforce.auth.schemes',
    type: list('schemes separated by commas'),
    defaultValue: [] as readonly string[],
    defaultText: 'none',
    description: 'Schemes that satisfy `enforce.auth.enabled`.',
  }),

  fourLetterWords: row({
    group: commands,
    key: '4lw.commands.whitelist',
    property: 'zookeeper.4lw.commands.whitelist',
    type: list('commands separated by commas, or * for all'),
    defaultValue: ['srvr'] as readonly string[],
    description: 'Commands that are answered; `*` means all.',
  }),
} as const
