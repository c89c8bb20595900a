import { counterOf, epochOf } from '@zabra/protocol'
import type { OwnCertificate, System } from '@zabra/runtime'
import { dataMemoryLimit } from '../../connections/data-limits.ts'
import type { LeaderMetrics, RoleMetrics } from '../../connections/role-metrics.ts'
import { Histogram } from '../../core/histogram.ts'
import { LIMITS_NAME, STATS_NAME, type QuotaNumbers, type Tree } from '../../core/tree/index.ts'
import { COMMIT, FULL_VERSION, VERSION } from '../../version.ts'
import type { AdminTarget } from '../admin-target.ts'
import type { BackupReport } from '../backup-report.ts'
import { counterMetrics, monitorMetrics } from '../mntr.ts'
import type { ServerReport } from '../server-report.ts'
import { presentIn } from '../sliced-answers.ts'
import { APACHE_FAMILIES } from './apache-families.ts'
import type { DiskReport } from './disk-figures.ts'
import { readiness } from './health.ts'
import { labelValue, type MetricsWriter } from './metrics-writer.ts'
import { operationCounts } from './operation-counts.ts'
import { quotaAt } from './quota-at.ts'
import type { TreeReport } from './tree-survey.ts'

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

const ROLES = ['leader', 'follower', 'observer', 'standalone', 'read-only', 'looking'] as const

/** Figures that are collected before the metrics are written. */
export interface CollectedFigures {
  /** Lines of the log by level. */
  readonly logLines: Readonly<Record<string, number>>
  /** Connections without TLS to an HTTP port that takes both. */
  readonly plainConnections?: number
  /** Lines of the log that were lost; undefined where none is. */
  readonly logLost?: number | undefined
  /** Undefined before recovery. */
  readonly disk?: DiskReport | undefined
  /** The last walk of the tree; undefined before the first. */
  readonly tree?: TreeReport | undefined
}

/** Yields the metrics of a server, one family at a time. `adminCertificate` is the certificate of the HTTP port. */
export function* writeMetrics(
  writer: MetricsWriter,
  target: AdminTarget | undefined,
  figures: CollectedFigures,
  adminCertificate?: OwnCertificate,
): Generator<string> {
  yield* families(writer, target, figures, adminCertificate)
  yield writer.end
}

function* families(
  w: MetricsWriter,
  target: AdminTarget | undefined,
  { logLines, plainConnections = 0, logLost, disk, tree }: CollectedFigures,
  adminCertificate: OwnCertificate | undefined,
): Generator<string> {
  const server = target?.service
  const labels = `version="${VERSION}",commit="${labelValue(COMMIT)}",compatible="${FULL_VERSION}"`
  yield w.family('zabra_build_info', 'info')
  yield `zabra_build_info{${labels},node="${target === undefined ? '' : runtimeOf(target)}"} 1\n`
  yield w.family('zabra_ready', 'gauge')
  yield `zabra_ready{for="writes"} ${readiness(target).isReady ? 1 : 0}\n`
  yield `zabra_ready{for="reads"} ${readiness(target, { forReads: true }).isReady ? 1 : 0}\n`
  yield w.family('zabra_log_lines_total', 'counter')
  for (const [level, lines] of Object.entries(logLines))
    yield `zabra_log_lines_total{level="${level}"} ${lines}\n`
  if (logLost !== undefined) yield w.counter('zabra_log_lost_total', logLost)
  if (target === undefined) return
  yield w.family('zabra_ready_check', 'gauge')
  for (const { name, isOk } of readiness(target).checks)
    yield `zabra_ready_check{check="${name}"} ${isOk ? 1 : 0}\n`
  const mode = server?.role.mode ?? 'looking'
  yield w.family('zabra_role', 'gauge')
  for (const role of ROLES) yield `zabra_role{role="${role}"} ${role === mode ? 1 : 0}\n`
  yield w.family('zabra_feature_level', 'gauge')
  yield `zabra_feature_level{kind="release"} ${target.features.release}\n`
  yield `zabra_feature_level{kind="finalized"} ${target.features.finalized}\n`
  yield w.gauge('zabra_member_id', target.settings.serverId)
  if (target.leader !== undefined) yield w.gauge('zabra_leader_id', target.leader)
  yield w.gauge('zabra_zxid_lag', target.zxidLag)
  const { spaces, lastSnapshotAt, sizes } = disk ?? {}
  const disks = [...(spaces ?? [])]
  if (disks.length > 0) yield w.family('zabra_disk_free_bytes', 'gauge')
  for (const [dir, { free }] of disks) yield `zabra_disk_free_bytes{dir="${labelValue(dir)}"} ${free}\n`
  if (disks.length > 0) yield w.family('zabra_disk_size_bytes', 'gauge')
  for (const [dir, { size }] of disks) yield `zabra_disk_size_bytes{dir="${labelValue(dir)}"} ${size}\n`
  if (lastSnapshotAt !== undefined)
    yield w.gauge('zabra_snapshot_age_seconds', (target.platform.clock.wall() - lastSnapshotAt) / 1000)
  if (sizes !== undefined) {
    yield w.gauge('zabra_snapshot_bytes', sizes.snapshots)
    yield w.gauge('zabra_log_bytes', sizes.logs)
  }
  if (target.configuration !== undefined) yield w.gauge('zabra_config_version', target.configuration.version)
  if (target.auditLinesLost !== undefined) yield w.counter('zabra_audit_lost_total', target.auditLinesLost)
  yield* certificateFamily(w, { ...target.certificates, admin: adminCertificate })
  yield* backupFamilies(w, target)
  if (target.settings.metricsExportRuntime) yield* runtimeFamilies(w, target)
  if (server === undefined) return
  const printed = new Set<string>()
  for (const [name, text] of serverFamilies(w, server, target, plainConnections)) {
    printed.add(name)
    yield text
  }
  yield* ownFamilies(w, server, target)
  yield* sessionFamily(w, server)
  yield* treeFamilies(w, server, tree)
  yield* queueFamilies(w, server, target)
  if (server.role.member?.leader !== undefined) yield* peerFamilies(w, server.role.member.leader)
  else yield* clockFamily(w, server, target.leader)
  yield* unmeasuredFamilies(w, printed, server.role)
}

/**
 * Yields the families of Apache ZooKeeper that are not measured: without observations, so that a panel for them shows no gap. A family with
 * one series for each name has none.
 */
function* unmeasuredFamilies(
  w: MetricsWriter,
  printed: ReadonlySet<string>,
  { member }: RoleMetrics,
): Generator<string> {
  for (const { name, type, hasKeys, quantiles, of } of APACHE_FAMILIES) {
    if (printed.has(name) || (of === 'members' && member === undefined)) continue
    if (of === 'leaders' && member?.leader === undefined) continue
    if (type === 'summary')
      yield hasKeys ? w.keyedSummary(name, [], quantiles) : w.summary(name, NOTHING, quantiles)
    else yield hasKeys ? w.keyed(name, type, []) : w.single(name, type, 0)
  }
}

const NOTHING = new Histogram()
const QUANTILES = new Map(APACHE_FAMILIES.map(({ name, quantiles }) => [name, quantiles]))

/** Yields the families of Apache ZooKeeper that are measured, by their names. */
function* serverFamilies(
  w: MetricsWriter,
  server: ServerReport,
  target: AdminTarget,
  plainConnections: number,
): Generator<readonly [name: string, text: string]> {
  const { stats } = server
  const { ensemble, startup, commits } = stats
  const stages = stats.stages.latencies
  stats.countHolds()
  const summaries: readonly (readonly [name: string, values: Histogram])[] = [
    ['readlatency', stats.readLatency],
    ['updatelatency', stats.updateLatency],
    ['fsynctime', stats.fsyncTime],
    ['snapshottime', stats.snapshotTime],
    ['sync_processor_batch_size', stats.batchSize],
    // A sync takes all that waits.
    ['sync_processor_queue_size', stats.batchSize],
    ['node_created_watch_count', stats.watches.created],
    ['node_deleted_watch_count', stats.watches.deleted],
    ['node_changed_watch_count', stats.watches.changed],
    ['node_children_watch_count', stats.watches.children],
    ['election_time', ensemble.electionTime],
    ['unavailable_time', ensemble.unavailableTime],
    ['leader_unavailable_time', ensemble.leaderUnavailableTime],
    ['follower_sync_time', ensemble.followerSyncTime],
    ['observer_sync_time', ensemble.observerSyncTime],
    ['quorum_ack_latency', ensemble.quorumAckLatency],
    ['propagation_latency', ensemble.propagationLatency],
    ['startup_snap_load_time', startup.snapshotMs],
    ['startup_txns_load_time', startup.logMs],
    ['startup_txns_loaded', startup.transactions],
    ['dbinittime', startup.totalMs],
    ['sync_processor_queue_flush_time_ms', stats.fsyncTime],
    ['connection_token_deficit', stats.tokenDeficit],
    ['restore_time', stats.restoreTime],
    ['inflight_snap_count', ensemble.inFlightSnaps],
    ['inflight_diff_count', ensemble.inFlightDiffs],
    ['proposal_latency', ensemble.proposalLatency],
    ['commit_propagation_latency', ensemble.propagationLatency],
    ['prep_processor_queue_time_ms', stages.queue],
    ['prep_process_time', stages.prepare],
    ['sync_processor_queue_time_ms', stages.proposal],
    ['sync_processor_queue_and_flush_time_ms', stats.stages.untilDurable],
    ['sync_process_time', stats.stages.untilDurable],
    ['write_commitproc_time_ms', stats.stages.untilCommitted],
    ['local_write_committed_time_ms', stats.stages.untilAnswered],
    ['write_final_proc_time_ms', stats.stages.untilAnswered],
    ['server_write_committed_time_ms', stats.stages.untilAppliedOfOthers],
    ['proposal_process_time', stats.stages.proposing],
    ['close_session_prep_time', stats.stages.endOfSession],
    // A read is answered by the one thread that takes it.
    ['read_final_proc_time_ms', stats.readLatency],
    ['requests_in_session_queue', commits.requestsInLines],
    ['pending_session_queue_size', commits.lines],
    ['reads_after_write_in_session_queue', commits.readsLeft],
    ['reads_issued_from_session_queue', commits.readsLeft],
    ['session_queues_drained', commits.linesDrained],
    ['write_batch_time_in_commit_processor', commits.batchTime],
    ['commit_process_time', commits.timeOfOne],
    ['read_commit_proc_req_queued', commits.readsInLines],
    ['write_commit_proc_req_queued', commits.writesInFlight],
    ['commit_commit_proc_req_queued', commits.commitsWaiting],
    ['read_commit_proc_issued', commits.readsAnswered],
    ['write_commit_proc_issued', commits.writesAnswered],
    ['read_commitproc_time_ms', commits.readWait],
    ['prep_processor_queue_size', commits.waitingForPreparation],
    ['learner_request_processor_queue_size', commits.waitingForLeader],
    ['om_proposal_process_time_ms', ensemble.relayTime],
    ['om_commit_process_time_ms', ensemble.relayCommitTime],
    ['proposal_ack_creation_latency', ensemble.ackCreationLatency],
    ['request_throttle_queue_time_ms', stats.throttledTime],
    ['netty_queued_buffer_capacity', stats.unsentBytes],
    ['jvm_pause_time_ms', stats.holds],
  ]
  for (const [name, values] of summaries) yield [name, w.summary(name, values, QUANTILES.get(name)!)]
  const queues = [...ensemble.packetQueues]
  for (const [name, values] of [
    ['ack_latency', ensemble.ackLatency],
    ['learner_handler_qp_size', queues.map(([id, { size }]) => [id, size] as const)],
    ['learner_handler_qp_time_ms', queues.map(([id, { time }]) => [id, time] as const)],
  ] as const)
    yield [name, w.keyedSummary(name, values, QUANTILES.get(name)!)]
  const measured = server.tree.options.traffic?.measured ?? []
  for (const [name, which] of [
    ['read_per_namespace', 'read'],
    ['write_per_namespace', 'written'],
  ] as const) {
    const byName = measured.map((namespace) => [namespace.name, namespace[which]] as const)
    yield [name, w.keyedSummary(name, byName, QUANTILES.get(name)!)]
  }
  const refused = measured.filter((namespace) => namespace.refused > 0)
  yield [
    'quota_exceeded_error_per_namespace',
    w.keyed(
      'quota_exceeded_error_per_namespace',
      'counter',
      refused.map((namespace) => [namespace.name, namespace.refused]),
    ),
  ]
  const counters = [
    ...counterMetrics(server, 'start'),
    ...otherCounters(server),
    ...(w.names === '3.10' ? operationCounts(stats) : []),
    ['insecure_admin_count', plainConnections] as const,
  ]
  for (const [name, value] of counters) yield [name, w.single(name, 'counter', value)]
  yield* quotaFamilies(w, server.tree)
  const inSummaries = new Set(summaries.map(([name]) => name))
  const inCounters = new Set(counters.map(([name]) => name))
  for (const [key, value] of monitorMetrics(server, target.startedAt)) {
    if (OWN_KEYS.has(key) || inCounters.has(key)) continue
    if (inSummaries.has(key.replace(/^(?:avg|min|max|cnt|sum|p\d+)_/, ''))) continue
    if (!/^-?\d+(?:\.\d+)?$/.test(String(value))) continue
    yield [key, w.single(key, 'gauge', Number(value))]
  }
}

/** Returns the counters of Apache ZooKeeper that are no keys of `mntr`. */
function otherCounters({ stats, role }: ServerReport): (readonly [name: string, value: number])[] {
  const { ensemble } = stats
  const logged = stats.batchSize.totalSum
  const committed = ensemble.total('commitCount') + ensemble.total('learnerCommitsReceived')
  return [
    ['snapshot_rate_limited_count', stats.total('snapshotsRateLimited')],
    ['restore_rate_limited_count', stats.total('restoresRateLimited')],
    ['restore_error_count', stats.total('restoreErrors')],
    ['cnxn_closed_without_zk_server_running', stats.refusals.not_serving],
    ['outstanding_changes_queued', stats.changes.added],
    ['outstanding_changes_removed', stats.changes.removed],
    ['stale_replies', stats.total('staleReplies')],
    ['ensemble_auth_success', ensemble.total('loginsProved')],
    ['ensemble_auth_fail', ensemble.total('loginsRefused')],
    ['ensemble_auth_skip', ensemble.total('loginsSkipped')],
    ['sync_processor_request_queued', logged],
    ['request_commit_queued', role.member === undefined ? logged : committed],
    ['prep_processor_request_queued', role.mode === 'standalone' ? logged : ensemble.total('proposalCount')],
  ]
}

/** Quotas that are looked up to report their limits and usage, among the first ones, and the longest of their paths, in characters. */
const MAX_QUOTAS = 100
const FIRST_QUOTAS = 10_000
const MAX_QUOTA_PATH = 200

/** Yields limits and usage by quota: of hard limits, where there are any. */
function* quotaFamilies(w: MetricsWriter, tree: Tree): Generator<readonly [name: string, text: string]> {
  const rows: { readonly key: string; readonly limits: QuotaNumbers; readonly usage: QuotaNumbers }[] = []
  let [seen, lookedUp] = [0, 0]
  for (const subject of tree.quotas.subjects()) {
    if (lookedUp === MAX_QUOTAS || seen++ === FIRST_QUOTAS) break
    if (subject.length > MAX_QUOTA_PATH) continue
    lookedUp++
    const limits = quotaAt(tree, subject, LIMITS_NAME)
    const usage = quotaAt(tree, subject, STATS_NAME)
    if (limits !== undefined && usage !== undefined) rows.push({ key: subject, limits, usage })
  }
  const of = (name: string, value: (row: (typeof rows)[number]) => number): readonly [string, string] => [
    name,
    w.keyed(
      name,
      'gauge',
      rows.map((row) => [row.key, value(row)]),
    ),
  ]
  yield of('quota_count_limit_per_namespace', ({ limits }) => hardOr(limits.countHardLimit, limits.count))
  yield of('quota_bytes_limit_per_namespace', ({ limits }) => hardOr(limits.byteHardLimit, limits.bytes))
  yield of('quota_count_usage_per_namespace', ({ usage }) => usage.count)
  yield of('quota_bytes_usage_per_namespace', ({ usage }) => usage.bytes)
}

const hardOr = (hard: number, soft: number): number => (hard > -1 ? hard : soft)

/** Yields the families that Apache ZooKeeper lacks: seconds and bytes. */
function* ownFamilies(
  w: MetricsWriter,
  { stats, tree, watches, sessions, localSessions, pipeline, role, portStatus: { handshakes } }: ServerReport,
  { zxidLag }: AdminTarget,
): Generator<string> {
  yield w.family('zabra_requests_total', 'counter')
  for (const { op, result, count } of stats.requests.entries())
    yield `zabra_requests_total{op="${op}",result="${result}"} ${count}\n`
  yield w.family('zabra_request_seconds', 'histogram')
  yield* w.times('zabra_request_seconds', stats.readLatency, 'kind="read",')
  yield* w.times('zabra_request_seconds', stats.updateLatency, 'kind="write",')
  yield* w.times('zabra_request_seconds', stats.syncLatency, 'kind="sync",')
  yield* w.times('zabra_request_seconds', stats.sessionLatency, 'kind="session",')
  yield w.family('zabra_stage_seconds', 'histogram')
  for (const [stage, values] of Object.entries(stats.stages.latencies))
    yield* w.times('zabra_stage_seconds', values, `stage="${stage}",`)
  yield w.family('zabra_fsync_seconds', 'histogram')
  yield* w.times('zabra_fsync_seconds', stats.fsyncTime)
  yield w.counter('zabra_transactions_total', stats.batchSize.totalSum)
  yield w.family('zabra_fsync_batch', 'histogram')
  yield* w.counts('zabra_fsync_batch', stats.batchSize)
  yield w.family('zabra_connections_refused_total', 'counter')
  for (const [reason, count] of Object.entries({
    ...stats.refusals,
    tls: handshakes.rejected + handshakes.failed,
  }))
    yield `zabra_connections_refused_total{reason="${reason}"} ${count}\n`
  yield w.family('zabra_connections_closed_total', 'counter')
  for (const [reason, count] of Object.entries(stats.closed))
    yield `zabra_connections_closed_total{reason="${reason}"} ${count}\n`
  if (role.member !== undefined) {
    const { electionTime, unavailableTime, quorumAckLatency, propagationLatency } = stats.ensemble
    yield w.family('zabra_quorum_ack_seconds', 'histogram')
    yield* w.times('zabra_quorum_ack_seconds', quorumAckLatency)
    yield w.family('zabra_propagation_seconds', 'histogram')
    yield* w.times('zabra_propagation_seconds', propagationLatency)
    yield w.family('zabra_election_seconds', 'histogram')
    yield* w.times('zabra_election_seconds', electionTime)
    yield w.counter('zabra_unavailable_seconds_total', unavailableTime.totalSum / 1000)
  }
  yield w.gauge('zabra_epoch', epochOf(tree.lastZxid))
  yield w.gauge('zabra_last_zxid', tree.lastZxid)
  yield w.gauge('zabra_committed_zxid', tree.lastZxid + zxidLag)
  yield w.gauge('zabra_zxids_left', MAX_COUNTER - counterOf(tree.lastZxid))
  yield w.gauge('zabra_log_writable', pipeline.isWritable ? 1 : 0)
  yield w.family('zabra_sessions', 'gauge')
  yield `zabra_sessions{kind="global"} ${sessions.size}\nzabra_sessions{kind="local"} ${localSessions?.size ?? 0}\n`
  yield w.family('zabra_sessions_ended_total', 'counter')
  for (const [reason, counter] of [
    ['closed', 'sessionsClosed'],
    ['expired', 'sessionsExpired'],
    ['killed', 'sessionsKilled'],
  ] as const)
    yield `zabra_sessions_ended_total{reason="${reason}"} ${stats.total(counter)}\n`
  yield `zabra_sessions_ended_total{reason="moved"} ${stats.closed.moved}\n`
  yield w.counter('zabra_packet_too_large_total', stats.total('largeRequestsRejected'))
  yield w.counter('zabra_notifications_total', stats.watches.total('delivered'))
  yield w.family('zabra_watches', 'gauge')
  for (const [kind, count] of Object.entries({
    data: watches.data.counts.oneShot - watches.data.counts.missing,
    exists: watches.data.counts.missing,
    children: watches.child.counts.oneShot,
    persistent: watches.data.counts.persistent,
    recursive: watches.data.counts.recursive,
  }))
    yield `zabra_watches{kind="${kind}"} ${count}\n`
  yield w.family('zabra_notification_seconds', 'histogram')
  yield* w.times('zabra_notification_seconds', stats.watches.latency)
}

/** The classes of the timeouts of sessions, in seconds. */
const TIMEOUT_CLASSES = [5, 10, 30, 60, 300, Infinity] as const
/** Sessions and connections that are counted in one piece of the text. */
const PER_PIECE = 100

/** Yields the sessions by their timeouts, each in the lowest class that it fits. */
function* sessionFamily(w: MetricsWriter, { sessions, localSessions }: ServerReport): Generator<string> {
  const counts = TIMEOUT_CLASSES.map(() => 0)
  let counted = 0
  for (const held of [sessions, localSessions])
    for (const { timeout } of held === undefined ? [] : presentIn(held)) {
      counts[TIMEOUT_CLASSES.findIndex((seconds) => timeout <= seconds * 1000)]!++
      if (++counted % PER_PIECE === 0) yield ''
    }
  yield w.family('zabra_sessions_by_timeout', 'gauge')
  for (const [index, seconds] of TIMEOUT_CLASSES.entries())
    yield `zabra_sessions_by_timeout{up_to_seconds="${seconds === Infinity ? '+Inf' : seconds}"} ${counts[index]}\n`
}

/** First path elements whose sizes are reported each for itself. */
const MAX_NAMESPACES = 50

/** Yields the sizes of the largest first path elements, and what the last walk of the tree found; nothing of it before the first. */
function* treeFamilies(
  w: MetricsWriter,
  { tree }: ServerReport,
  survey: TreeReport | undefined,
): Generator<string> {
  const { largest, rest } = tree.store.namespaces.largest(MAX_NAMESPACES)
  yield ''
  const sizes = [
    ...largest.map(({ top, ...size }) => ({ name: labelValue(tree.pathOf(top)), ...size })),
    { name: 'other', ...rest },
  ]
  yield w.family('zabra_tree_bytes', 'gauge')
  for (const { name, bytes } of sizes) yield `zabra_tree_bytes{namespace="${name}"} ${bytes}\n`
  yield w.family('zabra_tree_nodes', 'gauge')
  for (const { name, nodes } of sizes) yield `zabra_tree_nodes{namespace="${name}"} ${nodes}\n`
  yield w.gauge('zabra_access_lists', tree.acls.size)
  yield w.gauge('zabra_access_list_bytes', tree.acls.bytes)
  if (survey === undefined) return
  yield w.gauge('zabra_largest_node_bytes', survey.largestNodeBytes)
  yield w.gauge('zabra_most_children', survey.mostChildren)
}

/** Yields what waits: requests, transactions and bytes. */
function* queueFamilies(
  w: MetricsWriter,
  server: ServerReport,
  { log, platform }: AdminTarget,
): Generator<string> {
  const { pipeline, throttler, connections } = server
  const sizes = { outstanding: pipeline.outstanding, throttled: throttler.size, ...pipeline.queues }
  yield w.family('zabra_queue_size', 'gauge')
  for (const [queue, size] of Object.entries(sizes)) yield `zabra_queue_size{queue="${queue}"} ${size}\n`
  let unsentBytes = 0
  let counted = 0
  for (const { flow } of presentIn(connections)) {
    unsentBytes += flow.unsentBytes
    if (++counted % PER_PIECE === 0) yield ''
  }
  yield w.gauge('zabra_outbox_bytes', unsentBytes)
  yield w.gauge('zabra_log_pending_bytes', log?.pendingBytes ?? 0)
  const since = log?.writingSince
  const pendingMs = since === undefined ? 0 : platform.clock.monotonic() - since
  yield w.gauge('zabra_fsync_pending_seconds', pendingMs / 1000)
}

function* peerFamilies(w: MetricsWriter, { peers }: LeaderMetrics): Generator<string> {
  // A member that has connected again may have two connections: the last one counts.
  const byId = new Map(peers.map((peer) => [peer.serverId, peer]))
  yield w.family('zabra_peer_round_trip_seconds', 'gauge')
  for (const [id, { roundTripMs }] of byId)
    if (roundTripMs !== undefined) yield `zabra_peer_round_trip_seconds{peer="${id}"} ${roundTripMs / 1000}\n`
  yield w.family('zabra_peer_unsent_bytes', 'gauge')
  for (const [id, { unsentBytes }] of byId) yield `zabra_peer_unsent_bytes{peer="${id}"} ${unsentBytes}\n`
}

/** Yields how far the clock of a learner is ahead of that of its leader; nothing before the first transaction. */
function* clockFamily(
  w: MetricsWriter,
  { stats }: ServerReport,
  leader: number | undefined,
): Generator<string> {
  const aheadMs = stats.ensemble.clockAhead.least
  if (aheadMs === undefined || leader === undefined) return
  yield w.gauge('zabra_clock_skew_seconds', aheadMs / 1000, `{peer="${leader}"}`)
}

/** The versions of runtimes: `environment` asks the system for much more. */
const runtimes = new WeakMap<System, string>()

/** Returns the version of the runtime, which `envi` shows under the name of Java's. */
function runtimeOf({ platform: { system } }: AdminTarget): string {
  const known = runtimes.get(system)
  if (known !== undefined) return known
  const version = labelValue(new Map(system.environment()).get('java.version') ?? '')
  runtimes.set(system, version)
  return version
}

/** Yields when certificates end; nothing without any. */
function* certificateFamily(
  w: MetricsWriter,
  certificates: Readonly<Record<string, OwnCertificate | undefined>>,
): Generator<string> {
  const known = Object.entries(certificates).filter(([, certificate]) => certificate !== undefined)
  if (known.length > 0) yield w.family('zabra_certificate_expiry_seconds', 'gauge')
  for (const [use, certificate] of known) {
    const { validUntil, subjectHash } = certificate!
    yield `zabra_certificate_expiry_seconds{use="${use}",subject="${subjectHash}"} ${validUntil / 1000}\n`
  }
}

/** Yields the families about the backups that the server writes; none without a target. */
function* backupFamilies(w: MetricsWriter, { backups }: AdminTarget): Generator<string> {
  const reports = backups?.reports() ?? []
  if (reports.length === 0) return
  const samples = function* (
    name: string,
    type: 'gauge' | 'counter',
    value: (report: BackupReport) => number | undefined,
  ): Generator<string> {
    yield w.family(name, type)
    for (const report of reports) {
      const number = value(report)
      if (number !== undefined) yield `${name}{target="${labelValue(report.url)}"} ${number}\n`
    }
  }
  yield* samples('zabra_backup_on_duty', 'gauge', ({ isOnDuty }) => (isOnDuty ? 1 : 0))
  yield* samples(
    'zabra_backup_last_success_seconds',
    'gauge',
    ({ lastBackupAt }) => lastBackupAt && lastBackupAt / 1000,
  )
  yield* samples('zabra_backup_interval_seconds', 'gauge', ({ intervalMs }) => intervalMs / 1000)
  yield* samples('zabra_backup_bytes', 'gauge', ({ contents }) => contents?.bytes)
  yield* samples('zabra_backup_problem', 'gauge', ({ problem }) => (problem === undefined ? 0 : 1))
  yield* samples('zabra_backup_failures_total', 'counter', ({ failures }) => failures)
  yield* samples('zabra_backup_gaps_total', 'counter', ({ gaps }) => gaps)
  yield* samples(
    'zabra_backup_last_verification_seconds',
    'gauge',
    ({ verified }) => verified && verified.time / 1000,
  )
  yield* samples(
    'zabra_backup_verified',
    'gauge',
    ({ verified }) => verified && (verified.problem === null ? 1 : 0),
  )
}

/** The largest counter of a zxid, after which a leader has to be elected. */
const MAX_COUNTER = 0xffff_ffff

/** Yields the families about the process. */
function* runtimeFamilies(
  w: MetricsWriter,
  { platform: { system, clock }, settings, startedAt }: AdminTarget,
): Generator<string> {
  const heap = system.heap?.()
  yield w.gauge('process_resident_memory_bytes', system.residentMemory())
  const { open, max } = system.fileDescriptors()
  if (open >= 0) yield w.gauge('process_open_fds', open)
  if (max >= 0) yield w.gauge('process_max_fds', max)
  if (heap !== undefined) {
    yield w.gauge('zabra_heap_bytes', heap.used)
    yield w.gauge('zabra_external_bytes', heap.external)
  }
  const limits = system.memoryLimits?.()
  if (limits !== undefined) {
    yield w.family('zabra_memory_limit_bytes', 'gauge')
    const data = dataMemoryLimit(settings.dataMemoryBytes, system)
    for (const [space, bytes] of Object.entries({ ...limits, data }))
      yield `zabra_memory_limit_bytes{space="${space}"} ${bytes === Infinity ? '+Inf' : bytes}\n`
  }
  const cpuMs = system.cpuTime?.()
  if (cpuMs !== undefined) yield w.counter('process_cpu_seconds_total', cpuMs / 1000)
  const startedMs = Math.round(clock.wall() - (clock.monotonic() - startedAt))
  yield w.gauge('process_start_time_seconds', startedMs / 1000)
  const activeMs = system.eventLoopActive?.()
  if (activeMs !== undefined) yield w.counter('zabra_event_loop_active_seconds_total', activeMs / 1000)
  const collections = [...(system.gcPauses?.() ?? [])]
  if (collections.length > 0) yield w.family('zabra_gc_seconds_total', 'counter')
  for (const [kind, { sum }] of collections) yield `zabra_gc_seconds_total{kind="${kind}"} ${sum / 1000}\n`
  if (collections.length > 0) yield w.family('zabra_gc_pause_seconds', 'histogram')
  for (const [kind, pauses] of collections)
    yield* w.pauses('zabra_gc_pause_seconds', pauses, `kind="${kind}",`)
  const delays = system.eventLoopDelays?.()
  if (delays === undefined) return
  yield w.family('zabra_event_loop_delay_seconds', 'histogram')
  yield* w.pauses('zabra_event_loop_delay_seconds', delays)
}
