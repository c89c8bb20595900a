import type { DiskSpace, OwnCertificate } from '@zabra/runtime'
import type { AdminTarget } from '../../admin-target.ts'
import type { BackupReport } from '../../backup-report.ts'
import { LATE_INTERVALS, MAX_DISK_USED, MIN_CERTIFICATE_DAYS } from '../../../settings/index.ts'

/** What an operator should look at, though the server is ready. */
export interface MemberFinding {
  /** That of `zabra doctor` where it has the same finding. */
  readonly id: string
  readonly detail: string
}

const DAY_MS = 86_400_000

/** Returns what a server finds of itself, from what it knows already. */
export function memberFindings(
  target: AdminTarget,
  disk: Readonly<Record<'data' | 'log', DiskSpace | null>>,
  certificates: Readonly<Record<'client' | 'quorum' | 'http', OwnCertificate | undefined>>,
): readonly MemberFinding[] {
  const now = target.platform.clock.wall()
  return [
    ...certificateFindings(certificates, now),
    ...diskFindings(disk, target),
    ...auditFindings(target),
    ...(target.backups?.reports() ?? []).flatMap((report) => [...backupFindings(report, now)]),
  ]
}

const USES = { client: 'clients', quorum: 'members', http: 'the HTTP port' } as const

function* certificateFindings(
  certificates: Readonly<Record<keyof typeof USES, OwnCertificate | undefined>>,
  now: number,
): Generator<MemberFinding> {
  for (const [use, name] of Object.entries(USES) as [keyof typeof USES, string][]) {
    const end = certificates[use]?.validUntil
    if (end === undefined) continue
    const days = Math.floor((end - now) / DAY_MS)
    const what = `the certificate for ${name}`
    if (end <= now) yield { id: 'tls-over', detail: `${what} has ended at ${new Date(end).toISOString()}` }
    else if (days < MIN_CERTIFICATE_DAYS)
      yield { id: 'tls-ends', detail: `${what} ends in ${days === 1 ? 'a day' : `${days} days`}` }
  }
}

function* diskFindings(
  { data, log }: Readonly<Record<'data' | 'log', DiskSpace | null>>,
  { directories }: AdminTarget,
): Generator<MemberFinding> {
  const folders = [
    ['snapshots', data],
    ...(directories.snapshots === directories.logs ? [] : [['logs', log] as const]),
  ] as const
  for (const [name, space] of folders) {
    if (space === null)
      yield { id: 'disk-unknown', detail: `the disk of ${name} has not said in time how much is free` }
    else if (space.size - space.free > (MAX_DISK_USED / 100) * space.size)
      yield {
        id: 'disk-fills',
        detail: `${Math.floor((1 - space.free / space.size) * 100)} % of the disk of ${name} are used, ${space.free} bytes are free`,
      }
  }
}

function* auditFindings({ auditLinesLost = 0 }: AdminTarget): Generator<MemberFinding> {
  if (auditLinesLost > 0)
    yield { id: 'audit-lost', detail: `${auditLinesLost} lines of the audit log could not be kept` }
}

/** The member on duty says what is wrong with its backups; all members do where none is on duty. */
function* backupFindings(
  { url, isOnDuty, isDecided, member, lastBackupAt, intervalMs, problem, verified }: BackupReport,
  now: number,
): Generator<MemberFinding> {
  if (!isOnDuty && (!isDecided || member !== undefined)) return
  const minutes = lastBackupAt === undefined ? undefined : Math.floor((now - lastBackupAt) / 60_000)
  if (minutes !== undefined && now - lastBackupAt! > LATE_INTERVALS * intervalMs)
    yield {
      id: 'backup-old',
      detail: `the last backup is ${minutes} minutes old, and one is due every ${Math.floor(intervalMs / 60_000)}: ${url}`,
    }
  if (problem !== undefined)
    yield { id: 'backup-failed', detail: `the last backup has failed: ${problem}: ${url}` }
  if (typeof verified?.problem === 'string')
    yield { id: 'backup-unusable', detail: `the last verification has failed: ${verified.problem}: ${url}` }
}
