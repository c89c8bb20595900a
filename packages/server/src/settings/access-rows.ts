import { bool, duration, list, optional, pattern, integer } from './value-types.ts'
import { row } from './row.ts'

const tree = 'Data tree'
const auth = 'Authentication and authorization'
const words = 'Four-letter words'

/** The data tree, who may do what in it, and the four-letter words. */
export const accessRows = {
  extendedTypesEnabled: row({
    group: tree,
    key: 'extendedTypesEnabled',
    property: 'zookeeper.extendedTypesEnabled',
    type: bool(),
    defaultValue: true,
    apacheDefault: 'false',
    description: 'Allows nodes with a time to live.',
  }),
  containerCheckIntervalMs: row({
    group: tree,
    key: 'znode.container.checkIntervalMs',
    property: 'znode.container.checkIntervalMs',
    isPropertyOnly: true,
    type: duration('ms', { min: 1 }),
    defaultValue: 60_000,
    description: 'How often empty containers and overdue TTL nodes are looked for.',
  }),
  containerMaxPerMinute: row({
    group: tree,
    key: 'znode.container.maxPerMinute',
    property: 'znode.container.maxPerMinute',
    isPropertyOnly: true,
    type: integer(1),
    defaultValue: 10_000,
    description: 'Most containers and TTL nodes deleted in a minute.',
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
    description: 'Refuses writes beyond a hard quota; with false they are only logged.',
  }),
  skipAcl: row({
    group: tree,
    key: 'skipACL',
    property: 'zookeeper.skipACL',
    type: bool('no-default'),
    defaultValue: false,
    description: 'Lets everyone do everything: no access list is checked.',
  }),

  superDigest: row({
    group: auth,
    key: 'DigestAuthenticationProvider.superDigest',
    property: 'zookeeper.DigestAuthenticationProvider.superDigest',
    type: optional(
      pattern(/^super:[A-Za-z0-9+/]+={0,2}$/, '`super:` and the base64 digest of `super:password`'),
    ),
    defaultValue: undefined,
    defaultText: 'unset: nobody is super',
    isSecret: true,
    description: 'Who proves this digest may do everything.',
  }),
  digestAuthEnabled: row({
    group: auth,
    key: 'DigestAuthenticationProvider.enabled',
    property: 'zookeeper.DigestAuthenticationProvider.enabled',
    type: bool(),
    defaultValue: true,
    description: 'Offers the digest scheme.',
  }),
  enforceAuthEnabled: row({
    group: auth,
    key: 'enforce.auth.enabled',
    property: 'zookeeper.enforce.auth.enabled',
    type: bool(),
    defaultValue: false,
    description:
      'Refuses requests of sessions that have not authenticated with one of `enforce.auth.schemes`.',
  }),
  enforceAuthSchemes: row({
    group: auth,
    key: 'enforce.auth.schemes',
    property: 'zookeeper.enforce.auth.schemes',
    type: list('schemes separated by commas'),
    defaultValue: [] as readonly string[],
    defaultText: 'none',
    description: 'Schemes that count for `enforce.auth.enabled`.',
  }),

  fourLetterWords: row({
    group: words,
    key: '4lw.commands.whitelist',
    property: 'zookeeper.4lw.commands.whitelist',
    type: list('words separated by commas, or * for all'),
    defaultValue: ['srvr'] as readonly string[],
    description: 'Words that are answered; `*` means all.',
  }),
} as const
