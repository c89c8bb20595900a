import { describe, expect, it } from 'vitest'
import { clusterTable, type ShownMember } from './cluster-table.ts'
import { table } from './table.ts'

const NOW = Date.UTC(2026, 10, 21)
const DAY_MS = 86_400_000

const member = (id: number, facts: Partial<ShownMember> = {}): ShownMember => ({
  id,
  state: 'follower',
  participant: true,
  zxid: '0x1200000a31',
  zxidLag: 0,
  behindLeader: 0,
  ready: true,
  uptimeMs: 12 * DAY_MS,
  disk: { data: { free: 57, size: 100 }, log: { free: 90, size: 100 } },
  certificates: { client: null, quorum: new Date(NOW + 300 * DAY_MS).toISOString(), http: null },
  findings: [],
  ageMs: 0,
  reason: null,
  problem: null,
  ...facts,
})

const lines = (...members: ShownMember[]): string[] => {
  const { head, rows } = clusterTable(members, NOW)
  return table(head, rows)
}

describe('the table of an ensemble', () => {
  it('shows of each member what an operator needs', () => {
    const over = { client: new Date(NOW - DAY_MS).toISOString() }
    expect(
      lines(
        member(1, { state: 'leader' }),
        member(2, { zxidLag: 3, behindLeader: 7, ready: false, uptimeMs: 61_000, certificates: over }),
        member(3, { participant: false, ageMs: 12_345, uptimeMs: 7_200_000 }),
      ),
    ).toEqual([
      'id  votes     state     zxid          lag  ready  uptime  disk  certificate  known  problem',
      ' 1  voter     leader    0x1200000a31    0  yes    12 d    43 %  300 d        now',
      ' 2  voter     follower  0x1200000a31    7  no     1 min   43 %  over         now',
      ' 3  observer  follower  0x1200000a31    0  yes    2 h     43 %  300 d        12 s',
    ])
  })

  it('shows dashes for what is not known, also in the answer of an older server', () => {
    const old = { id: 4, state: 'unknown', participant: true, zxid: null, ageMs: null, problem: 'refused' }
    const unknown = member(5, {
      ...old,
      id: 5,
      zxidLag: null,
      behindLeader: null,
      ready: null,
      uptimeMs: null,
      disk: null,
      certificates: null,
      findings: null,
    })
    expect(lines(old, unknown).slice(1)).toEqual([
      ' 4  voter  unknown     -    -      -       -     -            -  never  refused',
      ' 5  voter  unknown     -    -      -       -     -            -  never  refused',
    ])
  })

  it('fits 120 columns, and notes what it has cut, findings, and members without reports', () => {
    const problem = `leader: ${'no packet '.repeat(30)}\u001b[2J`
    const members = [
      member(12, { zxid: '0xfffffffe00000a31', state: 'read-only', uptimeMs: 59 * 60_000, problem }),
      member(2, { findings: [{ id: 'disk-fills', detail: '90 % of the disk are used' }] }),
      member(3, { participant: false, reason: 'it runs Apache ZooKeeper, which makes no reports' }),
    ]
    for (const line of lines(...members)) expect(line.length).toBeLessThanOrEqual(120)
    expect(clusterTable(members, NOW).notes).toEqual([
      `server 12: ${problem.replace('\u001b', '\\x1b')}`,
      'server 2: 90 % of the disk are used (disk-fills)',
      'server 3: it runs Apache ZooKeeper, which makes no reports',
    ])
    expect(lines(member(1, { problem: 'draining: accepts no new sessions' }))[1]).toMatch(
      /draining: accepts no new sessions$/,
    )
  })

  it('marks what is wrong', () => {
    const { rows, style, head } = clusterTable(
      [
        member(1, { ready: false, problem: 'x', disk: { data: { free: 1, size: 10 }, log: null } }),
        member(2, { certificates: { http: new Date(NOW + 3 * DAY_MS).toISOString() } }),
        member(3, { certificates: { http: new Date(NOW - 3 * DAY_MS).toISOString() } }),
      ],
      NOW,
    )
    const styles = rows.map((row) => head.flatMap((_, column) => style(row, column) ?? []).join())
    expect(styles).toEqual(['bad,warning,bad', 'warning,bad', 'bad,bad'])
  })
})
