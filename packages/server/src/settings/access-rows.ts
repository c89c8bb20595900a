import { bool, duration, list, optional, pattern, whole } from './kinds.ts'
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
    kind: bool(),
    fallback: true,
    apacheDefault: 'false',
    meaning: 'Allows nodes with a time to live.',
  }),
  containerCheckIntervalMs: row({
    group: tree,
    key: 'znode.container.checkIntervalMs',
    property: 'znode.container.checkIntervalMs',
    propertyOnly: true,
    kind: duration('ms', { min: 1 }),
    fallback: 60_000,
    meaning: 'How often empty containers and overdue TTL nodes are looked for.',
  }),
  containerMaxPerMinute: row({
    group: tree,
    key: 'znode.container.maxPerMinute',
    property: 'znode.container.maxPerMinute',
    propertyOnly: true,
    kind: whole(1),
    fallback: 10_000,
    meaning: 'Most containers and TTL nodes deleted in a minute.',
  }),
  containerMaxNeverUsedMs: row({
    group: tree,
    key: 'znode.container.maxNeverUsedIntervalMs',
    property: 'znode.container.maxNeverUsedIntervalMs',
    propertyOnly: true,
    kind: duration('ms', { negativeIsOff: true }),
    fallback: 0,
    apacheDefault: '0 (300000 from 3.10)',
    meaning: 'Age at which a container that never had a child is deleted; 0 keeps it.',
  }),
  enforceQuota: row({
    group: tree,
    key: 'enforceQuota',
    property: 'zookeeper.enforceQuota',
    kind: bool(),
    fallback: false,
    meaning: 'Refuses writes beyond a hard quota; with false they are only logged.',
  }),
  skipAcl: row({
    group: tree,
    key: 'skipACL',
    property: 'zookeeper.skipACL',
    kind: bool('no-default'),
    fallback: false,
    meaning: 'Lets everyone do everything: no access list is checked.',
  }),

  superDigest: row({
    group: auth,
    key: 'DigestAuthenticationProvider.superDigest',
    property: 'zookeeper.DigestAuthenticationProvider.superDigest',
    kind: optional(
      pattern(/^super:[A-Za-z0-9+/]+={0,2}$/, '`super:` and the base64 digest of `super:password`'),
    ),
    fallback: undefined,
    fallbackText: 'unset: nobody is super',
    secret: true,
    meaning: 'Who proves this digest may do everything.',
  }),
  digestAuthEnabled: row({
    group: auth,
    key: 'DigestAuthenticationProvider.enabled',
    property: 'zookeeper.DigestAuthenticationProvider.enabled',
    kind: bool(),
    fallback: true,
    meaning: 'Offers the digest scheme.',
  }),
  enforceAuthEnabled: row({
    group: auth,
    key: 'enforce.auth.enabled',
    property: 'zookeeper.enforce.auth.enabled',
    kind: bool(),
    fallback: false,
    meaning: 'Refuses requests of sessions that have not authenticated with one of `enforce.auth.schemes`.',
  }),
  enforceAuthSchemes: row({
    group: auth,
    key: 'enforce.auth.schemes',
    property: 'zookeeper.enforce.auth.schemes',
    kind: list('schemes separated by commas'),
    fallback: [] as readonly string[],
    fallbackText: 'none',
    meaning: 'Schemes that count for `enforce.auth.enabled`.',
  }),

  fourLetterWords: row({
    group: words,
    key: '4lw.commands.whitelist',
    property: 'zookeeper.4lw.commands.whitelist',
    kind: list('words separated by commas, or * for all'),
    fallback: ['srvr'] as readonly string[],
    meaning: 'Words that are answered; `*` means all.',
  }),
} as const
