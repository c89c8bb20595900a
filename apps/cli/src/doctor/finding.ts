/**
 * The findings of `zabra doctor`: how bad each is, and the page that explains what it is about. An error is one with which a server
 * does not start, or data are at risk; one of severity info is good to know. docs/doctor.md has the same table, with what each means.
 */
export const FINDINGS = {
  configuration: ['error', 'configuration.md'],
  'configuration-warning': ['warning', 'configuration.md'],
  'even-voters': ['warning', 'members.md'],
  'one-host': ['warning', 'members.md'],
  'skip-acl': ['error', 'configuration.md'],
  'no-sync': ['error', 'configuration.md'],
  'known-password': ['error', 'configuration.md'],
  'secret-file': ['warning', 'configuration.md#files-with-secrets'],
  'shared-disk': ['warning', 'configuration.md'],
  'members-differ': ['warning', 'configuration.md'],
  'plain-clients': ['warning', 'configuration.md#tls-and-websockets'],
  'plain-members': ['warning', 'members.md#secure-the-ports-between-members'],
  'plain-admin': ['warning', 'admin-port.md#encrypt-it'],
  'no-audit': ['info', 'monitor.md#record-who-changed-what'],
  'open-admin': ['warning', 'admin-port.md#give-roles'],
  name: ['error', 'configuration.md'],
  unreachable: ['warning', 'members.md'],
  'name-loopback': ['warning', 'members.md'],
  'far-member': ['warning', 'members.md'],
  'long-packets': ['info', 'doctor.md'],
  'tls-store': ['error', 'configuration.md#tls-and-websockets'],
  'tls-chain': ['error', 'members.md#secure-the-ports-between-members'],
  'tls-chain-not-known': ['info', 'configuration.md#tls-and-websockets'],
  'tls-name': ['error', 'members.md#secure-the-ports-between-members'],
  'tls-over': ['error', 'configuration.md#tls-and-websockets'],
  'tls-ends': ['warning', 'configuration.md#tls-and-websockets'],
  'tls-weak': ['warning', 'configuration.md#tls-and-websockets'],
  'tls-list-over': ['error', 'configuration.md#tls-and-websockets'],
  'tls-list-ends': ['warning', 'configuration.md#tls-and-websockets'],
  jmx: ['warning', 'monitor.md#watch-it-with-prometheus'],
  'java-heap': ['warning', 'migrate.md'],
  'java-options': ['warning', 'migrate.md'],
  'store-jks': ['error', 'migrate.md'],
  'store-elsewhere': ['warning', 'migrate.md'],
  'one-server': ['warning', 'migrate.md'],
  'data-elsewhere': ['warning', 'migrate.md'],
  'acl-scheme': ['error', 'migrate.md'],
  'kerberos-identity': ['warning', 'migrate.md'],
  'open-files': ['warning', 'doctor.md'],
  'huge-pages': ['warning', 'doctor.md'],
  swap: ['warning', 'doctor.md'],
  backlog: ['warning', 'doctor.md'],
  'few-cores': ['warning', 'doctor.md'],
  'clock-not-set': ['warning', 'doctor.md'],
  'clock-not-known': ['info', 'doctor.md'],
  'no-data': ['error', 'configuration.md'],
  'network-disk': ['warning', 'configuration.md'],
  'no-barrier': ['error', 'configuration.md'],
  'read-only-disk': ['error', 'configuration.md'],
  'one-device': ['warning', 'configuration.md'],
  'mixed-folders': ['error', 'configuration.md'],
  'epoch-files': ['error', 'recover.md'],
  'foreign-files': ['info', 'configuration.md'],
  'in-use': ['info', 'doctor.md'],
  'disk-days': ['warning', 'configuration.md'],
  'little-memory': ['warning', 'doctor.md'],
  'sync-rate': ['info', 'doctor.md'],
  'slow-disk': ['warning', 'configuration.md'],
  'sync-not-measured': ['info', 'doctor.md'],
  'disk-full': ['warning', 'configuration.md'],
  'no-purge': ['warning', 'configuration.md'],
  snapshot: ['error', 'backup.md#restore-a-data-folder'],
  log: ['error', 'backup.md#restore-a-data-folder'],
  'zxid-counter': ['warning', 'metrics.md'],
  'long-log': ['warning', 'configuration.md'],
  'level-file': ['error', 'upgrade.md#finalize-a-feature-level'],
  finalized: ['info', 'upgrade.md#finalize-a-feature-level'],
  'downgrade-level': ['error', 'migrate.md#go-back'],
  'downgrade-held': ['error', 'migrate.md#go-back'],
  'downgrade-members': ['error', 'migrate.md#go-back'],
  'downgrade-secret': ['error', 'migrate.md#go-back'],
  'downgrade-types': ['error', 'migrate.md#go-back'],
  'downgrade-large': ['error', 'migrate.md#go-back'],
  'downgrade-settings': ['info', 'migrate.md#go-back'],
  'not-ready': ['error', 'api.md#health'],
  'member-down': ['warning', 'api.md#what-the-members-say'],
  'no-failure-left': ['error', 'recover.md'],
  'no-quorum': ['error', 'recover.md'],
  versions: ['warning', 'upgrade.md'],
  'cluster-id': ['warning', 'recover.md'],
  'not-finalized': ['info', 'upgrade.md#finalize-a-feature-level'],
  'no-answer': ['error', 'admin-port.md'],
  'not-checked': ['warning', 'admin-port.md#give-roles'],
  'same-id': ['error', 'configuration.md'],
  lag: ['warning', 'metrics.md'],
  elections: ['warning', 'metrics.md'],
  'slow-syncs': ['warning', 'metrics.md'],
  outbox: ['warning', 'metrics.md'],
  'watch-storm': ['warning', 'metrics.md'],
  'clock-skew': ['warning', 'metrics.md#the-skew-of-clocks'],
  'large-node': ['warning', 'doctor.md'],
  'many-children': ['warning', 'doctor.md'],
  'sequence-counter': ['warning', 'doctor.md'],
  'quota-near': ['warning', 'doctor.md'],
  'open-secret': ['error', 'doctor.md'],
  'open-root': ['info', 'doctor.md'],
  'many-ephemerals': ['warning', 'doctor.md'],
  'no-backup': ['error', 'backup.md#let-the-servers-make-them'],
  'backup-damaged': ['error', 'backup.md#make-them-by-command'],
  'backup-unusable': ['error', 'backup.md#make-them-by-command'],
  'backup-gap': ['warning', 'backup.md#let-the-servers-make-them'],
  'backup-old': ['warning', 'backup.md#let-the-servers-make-them'],
  'backup-target': ['error', 'backup.md#let-the-servers-make-them'],
  'backup-not-verified': ['info', 'backup.md#make-them-by-command'],
  'backup-plain': ['warning', 'backup.md#encryption'],
} as const satisfies Record<string, readonly [severity: Severity, page: string]>

export type Severity = 'info' | 'warning' | 'error'
export type FindingId = keyof typeof FINDINGS

/** What is wrong, how it was seen, and what to do. */
export interface Finding {
  readonly id: FindingId
  readonly severity: Severity
  /** What was looked at: a file, a folder, a host, a server. */
  readonly where: string
  readonly evidence: string
  readonly remedy: string
  /** The address of the page that explains it. */
  readonly page: string
}

/** Where the pages are for all: no package has them. */
const DOCS = 'https://github.com/zabra/zabra/blob/main/docs/'

/** Returns a finding with the severity and the page of its id. */
export function finding(id: FindingId, where: string, evidence: string, remedy: string): Finding {
  const [severity, page] = FINDINGS[id]
  return { id, severity, where, evidence, remedy, page: DOCS + page }
}
