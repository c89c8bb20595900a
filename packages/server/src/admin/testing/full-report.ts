import type { MemberReport } from '../http/api/member-report.ts'

/** A report with something in every field. */
export const FULL_REPORT: MemberReport = {
  state: 'follower',
  zxid: '0x100000007',
  zxidLag: 3,
  softwareVersion: '3.9.5-zabra-1.0.0, built on 2026-11-21 00:00 UTC',
  featureLevel: 2,
  finalizedLevel: 1,
  uptimeMs: 86_400_000,
  ready: false,
  checks: [
    { name: 'draining', ok: true, detail: 'ok' },
    { name: 'log', ok: false, detail: 'the disk is full, writes are refused' },
  ],
  draining: true,
  stopPermitMs: 1000,
  disk: { data: { free: 10, size: 100 }, log: null },
  certificates: { client: '2027-01-01T00:00:00.000Z', quorum: null, http: '2027-02-01T00:00:00.000Z' },
  connections: 1,
  sessions: 2,
  watches: 3,
  znodes: 4,
  memory: { used: 1000, limit: 2000 },
  findings: [{ id: 'disk-fills', detail: '90 % of the disk of snapshots are used, 10 bytes are free' }],
}
