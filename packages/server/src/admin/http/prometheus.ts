import { counterOf, epochOf } from '@zabra/protocol'
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
  'looking_count',
  'diff_count',
  'snap_count',
  'proposal_count',
  'commit_count',
  'learner_proposal_received_count',
  'learner_commit_received_count',
  'revalidate_count',
])

/** Keys of `mntr` that this server adds; here they have names of their own. */
const OWN_KEYS = new Set([
  'last_zxid',
  'process_memory_bytes',
  'heap_used_bytes',
  'external_memory_bytes',
  'max_event_loop_hold_ms',
  'max_gc_pause_ms',
  'log_writable',
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

/** Bounds of the histograms of times in milliseconds: every seventh bucket, which is about twice the one before, to 16 s. */
const TIME_BUCKETS = [17, 7, 152] as const
const DELAY_BOUNDS_MS = [1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10_000] as const

/** Figures that need a call to the system. */
export interface DiskFigures {
  /** Free bytes by directory; without those that could not be read. */
  readonly free: ReadonlyMap<string, number>
}

/** Yields the metrics of a server in Prometheus' text format, one family at a time. */
export function* prometheusText(target: AdminTarget | undefined, { free }: DiskFigures): Generator<string> {
  const server = target?.service
  yield* gauge('zabra_build_info', 1, `{version=${JSON.stringify(FULL_VERSION)}}`)
  yield family('zabra_ready', 'gauge')
  yield `zabra_ready{for="writes"} ${readiness(target).isReady ? 1 : 0}\n`
  yield `zabra_ready{for="reads"} ${readiness(target, { forReads: true }).isReady ? 1 : 0}\n`
  if (target === undefined) return
  yield family('zabra_ready_check', 'gauge')
  for (const { name, isOk } of readiness(target).checks)
    yield `zabra_ready_check{check="${name}"} ${isOk ? 1 : 0}\n`
  const mode = server?.role.mode ?? 'looking'
  yield family('zabra_role', 'gauge')
  for (const role of ROLES) yield `zabra_role{role="${role}"} ${role === mode ? 1 : 0}\n`
  yield* gauge('zabra_member_id', target.settings.serverId)
  if (target.leader !== undefined) yield* gauge('zabra_leader_id', target.leader)
  yield* gauge('zabra_zxid_lag', target.zxidLag)
  if (free.size > 0) yield family('zabra_disk_free_bytes', 'gauge')
  for (const [dir, bytes] of free) yield `zabra_disk_free_bytes{dir=${JSON.stringify(dir)}} ${bytes}\n`
  if (target.lastSnapshotAt !== undefined)
    yield* gauge('zabra_snapshot_age_seconds', (target.platform.clock.wall() - target.lastSnapshotAt) / 1000)
  if (target.settings.metricsExportRuntime) yield* runtimeFamilies(target)
  for (const name of ABSENT_COUNTERS) yield `${family(name, 'counter')}${name} 0.0\n`
  if (server === undefined) return
  yield* serverFamilies(server, target)
  yield* ownFamilies(server)
}

/** Yields the families of Apache ZooKeeper. */
function* serverFamilies(server: ServerReport, target: AdminTarget): Generator<string> {
  const { stats, watchNotifier, role } = server
  const { ensemble } = stats
  const members: readonly SummaryFamily[] = [
    ['election_time', ensemble.electionTime, 0.5],
    ['unavailable_time', ensemble.unavailableTime, 0.5],
    ['follower_sync_time', ensemble.followerSyncTime, 0.5],
    ['observer_sync_time', ensemble.observerSyncTime, 0.5],
  ]
  const summaries: readonly SummaryFamily[] = [
    ['readlatency', stats.readLatency, 0.5, 0.9, 0.99],
    ['updatelatency', stats.updateLatency, 0.5, 0.9, 0.99],
    ['fsynctime', stats.fsyncTime, 0.5],
    ['snapshottime', stats.snapshotTime, 0.5],
    ['sync_processor_batch_size', stats.batchSize, 0.5],
    ['node_created_watch_count', watchNotifier.recipients.created],
    ['node_deleted_watch_count', watchNotifier.recipients.deleted],
    ['node_changed_watch_count', watchNotifier.recipients.changed],
    ['node_children_watch_count', watchNotifier.recipients.children],
    ...(role.member === undefined ? [] : members),
  ]
  for (const [name, values, ...quantiles] of summaries) yield summary(name, values, quantiles)
  const inSummaries = new Set(summaries.map(([name]) => name))
  for (const [key, value] of monitorMetrics(server, target.startedAt)) {
    if (OWN_KEYS.has(key) || inSummaries.has(key.replace(/^(?:avg|min|max|cnt|sum|p\d+)_/, ''))) continue
    if (!/^-?\d+(?:\.\d+)?$/.test(String(value))) continue
    yield `${family(key, COUNTERS.has(key) ? 'counter' : 'gauge')}${key} ${decimal(Number(value))}\n`
  }
}

type SummaryFamily = readonly [name: string, values: Summary | Histogram, ...quantiles: number[]]

/** Yields the families that Apache ZooKeeper lacks: seconds and bytes. */
function* ownFamilies({
  stats,
  tree,
  watches,
  sessions,
  localSessions,
  pipeline,
  role,
}: ServerReport): Generator<string> {
  yield family('zabra_requests_total', 'counter')
  for (const { op, result, count } of stats.requests.entries())
    yield `zabra_requests_total{op="${op}",result="${result}"} ${count}\n`
  yield family('zabra_request_seconds', 'histogram')
  yield* timeSamples('zabra_request_seconds', stats.readLatency, 'kind="read",')
  yield* timeSamples('zabra_request_seconds', stats.updateLatency, 'kind="write",')
  yield family('zabra_fsync_seconds', 'histogram')
  yield* timeSamples('zabra_fsync_seconds', stats.fsyncTime)
  yield* counter('zabra_transactions_total', stats.batchSize.sum)
  if (role.member !== undefined) {
    const { electionTime, unavailableTime } = stats.ensemble
    yield family('zabra_election_seconds', 'histogram')
    yield* timeSamples('zabra_election_seconds', electionTime)
    yield* counter('zabra_unavailable_seconds_total', unavailableTime.sum / 1000)
  }
  yield* gauge('zabra_epoch', epochOf(tree.lastZxid))
  yield* gauge('zabra_last_zxid', tree.lastZxid)
  yield* gauge('zabra_zxids_left', MAX_COUNTER - counterOf(tree.lastZxid))
  yield* gauge('zabra_log_writable', pipeline.isWritable ? 1 : 0)
  yield* gauge('zabra_queue_size', pipeline.outstanding, '{queue="outstanding"}')
  yield family('zabra_sessions', 'gauge')
  yield `zabra_sessions{kind="global"} ${sessions.size}\nzabra_sessions{kind="local"} ${localSessions?.size ?? 0}\n`
  yield family('zabra_watches', 'gauge')
  yield `zabra_watches{kind="data"} ${watches.data.size}\nzabra_watches{kind="children"} ${watches.child.size}\n`
}

/** The largest counter of a zxid, after which a leader has to be elected. */
const MAX_COUNTER = 0xffff_ffff

/** Yields the families about the process. */
function* runtimeFamilies({ platform: { system } }: AdminTarget): Generator<string> {
  const heap = system.heap?.()
  yield* gauge('process_resident_memory_bytes', system.residentMemory())
  const { open, max } = system.fileDescriptors()
  if (open >= 0) yield* gauge('process_open_fds', open)
  if (max >= 0) yield* gauge('process_max_fds', max)
  if (heap !== undefined) {
    yield* gauge('zabra_heap_bytes', heap.used)
    yield* gauge('zabra_external_bytes', heap.external)
  }
  const gcMs = system.gcTime?.()
  if (gcMs !== undefined) yield* counter('zabra_gc_seconds_total', gcMs / 1000)
  const delays = system.eventLoopDelays?.()
  if (delays === undefined) return
  const name = 'zabra_event_loop_delay_seconds'
  yield family(name, 'histogram')
  for (const bound of DELAY_BOUNDS_MS) yield bucket(name, '', bound / 1000, delays.countUpTo(bound))
  yield* histogramEnd(name, '', delays.count, delays.sum / 1000)
}

function* timeSamples(name: string, values: Histogram, labels = ''): Generator<string> {
  for (const [ms, count] of values.cumulative(...TIME_BUCKETS))
    yield bucket(name, labels, Number((ms / 1000).toPrecision(3)), count)
  yield* histogramEnd(name, labels, values.count, values.sum / 1000)
}

const bucket = (name: string, labels: string, bound: number, count: number): string =>
  `${name}_bucket{${labels}le="${bound}"} ${count}\n`

/** `labels` end with a comma. */
function* histogramEnd(name: string, labels: string, count: number, sum: number): Generator<string> {
  const suffix = labels === '' ? '' : `{${labels.slice(0, -1)}}`
  yield `${name}_bucket{${labels}le="+Inf"} ${count}\n${name}_sum${suffix} ${sum}\n${name}_count${suffix} ${count}\n`
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

function* counter(name: string, value: number): Generator<string> {
  yield `${family(name, 'counter')}${name} ${value}\n`
}

const family = (name: string, type: 'counter' | 'gauge' | 'summary' | 'histogram'): string =>
  `# HELP ${name} ${name}\n# TYPE ${name} ${type}\n`

const decimal = (value: number): string => (Number.isInteger(value) ? `${value}.0` : String(value))
