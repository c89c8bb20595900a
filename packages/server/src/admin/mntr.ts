import type { Histogram, Summary } from '../core/histogram.ts'
import type { ClientService } from '../connections/client-service.ts'
import { FULL_VERSION } from '../version.ts'
import { decimal, hexLong } from './format.ts'
import type { LeaderStatus, RoleMetrics } from '../connections/role-status.ts'

type Metric = readonly [key: string, value: string | number]

/** The figures of `mntr`, under the names of Apache ZooKeeper and, at the end, a few that it lacks. */
export function monitorMetrics(core: ClientService, startedAt: number): Metric[] {
  const { tree, stats, watches, ports } = core
  const { latency } = stats
  const { open, max } = ports.system.fileDescriptors()
  return [
    ['version', FULL_VERSION],
    ['server_state', core.role.mode],
    ...peer(core.role),
    ['avg_latency', decimal(latency.mean)],
    ['min_latency', Math.floor(latency.min)],
    ['max_latency', Math.floor(latency.max)],
    ['packets_received', stats.received],
    ['packets_sent', stats.sent],
    ['num_alive_connections', core.connections.size],
    ['outstanding_requests', core.pipeline.outstanding],
    ['uptime', Math.floor(ports.clock.monotonic() - startedAt)],
    ['znode_count', tree.nodeCount + 1],
    ['watch_count', watches.size],
    ['ephemerals_count', tree.owners.ephemeralCount],
    ['approximate_data_size', tree.approximateDataSize],
    ['global_sessions', core.sessions.size],
    ['local_sessions', core.localSessions?.size ?? 0],
    ['open_file_descriptor_count', open],
    ['max_file_descriptor_count', max],
    ['connection_drop_probability', '0.0'],
    ['last_client_response_size', stats.lastResponseSize],
    ['min_client_response_size', stats.responseSize.count === 0 ? -1 : stats.responseSize.min],
    ['max_client_response_size', stats.responseSize.count === 0 ? -1 : stats.responseSize.max],
    ['outstanding_tls_handshake', core.tlsHandshakes().active],
    ['auth_failed_count', stats.authFailed],
    ['non_mtls_remote_conn_count', stats.plainRemote],
    ['non_mtls_local_conn_count', stats.plainLocal],
    ...quorum(core.role),
    ...counters(core),
    ...distribution('readlatency', stats.readLatency),
    ...distribution('updatelatency', stats.updateLatency),
    ...range('fsynctime', stats.fsyncTime),
    ...range('snapshottime', stats.snapshotTime),
    ...range('sync_processor_batch_size', stats.batchSize),
    ...range('node_created_watch_count', core.watchNotifier.recipients.created),
    ...range('node_deleted_watch_count', core.watchNotifier.recipients.deleted),
    ...range('node_changed_watch_count', core.watchNotifier.recipients.changed),
    ...range('node_children_watch_count', core.watchNotifier.recipients.children),
    ['last_zxid', hexLong(tree.lastZxid)],
    ['process_memory_bytes', ports.system.residentMemory()],
    ...heap(ports.system.heap?.()),
    ...longest('event_loop_hold', ports.system.maxEventLoopDelay?.()),
    ...longest('gc_pause', ports.system.maxGcPause?.()),
    ['log_writable', core.pipeline.isWritable ? 1 : 0],
    ...(core.role.member?.extraMetrics ?? []),
  ]
}

/** The longest time for which nobody was served, for any reason or for this one, since the start or `srst`. */
const longest = (what: string, ms: number | undefined): Metric[] =>
  ms === undefined ? [] : [[`max_${what}_ms`, decimal(ms)]]

const heap = (bytes: { readonly used: number; readonly external: number } | undefined): Metric[] =>
  bytes === undefined
    ? []
    : [
        ['heap_used_bytes', bytes.used],
        ['external_memory_bytes', bytes.external],
      ]

/** What stands third and fourth, since tools read the first lines only. */
function peer({ member }: RoleMetrics): Metric[] {
  if (member === undefined) return []
  const { peerState, observerMasterId } = member
  const master: Metric[] = observerMasterId === undefined ? [] : [['observer_master_id', observerMasterId]]
  return [['peer_state', peerState], ...master]
}

function quorum({ member }: RoleMetrics): Metric[] {
  if (member === undefined) return []
  const { quorumSize, leader, syncedObservers } = member
  const observers: Metric[] = syncedObservers === undefined ? [] : [['synced_observers', syncedObservers]]
  return [['quorum_size', quorumSize], ...(leader === undefined ? observers : leading(leader))]
}

const leading = (leader: LeaderStatus): Metric[] => [
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

function counters({ stats, watchNotifier: firing, tlsHandshakes: handshakes }: ClientService): Metric[] {
  const { rejected: exceeded, failed } = handshakes()
  return [
    ['connection_request_count', stats.sessionsRequested],
    ['connection_rejected', stats.connectionsRejected],
    ['connection_drop_count', stats.connectionsDropped],
    ['connection_revalidate_count', stats.sessionsResumed],
    ['sessionless_connections_expired', stats.sessionlessExpired],
    ['stale_sessions_expired', stats.sessionsExpired],
    ['bytes_received_count', stats.requestBytes],
    ['response_bytes', stats.responseBytes],
    ['watch_bytes', firing.bytes],
    ['request_throttle_wait_count', stats.requestsThrottled],
    ['large_requests_rejected', stats.largeRequestsRejected],
    ['snapshot_error_count', stats.snapshotErrors],
    ['tls_handshake_exceeded', exceeded - stats.tlsExceededAtReset],
    ['unsuccessful_handshake', failed - stats.tlsFailedAtReset],
    // A server that meets one of these stops, so one that answers has met none.
    ['unrecoverable_error_count', 0],
    ['digest_mismatches_count', 0],
  ]
}

function range(name: string, { mean, min, max, count, sum }: Summary): Metric[] {
  return [
    [`avg_${name}`, decimal(mean)],
    [`min_${name}`, Math.floor(min)],
    [`max_${name}`, Math.floor(max)],
    [`cnt_${name}`, count],
    [`sum_${name}`, Math.floor(sum)],
  ]
}

function distribution(name: string, values: Histogram): Metric[] {
  const shares = [
    ['p50', 0.5],
    ['p95', 0.95],
    ['p99', 0.99],
    ['p999', 0.999],
  ] as const
  return [
    ...range(name, values),
    ...shares.map(([label, share]): Metric => [`${label}_${name}`, Math.round(values.percentile(share))]),
  ]
}
