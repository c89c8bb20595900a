import { LATE_INTERVALS, MIN_CERTIFICATE_DAYS } from '@zabra/server/settings'
import { describeMemory, MEMORY_FACTOR, MORE_MEMORY } from './check-data.ts'
import { finding, type Finding } from './finding.ts'
import type { MetricsText } from './metrics-text.ts'

const DAY_MS = 86_400_000
const MAX_LAG = 10_000
const MAX_ELECTIONS_A_DAY = 5
/** A sync is slow from here on, in seconds, and how many of a hundred may be. */
const SLOW_SYNC_SECONDS = 0.1
const MAX_SLOW_SYNCS = 0.01
/** Seconds for which a sync may be under way. */
const MAX_PENDING_SECONDS = 1
const MAX_UNSENT_BYTES = 64 * 2 ** 20
/** Watchers that one change notifies. */
const MAX_WATCHERS = 10_000
const MAX_SKEW_SECONDS = 1
const MIN_FREE_BYTES = 2 ** 30
const MAX_COUNTER = 2 ** 32
const MIN_ZXIDS = 0.1 * MAX_COUNTER

/** Checks the metrics of a running server, `uptimeMs` after its start. `now` in milliseconds since 1970. */
export function* checkMetrics(
  where: string,
  metrics: MetricsText,
  { now, uptimeMs }: { readonly now: number; readonly uptimeMs: number },
): Generator<Finding> {
  yield* checkProgress(where, metrics, uptimeMs)
  yield* checkDisk(where, metrics)
  yield* checkLoad(where, metrics)
  yield* checkClocks(where, metrics, now)
  yield* checkBackupMetrics(metrics, now)
}

function* checkProgress(where: string, metrics: MetricsText, uptimeMs: number): Generator<Finding> {
  const lag = metrics.value('zabra_zxid_lag') ?? 0
  if (lag > MAX_LAG)
    yield finding(
      'lag',
      where,
      `${lag} committed transactions are not applied`,
      'Look at its disk, processor and network: it is slower than the leader.',
    )
  // The first election is that of the start.
  const elections = Math.max(0, (metrics.value('zabra_election_seconds_count') ?? 0) - 1)
  const days = Math.max(1, uptimeMs / DAY_MS)
  if (elections / days > MAX_ELECTIONS_A_DAY)
    yield finding(
      'elections',
      where,
      `${elections} elections since it started ${uptimeMs < DAY_MS ? 'today' : `${Math.floor(days)} days ago`}`,
      'Look for pauses of the leader (zabra_event_loop_delay_seconds, zabra_gc_pause_seconds), slow syncs and a network that loses packets.',
    )
  const left = metrics.value('zabra_zxids_left')
  if (left !== undefined && left < MIN_ZXIDS)
    yield finding(
      'zxid-counter',
      where,
      `${left} of ${MAX_COUNTER} transactions are left in this epoch`,
      'The leader hands over when they are used up. Do it now, at a quiet time: zabra transfer.',
    )
}

function* checkDisk(where: string, metrics: MetricsText): Generator<Finding> {
  const slow = metrics.shareAbove('zabra_fsync_seconds', SLOW_SYNC_SECONDS)
  const pending = metrics.value('zabra_fsync_pending_seconds') ?? 0
  if (slow > MAX_SLOW_SYNCS || pending > MAX_PENDING_SECONDS)
    yield finding(
      'slow-syncs',
      where,
      pending > MAX_PENDING_SECONDS
        ? `a sync of the log takes ${Math.floor(pending)} s already`
        : `${(slow * 100).toFixed(1)} % of the syncs of the log took longer than ${SLOW_SYNC_SECONDS * 1000} ms`,
      'Give the log a fast disk of its own (dataLogDir); zabra doctor --data measures a disk.',
    )
  for (const { labels, value } of metrics.samples('zabra_disk_free_bytes'))
    if (value < MIN_FREE_BYTES)
      yield finding(
        'disk-full',
        `${where} ${labels['dir'] ?? ''}`.trim(),
        `${value} bytes are free: writes are refused when none are`,
        'Make space, or set autopurge.purgeInterval.',
      )
}

function* checkLoad(where: string, metrics: MetricsText): Generator<Finding> {
  const peers = metrics.samples('zabra_peer_unsent_bytes')
  const waiting = [
    ['its clients', metrics.value('zabra_outbox_bytes') ?? 0] as const,
    ...peers.map(({ labels, value }) => [`server ${labels['peer'] ?? '?'}`, value] as const),
  ]
  for (const [member, bytes] of waiting)
    if (bytes > MAX_UNSENT_BYTES)
      yield finding(
        'outbox',
        where,
        `${Math.floor(bytes / 2 ** 20)} MiB wait to be sent to ${member}`,
        'Look for receivers that read too slowly, and the network: zabra top shows which clients ask for most.',
      )
  const watchers = Math.max(
    0,
    ...['created', 'deleted', 'changed', 'children'].flatMap((kind) =>
      metrics.samples(`node_${kind}_watch_count`).map(({ value }) => (Number.isFinite(value) ? value : 0)),
    ),
  )
  if (watchers > MAX_WATCHERS)
    yield finding(
      'watch-storm',
      where,
      `one change notified ${watchers} watchers`,
      'Let fewer clients watch one node: give each group its own, or watch through one process a machine.',
    )
  const tree = metrics.sum('zabra_tree_bytes')
  const limit = metrics
    .samples('zabra_memory_limit_bytes')
    .find(({ labels }) => labels['space'] === 'process')
  if (tree !== undefined && limit !== undefined && tree * MEMORY_FACTOR > limit.value)
    yield finding('little-memory', where, describeMemory(tree, limit.value), MORE_MEMORY)
}

function* checkClocks(where: string, metrics: MetricsText, now: number): Generator<Finding> {
  for (const { labels, value } of metrics.samples('zabra_clock_skew_seconds'))
    if (Math.abs(value) > MAX_SKEW_SECONDS)
      yield clockSkew(where, `${describeSkew(value)} that of its leader, server ${labels['peer'] ?? '?'}`)
  for (const { labels, value } of metrics.samples('zabra_certificate_expiry_seconds')) {
    const days = Math.floor((value * 1000 - now) / DAY_MS)
    const what = `${where}, certificate for ${labels['use'] ?? '?'}`
    const remedy = 'Renew it: zabra cert renew, or by its authority. Servers read new files while they run.'
    if (days < 0)
      yield finding('tls-over', what, `it ended at ${new Date(value * 1000).toISOString()}`, remedy)
    else if (days < MIN_CERTIFICATE_DAYS)
      yield finding('tls-ends', what, `it ends in ${days === 1 ? 'a day' : `${days} days`}`, remedy)
  }
}

/** Returns the finding for a clock that differs. `evidence` continues "its clock is". */
export const clockSkew = (where: string, evidence: string): Finding =>
  finding(
    'clock-skew',
    where,
    `its clock is ${evidence}`,
    'Let both synchronise with the same time servers: nodes with a TTL, logs, certificates and backups go by the clock.',
  )

/** Returns how far a clock is off, as `2.5 s ahead of`. */
export const describeSkew = (seconds: number): string =>
  `${Math.abs(seconds).toFixed(1)} s ${seconds > 0 ? 'ahead of' : 'behind'}`

function* checkBackupMetrics(metrics: MetricsText, now: number): Generator<Finding> {
  const intervals = new Map(
    metrics
      .samples('zabra_backup_interval_seconds')
      .map(({ labels, value }) => [labels['target'] ?? '', value]),
  )
  for (const { labels, value } of metrics.samples('zabra_backup_last_success_seconds')) {
    const target = labels['target'] ?? ''
    const interval = intervals.get(target) ?? 0
    const age = now / 1000 - value
    if (interval > 0 && age > LATE_INTERVALS * interval)
      yield finding(
        'backup-old',
        target,
        `the last backup is ${Math.floor(age / 60)} minutes old, and one is due every ${Math.floor(interval / 60)}`,
        'The log of the member on duty (zabra_backup_on_duty) says why it failed.',
      )
  }
  for (const { labels, value } of metrics.samples('zabra_backup_verified'))
    if (value === 0)
      yield finding(
        'backup-unusable',
        labels['target'] ?? '',
        'the last verification by replay has failed',
        'Run zabra backup verify --deep, and make a new backup with zabra backup now.',
      )
}
