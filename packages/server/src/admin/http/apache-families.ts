/** A family of metrics of Apache ZooKeeper 3.9. */
export interface ApacheFamily {
  readonly name: string
  readonly type: 'counter' | 'gauge' | 'summary'
  /** Whether it has a series for each value of the label `key`. */
  readonly hasKeys: boolean
  readonly quantiles: readonly number[]
  /** The servers that have it. */
  readonly of: 'all' | 'members' | 'leaders'
}

function families(
  form: Omit<ApacheFamily, 'name' | 'of'> & { readonly of?: ApacheFamily['of'] },
  names: string,
): ApacheFamily[] {
  return names
    .trim()
    .split(/\s+/)
    .map((name) => ({ of: 'all', ...form, name }))
}

const counter = { type: 'counter', hasKeys: false, quantiles: [] } as const
const gauge = { type: 'gauge', hasKeys: false, quantiles: [] } as const
const basic = { type: 'summary', hasKeys: false, quantiles: [0.5] } as const
const advanced = { type: 'summary', hasKeys: false, quantiles: [0.5, 0.9, 0.99] } as const

/** The families of Apache ZooKeeper 3.9 with its Prometheus provider, but for those about the Java virtual machine. */
export const APACHE_FAMILIES: readonly ApacheFamily[] = [
  ...families(
    counter,
    `
    snapshot_error_count snapshot_rate_limited_count restore_error_count restore_rate_limited_count
    looking_count diff_count snap_count commit_count connection_request_count connection_rejected
    bytes_received_count unrecoverable_error_count add_dead_watcher_stall_time dead_watchers_queued
    dead_watchers_cleared response_packet_cache_hits response_packet_cache_misses
    response_packet_get_children_cache_hits response_packet_get_children_cache_misses
    ensemble_auth_success ensemble_auth_fail ensemble_auth_skip prep_processor_request_queued
    outstanding_changes_queued outstanding_changes_removed revalidate_count connection_drop_count
    connection_revalidate_count sessionless_connections_expired stale_sessions_expired
    request_commit_queued throttled_ops learner_proposal_received_count learner_commit_received_count
    sync_processor_request_queued proposal_count quit_leading_due_to_disloyal_voter stale_requests
    stale_requests_dropped stale_replies request_throttle_wait_count large_requests_rejected
    digest_mismatches_count unsuccessful_handshake insecure_admin_count tls_handshake_exceeded
    cnxn_closed_without_zk_server_running skip_learner_request_to_next_processor_count
    requests_not_forwarded_to_commit_processor response_bytes watch_bytes`,
  ),
  ...families(
    gauge,
    `
    avg_latency max_latency min_latency packets_received packets_sent num_alive_connections
    outstanding_requests uptime znode_count watch_count ephemerals_count approximate_data_size
    global_sessions local_sessions open_file_descriptor_count max_file_descriptor_count
    connection_drop_probability last_client_response_size max_client_response_size
    min_client_response_size outstanding_tls_handshake auth_failed_count non_mtls_remote_conn_count
    non_mtls_local_conn_count`,
  ),
  ...families(
    basic,
    `
    fsynctime snapshottime restore_time dbinittime follower_sync_time observer_sync_time election_time
    connection_token_deficit inflight_snap_count inflight_diff_count node_created_watch_count
    node_deleted_watch_count node_changed_watch_count node_children_watch_count
    prep_processor_queue_size prep_process_time proposal_process_time unavailable_time
    leader_unavailable_time requests_in_session_queue pending_session_queue_size
    reads_after_write_in_session_queue reads_issued_from_session_queue session_queues_drained
    time_waiting_empty_pool_in_commit_processor_read_ms write_batch_time_in_commit_processor
    concurrent_request_processing_in_commit_processor read_commit_proc_req_queued
    write_commit_proc_req_queued commit_commit_proc_req_queued read_commit_proc_issued
    write_commit_proc_issued commit_process_time startup_txns_loaded startup_txns_load_time
    startup_snap_load_time sync_processor_queue_size sync_process_time sync_processor_batch_size
    netty_queued_buffer_capacity learner_request_processor_queue_size socket_closing_time`,
  ),
  ...families(
    advanced,
    `
    readlatency updatelatency propagation_latency dead_watchers_cleaner_latency
    prep_processor_queue_time_ms close_session_prep_time read_commitproc_time_ms
    write_commitproc_time_ms local_write_committed_time_ms server_write_committed_time_ms
    om_proposal_process_time_ms om_commit_process_time_ms read_final_proc_time_ms
    write_final_proc_time_ms proposal_latency proposal_ack_creation_latency commit_propagation_latency
    sync_processor_queue_and_flush_time_ms sync_processor_queue_time_ms
    sync_processor_queue_flush_time_ms quorum_ack_latency request_throttle_queue_time_ms
    jvm_pause_time_ms`,
  ),
  ...families(
    { ...basic, hasKeys: true },
    `
    write_per_namespace read_per_namespace learner_handler_qp_size`,
  ),
  ...families(
    { ...advanced, hasKeys: true },
    `
    learner_handler_qp_time_ms ack_latency`,
  ),
  ...families(
    { ...counter, hasKeys: true },
    `
    quota_exceeded_error_per_namespace`,
  ),
  ...families(
    { ...gauge, hasKeys: true },
    `
    quota_count_limit_per_namespace quota_bytes_limit_per_namespace quota_count_usage_per_namespace
    quota_bytes_usage_per_namespace`,
  ),
  ...families(
    { ...gauge, of: 'members' },
    `
    quorum_size`,
  ),
  ...families(
    { ...gauge, of: 'leaders' },
    `
    learners synced_followers synced_non_voting_followers synced_observers pending_syncs leader_uptime
    last_proposal_size max_proposal_size min_proposal_size`,
  ),
]
