import { validatePath } from '@zabra/protocol'
import * as z from 'zod/mini'
import { bool, integer, list, oneOf, optional, size, text, valueType, type ValueType } from './value-types.ts'
import { row } from './row.ts'

const group = 'Audit log'

const CATEGORIES = ['writes', 'auth', 'sessions', 'admin', 'config'] as const
const READS = 'reads:'

/** Categories of audit lines, and `reads:` with a path. */
function auditEvents(): ValueType<readonly string[]> {
  const isEvent = (event: string): boolean =>
    (CATEGORIES as readonly string[]).includes(event) ||
    (event.startsWith(`${READS}/`) &&
      (/^\/\**$/.test(event.slice(READS.length)) ||
        validatePath(event.slice(READS.length).replace(/\/\**$/, '')) === undefined))
  const names = list('')
  return valueType({
    schema: () => z.readonly(z.array(z.string().check(z.refine(isEvent))).check(z.minLength(1))),
    read: (given) =>
      names.read(given)!.map((one) => CATEGORIES.find((known) => known === one.toLowerCase()) ?? one),
    expected: `one or more of ${CATEGORIES.join(', ')} and ${READS}/PATH, separated by commas`,
    show: names.show,
  })
}

/** The audit log. */
export const auditRows = {
  auditEnabled: row({
    group,
    key: 'audit.enable',
    property: 'zookeeper.audit.enable',
    type: bool(),
    defaultValue: false,
    description: 'Records who changed what.',
  }),
  auditFormat: row({
    group,
    key: 'audit.format',
    isOwn: true,
    type: oneOf('apache', 'json'),
    defaultValue: 'apache',
    description:
      'Form of a line: `apache` has the fields of Apache ZooKeeper separated by tabs, `json` is an object with more of them.',
  }),
  auditFile: row({
    group,
    key: 'audit.file',
    isOwn: true,
    type: optional(text('a file')),
    isPath: true,
    defaultValue: undefined,
    defaultText: 'none: the lines go to the log of the server, as lines of the part `audit`',
    description:
      'File of the audit log. SIGHUP opens it again, after a tool such as logrotate has renamed it. A file that cannot be opened ends the start.',
  }),
  auditFileMaxBytes: row({
    group,
    key: 'audit.fileMaxSize',
    isOwn: true,
    type: size('B', { min: 4096 }),
    defaultValue: 10 * 1024 * 1024,
    description: 'Size of the audit file at which it is renamed, to the same name and `.1`.',
  }),
  auditFileCount: row({
    group,
    key: 'audit.fileCount',
    isOwn: true,
    type: integer(0, 10_000),
    defaultValue: 10,
    description: 'Renamed audit files that are kept, `.1` the newest.',
  }),
  auditFsync: row({
    group,
    key: 'audit.fsync',
    isOwn: true,
    type: bool(),
    defaultValue: false,
    description: 'Syncs the audit file after each write, in which the lines of many requests can be.',
  }),
  auditChain: row({
    group,
    key: 'audit.chain',
    isOwn: true,
    type: bool(),
    defaultValue: false,
    description:
      'Puts the SHA-256 of the line before into each line of `audit.file`, which has to be JSON; `zabra audit verify` follows them.',
  }),
  auditOnFailure: row({
    group,
    key: 'audit.onFailure',
    isOwn: true,
    type: oneOf('continue', 'refuse'),
    defaultValue: 'continue',
    description:
      'What happens to writes while the audit file cannot be written: `continue` serves them and counts the lines that are lost, `refuse` answers them with a system error.',
  }),
  auditEvents: row({
    group,
    key: 'audit.events',
    isOwn: true,
    isChangeable: true,
    type: auditEvents(),
    defaultValue: ['writes', 'auth', 'admin', 'config'],
    apacheDefault: 'writes',
    description:
      'What is recorded: `writes`; logins and refused reads (`auth`); the begin and end of `sessions`; requests to the HTTP port and four-letter words that change something (`admin`); what became of the server by them or otherwise (`config`): members, certificates, level of the log, backups, restores; and reads of a path and below, such as `reads:/secret`.',
  }),
} as const
