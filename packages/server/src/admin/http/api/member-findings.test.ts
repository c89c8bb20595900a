import { expect, it } from 'vitest'
import type { AdminTarget } from '../../admin-target.ts'
import type { BackupReport } from '../../backup-report.ts'
import { memberFindings } from './member-findings.ts'

const DAY_MS = 86_400_000
const NOW = Date.UTC(2026, 10, 21)
const NONE = { client: undefined, quorum: undefined, http: undefined }
const SPACE = { free: 50, size: 100 }

const backup = (facts: Partial<BackupReport>): BackupReport => ({
  url: 'file:///backup',
  isOnDuty: true,
  isDecided: true,
  member: '1',
  isRunning: false,
  lastBackupAt: NOW - 60_000,
  intervalMs: 3_600_000,
  failures: 0,
  gaps: 0,
  problem: undefined,
  verified: undefined,
  contents: undefined,
  ...facts,
})

interface Facts {
  readonly auditLinesLost?: number
  readonly backups?: readonly BackupReport[]
  readonly logs?: string
  readonly disk?: Parameters<typeof memberFindings>[1]
  readonly ends?: Readonly<Partial<Record<keyof typeof NONE, number>>>
}

function find({ auditLinesLost, backups, logs = '/data', disk, ends = {} }: Facts): string[] {
  const target = {
    platform: { clock: { wall: () => NOW } },
    directories: { snapshots: '/data', logs },
    auditLinesLost,
    backups: backups && { reports: () => backups },
  } as unknown as AdminTarget
  const certificates = Object.fromEntries(
    Object.entries(ends).map(([use, validUntil]) => [use, { validUntil, subjectHash: '' }]),
  )
  return memberFindings(target, disk ?? { data: SPACE, log: SPACE }, { ...NONE, ...certificates }).map(
    ({ id, detail }) => `${id}: ${detail}`,
  )
}

it('a member without anything unwise has no findings', () => {
  const ends = { client: NOW + 31 * DAY_MS, quorum: NOW + 400 * DAY_MS }
  expect(find({ auditLinesLost: 0, backups: [backup({})], ends })).toEqual([])
})

it('a certificate that has ended, or ends within 30 days, is found for each use', () => {
  const ends = { client: NOW + 29 * DAY_MS, quorum: NOW + 1.5 * DAY_MS, http: NOW }
  expect(find({ ends })).toEqual([
    'tls-ends: the certificate for clients ends in 29 days',
    'tls-ends: the certificate for members ends in a day',
    'tls-over: the certificate for the HTTP port has ended at 2026-11-21T00:00:00.000Z',
  ])
})

it('a disk of which more than 85 % are used is found, once where both folders are on it', () => {
  const full = { free: 14, size: 100 }
  expect(find({ disk: { data: { free: 15, size: 100 }, log: { free: 15, size: 100 } } })).toEqual([])
  expect(find({ disk: { data: full, log: full } })).toEqual([
    'disk-fills: 86 % of the disk of snapshots are used, 14 bytes are free',
  ])
  expect(find({ disk: { data: null, log: full }, logs: '/log' })).toEqual([
    'disk-unknown: the disk of snapshots has not said in time how much is free',
    'disk-fills: 86 % of the disk of logs are used, 14 bytes are free',
  ])
})

it('lost lines of the audit log are found', () => {
  expect(find({ auditLinesLost: 3 })).toEqual(['audit-lost: 3 lines of the audit log could not be kept'])
})

it('a backup that is late, failed or cannot be used is found by the member on duty, or by all where there is none', () => {
  const late = backup({ lastBackupAt: NOW - 7_260_000, problem: 'no space' })
  const found = [
    'backup-old: the last backup is 121 minutes old, and one is due every 60: file:///backup',
    'backup-failed: the last backup has failed: no space: file:///backup',
  ]
  expect(find({ backups: [late] })).toEqual(found)
  expect(find({ backups: [{ ...late, isOnDuty: false }] })).toEqual([])
  expect(find({ backups: [{ ...late, isOnDuty: false, isDecided: false, member: undefined }] })).toEqual([])
  expect(find({ backups: [{ ...late, isOnDuty: false, member: undefined }] })).toEqual(found)
  expect(find({ backups: [backup({ lastBackupAt: undefined })] })).toEqual([])
  expect(find({ backups: [backup({ verified: { time: NOW, problem: 'a digest differs' } })] })).toEqual([
    'backup-unusable: the last verification has failed: a digest differs: file:///backup',
  ])
})
