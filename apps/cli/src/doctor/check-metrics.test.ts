import type { TreeFindings } from '@zabra/server/core'
import { describe, expect, it } from 'vitest'
import { idsOf } from '../testing/findings.ts'
import { checkAgreement } from './check-agreement.ts'
import { checkMetrics } from './check-metrics.ts'
import { checkTree } from './check-tree.ts'
import { MetricsText } from './metrics-text.ts'

const DAY_MS = 86_400_000
const NOW = 1_800_000_000_000

const sound: Readonly<Record<string, number>> = {
  zabra_zxid_lag: 3,
  zabra_election_seconds_count: 2,
  zabra_zxids_left: 4_000_000_000,
  'zabra_fsync_seconds_bucket{le="0.05"}': 990,
  'zabra_fsync_seconds_bucket{le="0.1"}': 999,
  'zabra_fsync_seconds_bucket{le="+Inf"}': 1000,
  zabra_fsync_seconds_count: 1000,
  zabra_fsync_pending_seconds: 0.01,
  'zabra_disk_free_bytes{dir="/data"}': 2 ** 34,
  zabra_outbox_bytes: 1000,
  'zabra_peer_unsent_bytes{peer="2"}': 1000,
  'node_changed_watch_count{quantile="0.5",}': 12,
  'zabra_tree_bytes{namespace="/a"}': 2 ** 28,
  'zabra_tree_bytes{namespace="other"}': 0,
  'zabra_memory_limit_bytes{space="heap"}': 2 ** 28,
  'zabra_memory_limit_bytes{space="process"}': 2 ** 30,
  'zabra_clock_skew_seconds{peer="1"}': -0.02,
  'zabra_certificate_expiry_seconds{use="client"}': NOW / 1000 + 90 * 86_400,
  'zabra_backup_interval_seconds{target="file:///b"}': 3600,
  'zabra_backup_last_success_seconds{target="file:///b"}': NOW / 1000 - 3700,
  'zabra_backup_verified{target="file:///b"}': 1,
}
const textOf = (samples: Readonly<Record<string, number>>): MetricsText =>
  new MetricsText(
    Object.entries(samples)
      .map(([name, value]) => `# TYPE x gauge\n${name} ${value}\n`)
      .join(''),
  )
const check = (changes: Readonly<Record<string, number>>, uptimeMs = 2 * DAY_MS): Promise<string[]> =>
  idsOf(checkMetrics('zk1', textOf({ ...sound, ...changes }), { now: NOW, uptimeMs }))

describe('checkMetrics', () => {
  it('finds nothing in sound metrics, and none in metrics that a server does not have', async () => {
    expect(await check({})).toEqual([])
    expect(await idsOf(checkMetrics('zk1', new MetricsText(''), { now: NOW, uptimeMs: 0 }))).toEqual([])
    expect(
      await idsOf(checkMetrics('zk1', new MetricsText('<html>\n{}\n'), { now: NOW, uptimeMs: 0 })),
    ).toEqual([])
  })

  it.each([
    [{ zabra_zxid_lag: 20_000 }, 'lag'],
    [{ zabra_election_seconds_count: 12 }, 'elections'],
    [{ zabra_zxids_left: 1000 }, 'zxid-counter'],
    [{ 'zabra_fsync_seconds_bucket{le="0.1"}': 980 }, 'slow-syncs'],
    [{ zabra_fsync_pending_seconds: 4 }, 'slow-syncs'],
    [{ 'zabra_disk_free_bytes{dir="/data"}': 1000 }, 'disk-full'],
    [{ zabra_outbox_bytes: 2 ** 27 }, 'outbox'],
    [{ 'zabra_peer_unsent_bytes{peer="2"}': 2 ** 27 }, 'outbox'],
    [{ 'node_changed_watch_count{quantile="0.5",}': 20_000 }, 'watch-storm'],
    [{ 'zabra_tree_bytes{namespace="other"}': 2 ** 29 }, 'little-memory'],
    [{ 'zabra_clock_skew_seconds{peer="1"}': -1.5 }, 'clock-skew'],
    [{ 'zabra_certificate_expiry_seconds{use="client"}': NOW / 1000 + 86_400 }, 'tls-ends'],
    [{ 'zabra_certificate_expiry_seconds{use="client"}': NOW / 1000 - 86_400 }, 'tls-over'],
    [{ 'zabra_backup_last_success_seconds{target="file:///b"}': NOW / 1000 - 9000 }, 'backup-old'],
    [{ 'zabra_backup_verified{target="file:///b"}': 0 }, 'backup-unusable'],
  ])('%j is the finding %s', async (changes, id) => {
    expect(await check(changes)).toEqual([id])
  })

  it('counts elections by day: a few weeks with one a day are sound', async () => {
    expect(await check({ zabra_election_seconds_count: 30 }, 30 * DAY_MS)).toEqual([])
    expect(await check({ zabra_election_seconds_count: 8 }, 1000)).toEqual(['elections'])
  })
})

describe('checkTree', () => {
  const none = { count: 0, first: [] }
  const quiet: TreeFindings = {
    nodes: 20,
    largestNode: { path: '/a', bytes: 1000 },
    mostChildren: { path: '/', children: 10 },
    sequences: none,
    quotas: none,
    openSecrets: none,
    rootPermissions: 'r',
    ephemerals: [{ session: '0x1', nodes: 10, bytes: 200 }],
  }

  it('finds nothing in a sound tree', async () => {
    expect(await idsOf(checkTree('zk1', quiet))).toEqual([])
  })

  it.each([
    [{ largestNode: { path: '/a', bytes: 600_000 } }, 'large-node'],
    [{ mostChildren: { path: '/a', children: 30_000 } }, 'many-children'],
    [{ sequences: { count: 1, first: [{ path: '/q', counter: 2e9 }] } }, 'sequence-counter'],
    [
      { quotas: { count: 1, first: [{ path: '/q', what: 'nodes' as const, limit: 5, use: 5 }] } },
      'quota-near',
    ],
    [{ openSecrets: { count: 1, first: [{ path: '/password', anyone: 'reads' as const }] } }, 'open-secret'],
    [{ rootPermissions: 'cdrwa' }, 'open-root'],
    [{ ephemerals: [{ session: '0x1', nodes: 20_000, bytes: 600_000 }] }, 'many-ephemerals'],
  ])('%j is the finding %s', async (changes, id) => {
    expect(await idsOf(checkTree('zk1', { ...quiet, ...changes }))).toEqual([id])
  })

  it('goes by the longest packet of the server', async () => {
    const large = { ...quiet, largestNode: { path: '/a', bytes: 600_000 } }
    expect(await idsOf(checkTree('zk1', large, 4 * 2 ** 20))).toEqual([])
  })
})

describe('checkAgreement', () => {
  it('finds settings that differ, each with the members that have a value, and compares no others', async () => {
    const member = (where: string, settings: Record<string, string>) => ({ where, settings })
    const [a, b] = [
      member('a', { tickTime: '2000', snapCount: '1' }),
      member('b', { tickTime: '2000', snapCount: '2' }),
    ]
    expect(await idsOf(checkAgreement([a, b, member('c', {})]))).toEqual([])
    const [found] = [...checkAgreement([a, b, member('c', { tickTime: '3000' })])]
    expect(found).toMatchObject({
      id: 'members-differ',
      where: 'tickTime',
      evidence: '2000 in a, b; 3000 in c',
    })
  })
})
