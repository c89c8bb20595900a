import type { Histogram, Summary } from '../../core/histogram.ts'
import { FULL_VERSION } from '../../version.ts'
import type { AdminTarget } from '../admin-target.ts'
import { monitorMetrics } from '../mntr.ts'
import type { ServerReport } from '../server-report.ts'
import { readiness } from './health.ts'

/** The content type of Prometheus' text format; scrapers refuse an answer without one. */
export const PROMETHEUS_TYPE = 'text/plain; version=0.0.4; charset=utf-8'

/** Keys of `mntr` that are counters in Apache ZooKeeper; the others are gauges there. */
const COUNTERS = new Set([
  'connection_request_count',
  'connection_rejected',
  'connection_drop_count',
  'connection_revalidate_count',
  'sessionless_connections_expired',
  'stale_sessions_expired',
  'bytes_received_count',
  'response_bytes',
  'watch_bytes',
  'request_throttle_wait_count',
  'large_requests_rejected',
  'snapshot_error_count',
  'tls_handshake_exceeded',
  'unsuccessful_handshake',
  'unrecoverable_error_count',
  'digest_mismatches_count',
])

/** Families of Apache ZooKeeper that count what this server does not have; they stay 0, so that dashboards show no gap. */
const ABSENT_COUNTERS = [
  'add_dead_watcher_stall_time',
  'dead_watchers_queued',
  'dead_watchers_cleared',
  'response_packet_cache_hits',
  'response_packet_cache_misses',
  'response_packet_get_children_cache_hits',
  'response_packet_get_children_cache_misses',
  'skip_learner_request_to_next_processor_count',
  'requests_not_forwarded_to_commit_processor',
  'stale_requests',
  'stale_requests_dropped',
  'throttled_ops',
]

const ROLES = ['leader', 'follower', 'observer', 'standalone', 'read-only', 'looking'] as const

/** Yields the metrics of a server in Prometheus' text format, one family at a time. */
export function* prometheusText(target: AdminTarget | undefined): Generator<string> {
  const server = target?.service
  yield* gauge('zabra_build_info', 1, `{version=${JSON.stringify(FULL_VERSION)}}`)
  yield family('zabra_ready', 'gauge')
  yield `zabra_ready{for="writes"} ${readiness(target).isReady ? 1 : 0}\n`
  yield `zabra_ready{for="reads"} ${readiness(target, { forReads: true }).isReady ? 1 : 0}\n`
  if (target === undefined) return
  const mode = server?.role.mode ?? 'looking'
  yield family('zabra_role', 'gauge')
  for (const role of ROLES) yield `zabra_role{role="${role}"} ${role === mode ? 1 : 0}\n`
  yield* gauge('zabra_member_id', target.settings.serverId)
  if (target.leader !== undefined) yield* gauge('zabra_leader_id', target.leader)
  for (const name of ABSENT_COUNTERS) yield `${family(name, 'counter')}${name} 0.0\n`
  if (server !== undefined) yield* serverFamilies(server, target)
}

function* serverFamilies(server: ServerReport, target: AdminTarget): Generator<string> {
  const { stats, watchNotifier } = server
  const summaries: readonly (readonly [name: string, values: Summary | Histogram, ...quantiles: number[]])[] =
    [
      ['readlatency', stats.readLatency, 0.5, 0.9, 0.99],
      ['updatelatency', stats.updateLatency, 0.5, 0.9, 0.99],
      ['fsynctime', stats.fsyncTime],
      ['snapshottime', stats.snapshotTime],
      ['sync_processor_batch_size', stats.batchSize],
      ['node_created_watch_count', watchNotifier.recipients.created],
      ['node_deleted_watch_count', watchNotifier.recipients.deleted],
      ['node_changed_watch_count', watchNotifier.recipients.changed],
      ['node_children_watch_count', watchNotifier.recipients.children],
    ]
  for (const [name, values, ...quantiles] of summaries) yield summary(name, values, quantiles)
  const inSummaries = new Set(summaries.map(([name]) => name))
  for (const [key, value] of monitorMetrics(server, target.startedAt)) {
    const summarized = inSummaries.has(key.replace(/^(?:avg|min|max|cnt|sum|p\d+)_/, ''))
    if (summarized || !/^-?\d+(?:\.\d+)?$/.test(String(value))) continue
    yield `${family(key, COUNTERS.has(key) ? 'counter' : 'gauge')}${key} ${decimal(Number(value))}\n`
  }
}

function summary(name: string, values: Summary | Histogram, quantiles: readonly number[]): string {
  const lines = quantiles.map(
    (quantile) =>
      `${name}{quantile="${quantile}",} ${values.count === 0 || !('percentile' in values) ? 'NaN' : decimal(values.percentile(quantile))}\n`,
  )
  return `${family(name, 'summary')}${lines.join('')}${name}_count ${decimal(values.count)}\n${name}_sum ${decimal(values.sum)}\n`
}

function* gauge(name: string, value: number, labels = ''): Generator<string> {
  yield `${family(name, 'gauge')}${name}${labels} ${value}\n`
}

const family = (name: string, type: 'counter' | 'gauge' | 'summary'): string =>
  `# HELP ${name} ${name}\n# TYPE ${name} ${type}\n`

const decimal = (value: number): string => (Number.isInteger(value) ? `${value}.0` : String(value))
