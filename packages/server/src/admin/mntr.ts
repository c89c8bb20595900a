import type { EnsembleStats } from '../connections/ensemble-stats.ts'
import type { LeaderMetrics, RoleMetrics } from '../connections/role-metrics.ts'
import type { Histogram, Summary } from '../core/histogram.ts'
import type { Statistics } from '../core/statistics.ts'
import { FULL_VERSION } from '../version.ts'
import { decimal } from './format.ts'
import type { ServerReport } from './server-report.ts'

type Metric = readonly [key: string, value: string | number]

/**
 * Returns the metrics of `mntr`: those of Apache ZooKeeper by its names, then a few that it lacks. All values but the version and
 * the states are decimal numbers: exporters copy them as samples, and Prometheus drops a whole scrape for one malformed sample.
 */
export function monitorMetrics(server: ServerReport, startedAt: number): Metric[] {
  const { tree, stats, watches, platform } = server
  const { latency } = stats
  const { open, max } = platform.system.fileDescriptors()
  return [
    ['version', FULL_VERSION],
    ['server_state', server.role.mode],
    ...peerMetrics(server.role),
    ['avg_latency', decimal(latency.mean)],
    ['min_latency', Math.floor(latency.min)],
    ['max_latency', Math.floor(latency.max)],
    ['packets_received', stats.received],
    ['packets_sent', stats.sent],
    ['num_alive_connections', server.connections.size],
    ['outstanding_requests', server.pipeline.outstanding],
    ['uptime', Math.floor(platform.clock.monotonic() - startedAt)],
    ['znode_count', tree.nodeCount + 1],
    ['watch_count', watches.size],
    ['ephemerals_count', tree.owners.ephemeralCount],
    ['approximate_data_size', tree.approximateDataSize],
    ['global_sessions', server.sessions.size],
    ['local_sessions', server.localSessions?.size ?? 0],
    ['open_file_descriptor_count', open],
    ['max_file_descriptor_count', max],
    ['connection_drop_probability', '0.0'],
    ['last_client_response_size', stats.lastResponseSize],
    ['min_client_response_size', stats.minResponseSize],
    ['max_client_response_size', stats.maxResponseSize],
    ['outstanding_tls_handshake', server.portStatus.handshakes.active],
    ['auth_failed_count', stats.authFailed],
    ['non_mtls_remote_conn_count', stats.plainRemote],
    ['non_mtls_local_conn_count', stats.plainLocal],
    ...quorumMetrics(server.role),
    ...counterMetrics(server, 'reset'),
    ...histogramMetrics('readlatency', stats.readLatency),
    ...histogramMetrics('updatelatency', stats.updateLatency),
    ...(server.role.member === undefined ? [] : ensembleMetrics(stats.ensemble)),
    ...summaryMetrics('fsynctime', stats.fsyncTime),
    ...summaryMetrics('snapshottime', stats.snapshotTime),
    ...summaryMetrics('sync_processor_batch_size', stats.batchSize),
    ...summaryMetrics('node_created_watch_count', stats.watches.created),
    ...summaryMetrics('node_deleted_watch_count', stats.watches.deleted),
    ...summaryMetrics('node_changed_watch_count', stats.watches.changed),
    ...summaryMetrics('node_children_watch_count', stats.watches.children),
    ['last_zxid', tree.lastZxid],
    ['process_memory_bytes', platform.system.residentMemory()],
    ...heapMetrics(platform.system.heap?.()),
    ...longestPause('event_loop_hold', platform.system.maxEventLoopDelay?.()),
    ...longestPause('gc_pause', platform.system.maxGcPause?.()),
    ['log_writable', server.pipeline.isWritable ? 1 : 0],
    ...(server.role.member?.extraMetrics ?? []),
  ]
}

/** Returns the longest pause of the event loop of one kind since the start or `srst`; nothing where it is unknown. */
const longestPause = (what: string, ms: number | undefined): Metric[] =>
  ms === undefined ? [] : [[`max_${what}_ms`, decimal(ms)]]

const heapMetrics = (bytes: { readonly used: number; readonly external: number } | undefined): Metric[] =>
  bytes === undefined
    ? []
    : [
        ['heap_used_bytes', bytes.used],
        ['external_memory_bytes', bytes.external],
      ]

/** Returns the metrics after `server_state`: some tools read the first lines only. */
function peerMetrics({ member }: RoleMetrics): Metric[] {
  if (member === undefined) return []
  const { peerState, observerMasterId } = member
  const master: Metric[] = observerMasterId === undefined ? [] : [['observer_master_id', observerMasterId]]
  return [['peer_state', peerState], ...master]
}

function quorumMetrics({ member }: RoleMetrics): Metric[] {
  if (member === undefined) return []
  const { quorumSize, leader, observers: synced } = member
  const observers: Metric[] = synced === undefined ? [] : [['synced_observers', synced.length]]
  return [['quorum_size', quorumSize], ...(leader === undefined ? observers : leaderMetrics(leader))]
}

const leaderMetrics = (leader: LeaderMetrics): Metric[] => [
  ['learners', leader.learners],
  ['synced_followers', leader.syncedFollowers],
  ['synced_non_voting_followers', leader.syncedNonVotingFollowers],
  ['synced_observers', leader.syncedObservers],
  ['pending_syncs', leader.pendingSyncs],
  ['leader_uptime', Math.floor(leader.uptimeMs)],
  ['last_proposal_size', leader.lastProposalSize],
  ['min_proposal_size', leader.minProposalSize],
  ['max_proposal_size', leader.maxProposalSize],
]

const ensembleMetrics = (stats: EnsembleStats): Metric[] => [
  ...summaryMetrics('election_time', stats.electionTime),
  ...summaryMetrics('unavailable_time', stats.unavailableTime),
  ...summaryMetrics('follower_sync_time', stats.followerSyncTime),
  ...summaryMetrics('observer_sync_time', stats.observerSyncTime),
]

/** Returns the counters of Apache ZooKeeper, by its names: since the last `srst`, or since the start. */
export function counterMetrics(
  { stats, portStatus, role }: Pick<ServerReport, 'stats' | 'portStatus' | 'role'>,
  since: 'reset' | 'start',
): (readonly [key: string, value: number])[] {
  const { ensemble, watches } = stats
  const { rejected, failed } = portStatus.handshakes
  const before = since === 'reset' ? stats.handshakesAtReset : { rejected: 0, failed: 0 }
  const read = <S extends Statistics>(statistics: S, counter: string & keyof S): number =>
    since === 'reset' ? Number(statistics[counter]) : statistics.total(counter)
  return [
    ['connection_request_count', read(stats, 'sessionsRequested')],
    ['connection_rejected', read(stats, 'connectionsRejected')],
    ['connection_drop_count', read(stats, 'connectionsDropped')],
    ['connection_revalidate_count', read(stats, 'sessionsResumed')],
    ['sessionless_connections_expired', read(stats, 'sessionlessExpired')],
    ['stale_sessions_expired', read(stats, 'sessionsExpired')],
    ['bytes_received_count', read(stats, 'requestBytes')],
    ['response_bytes', read(stats, 'responseBytes')],
    ['watch_bytes', read(watches, 'bytes')],
    ['request_throttle_wait_count', read(stats, 'requestsThrottled')],
    ['large_requests_rejected', read(stats, 'largeRequestsRejected')],
    ['snapshot_error_count', read(stats, 'snapshotErrors')],
    ['tls_handshake_exceeded', rejected - before.rejected],
    ['unsuccessful_handshake', failed - before.failed],
    // Either of these errors stops the server, so a running server has met none.
    ['unrecoverable_error_count', 0],
    ['digest_mismatches_count', 0],
    ...(role.member === undefined
      ? []
      : ([
          ['looking_count', read(ensemble, 'lookingCount')],
          ['diff_count', read(ensemble, 'diffCount')],
          ['snap_count', read(ensemble, 'snapCount')],
          ['proposal_count', read(ensemble, 'proposalCount')],
          ['commit_count', read(ensemble, 'commitCount')],
          ['learner_proposal_received_count', read(ensemble, 'learnerProposalsReceived')],
          ['learner_commit_received_count', read(ensemble, 'learnerCommitsReceived')],
          ['revalidate_count', read(ensemble, 'revalidateCount')],
        ] as const)),
  ]
}

function summaryMetrics(name: string, { mean, min, max, count, sum }: Summary): Metric[] {
  return [
    [`avg_${name}`, decimal(mean)],
    [`min_${name}`, Math.floor(min)],
    [`max_${name}`, Math.floor(max)],
    [`cnt_${name}`, count],
    [`sum_${name}`, Math.floor(sum)],
  ]
}

function histogramMetrics(name: string, values: Histogram): Metric[] {
  const percentiles = [
    ['p50', 0.5],
    ['p95', 0.95],
    ['p99', 0.99],
    ['p999', 0.999],
  ] as const
  return [
    ...summaryMetrics(name, values),
    ...percentiles.map(([label, share]): Metric => [
      `${label}_${name}`,
      Math.round(values.percentile(share)),
    ]),
  ]
}
