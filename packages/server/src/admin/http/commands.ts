import { counterOf, epochOf } from '@zabra/protocol'
import type { HttpRequest } from '@zabra/runtime'
import { operationOf } from '../../core/operations/index.ts'
import { votersOf } from '../../core/quorum/index.ts'
import { TXN_DIGEST_VERSION } from '../../persistence/index.ts'
import { rowOf, settingNames } from '../../settings/index.ts'
import { FULL_VERSION } from '../../version.ts'
import type { AdminTarget, CommandState } from '../admin-target.ts'
import { decimalDigest } from '../format.ts'
import { setsByTick } from '../dump.ts'
import { monitorMetrics } from '../mntr.ts'
import { presentIn } from '../sliced-answers.ts'
import { countWatchers, watchedPathsOf } from '../watch-commands.ts'
import {
  directorySizes,
  newestSnapshot,
  resetConnectionStats,
  resetObserverStats,
  resetStats,
} from '../server-actions.ts'
import type { ConnectionReport, ServerReport } from '../server-report.ts'
import { numberIn } from './api/json-body.ts'
import { JavaDouble, LazyNumber, LazyObject, type JsonValue } from './java-json.ts'

/** Access that a command needs, by roles of the admin port. */
export type CommandRole = 'view' | 'operate' | 'backup' | 'admin'

/** A command of the admin server of Apache ZooKeeper. */
export interface AdminCommand {
  readonly names: readonly string[]
  readonly role: CommandRole
  /** Returns the members of the answer between `{` and `command`. A member `error` takes the place of the error of the answer. */
  readonly run: (context: CommandContext) => Members | Promise<Members>
  readonly method: 'GET' | 'POST'
  /** Whether the command answers between two roles too; those get no service. */
  readonly needsService: boolean
}

export type Members = Readonly<Record<string, JsonValue | undefined>>

export interface CommandContext {
  readonly target: AdminTarget
  readonly state: CommandState
  /** The service of the current role. Commands with `needsService` run only while there is one. */
  readonly server: ServerReport
  readonly request: HttpRequest
}

const NO_MEMBERS: Members = {}
/** A value that is set and must not be shown. */
const HIDDEN = '(set, not shown)'

function command(
  names: string,
  run: AdminCommand['run'],
  {
    role = 'view',
    needsService = true,
    method = 'GET',
  }: Partial<Pick<AdminCommand, 'role' | 'needsService' | 'method'>> = {},
): AdminCommand {
  return { names: names.split(' '), role, run, needsService, method }
}

/** Returns the work of a command whose answer has no members of its own. */
function after(action: (server: ServerReport) => void | Promise<void>): AdminCommand['run'] {
  return async ({ server }) => {
    await action(server)
    return NO_MEMBERS
  }
}

/** The commands, each with its primary name first. */
export const adminCommands: readonly AdminCommand[] = [
  command('configuration conf config', ({ server, target }) => configuration(server, target)),
  command('connection_stat_reset crst', after(resetConnectionStats), {
    role: 'operate',
  }),
  command('connections cons', ({ server }) => connections(server, fullConnection)),
  command('dirs', async ({ target }) => {
    const { snapshots, logs } = await directorySizes(target.platform.disk, target.directories)
    return { datadir_size: snapshots, logdir_size: logs }
  }),
  command('dump', ({ server }) => ({
    expiry_time_to_session_ids: new LazyObject(expirySets(server)),
    session_id_to_ephemeral_paths: new LazyObject(ephemerals(server)),
  })),
  command(
    'environment env envi',
    ({ target }) => ({
      'zookeeper.version': FULL_VERSION,
      ...withoutSecrets(target.platform.system.environment()),
    }),
    { needsService: false },
  ),
  command('get_trace_mask gtmk', ({ state }) => ({ tracemask: state.traceMask }), { needsService: false }),
  command('hash', ({ server }) => ({
    digests: server.pipeline.digests.map(({ zxid, digest }) => ({
      zxid,
      digest: BigInt(decimalDigest(digest)),
      digest_version: TXN_DIGEST_VERSION,
    })),
  })),
  command('initial_configuration icfg', ({ target }) => ({
    initial_configuration: settingsOf(target.settings as unknown as Record<string, unknown>)
      .map(([key, value]) => `${key}=${value}\n`)
      .join(''),
  })),
  command('is_read_only isro', ({ server }) => ({ read_only: server.isReadOnly })),
  command('last_snapshot lsnp', ({ target }) => lastSnapshot(target)),
  command('leader lead', ({ server, target }) => leader(server, target)),
  command('monitor mntr', ({ server, target }) => monitor(server, target), { needsService: false }),
  command('observer_connection_stat_reset orst', after(resetObserverStats), { role: 'operate' }),
  command('observers obsr', ({ server }) => observers(server)),
  // `AdminServer` answers it.
  command('restore rest', () => NO_MEMBERS, { role: 'admin', method: 'POST' }),
  command('ruok', () => NO_MEMBERS),
  command('server_stats srvr', ({ server, target }) => serverStats(server, target)),
  command('set_trace_mask stmk', ({ request, state }) => setTraceMask(request, state), {
    role: 'operate',
    needsService: false,
  }),
  command('shed_connections shed', shedConnections, { role: 'admin', method: 'POST' }),
  // `AdminServer` answers it with the snapshot itself.
  command('snapshot snap', () => NO_MEMBERS, { role: 'backup' }),
  command('stat_reset srst', after(resetStats), { role: 'operate' }),
  command('stats stat', async ({ server, target }) => ({
    ...(await serverStats(server, target)),
    ...connections(server, briefConnection),
  })),
  command(
    'system_properties sysp',
    ({ target }) => withoutSecrets(settingsOf(target.settings as unknown as Record<string, unknown>)),
    { needsService: false },
  ),
  command('voting_view', ({ target, server }) => ({ current_config: votingView(target, server) })),
  command('watch_summary wchs', ({ server }) => watchSummary(server)),
  command('watches wchc', ({ server }) => ({
    session_id_to_watched_paths: new LazyObject(watchedPaths(server)),
  })),
  command('watches_by_path wchp', ({ server }) => ({
    path_to_session_ids: new LazyObject(watchersByPath(server)),
  })),
  command('zabstate', ({ server, target }) => zabState(server, target), { needsService: false }),
]

function configuration(server: ServerReport, { settings, directories }: AdminTarget): Members {
  return {
    client_port: server.portStatus.portOf('clientPort'),
    data_dir: directories.snapshots,
    data_log_dir: directories.logs,
    tick_time: settings.tickTimeMs,
    max_client_cnxns: settings.maxClientCnxns,
    min_session_timeout: settings.minSessionTimeoutMs,
    max_session_timeout: settings.maxSessionTimeoutMs,
    server_id: server.role.member?.conf.serverId ?? 0,
    client_port_listen_backlog: settings.clientPortListenBacklog > 0 ? settings.clientPortListenBacklog : -1,
  }
}

// Connections

function connections(
  server: ServerReport,
  describe: (connection: ConnectionReport, now: number) => JsonValue,
): Members {
  const now = server.platform.clock.monotonic()
  return {
    connections: listConnections(server, false, (connection) => describe(connection, now)),
    secure_connections: listConnections(server, true, (connection) => describe(connection, now)),
  }
}

function* listConnections(
  { connections: open }: ServerReport,
  isSecure: boolean,
  describe: (connection: ConnectionReport) => JsonValue,
): Generator<JsonValue | undefined> {
  for (const connection of presentIn(open))
    yield connection.isSecure === isSecure ? describe(connection) : undefined
}

function briefConnection({ host, port, requests, replyWriter, flow }: ConnectionReport): Members {
  return {
    remote_socket_address: `${host.includes(':') ? `[${host}]` : host}:${port}`,
    interest_ops: flow.unsentBytes > 0 ? 5 : 1,
    outstanding_requests: requests.length,
    packets_received: replyWriter.stats.received,
    packets_sent: replyWriter.stats.sent,
  }
}

function fullConnection(connection: ConnectionReport, now: number): Members {
  const { session, sessionId, establishedAt } = connection
  const { stats } = connection.replyWriter
  return {
    ...briefConnection(connection),
    session_id: session === undefined ? 0 : sessionId,
    last_operation: stats.lastOperation === undefined ? 'NA' : operationOf(stats.lastOperation).name,
    established: establishedAt,
    session_timeout: session?.timeout ?? 0,
    last_cxid: stats.lastXid,
    last_zxid: stats.lastZxid,
    last_response_time: Math.floor(stats.lastResponseAt || now),
    last_latency: Math.floor(stats.lastLatency),
    min_latency: Math.floor(stats.minLatency),
    avg_latency: Math.floor(stats.meanLatency),
    max_latency: Math.floor(stats.maxLatency),
  }
}

// Sessions

function* expirySets({
  sessions,
  settings: { tickTimeMs },
}: ServerReport): Generator<[string, JsonValue] | undefined> {
  const grouping = setsByTick(sessions, ({ deadline }) => deadline, tickTimeMs)
  let step = grouping.next()
  for (; step.done !== true; step = grouping.next()) yield undefined
  for (const [tick, set] of step.value) yield [String(tick * tickTimeMs), idsOf(set)]
}

function* idsOf(sessions: readonly { readonly id: bigint }[]): Generator<bigint> {
  for (const { id } of sessions) yield id
}

function* ephemerals({ tree }: ServerReport): Generator<[string, JsonValue]> {
  let left = tree.owners.sessionCount
  for (const id of tree.owners.sessions()) if (left-- > 0) yield [String(id), ephemeralPaths(tree, id)]
}

function* ephemeralPaths(tree: ServerReport['tree'], id: bigint): Generator<string> {
  for (const node of tree.owners.ofSession(id)) yield tree.pathOf(node)
}

// Statistics

async function serverStats(server: ServerReport, target: AdminTarget): Promise<Members> {
  const { stats, connections: open, pipeline, tree, role } = server
  const { latency } = stats
  const sizes = await directorySizes(target.platform.disk, target.directories)
  const buffers = {
    last_buffer_size: stats.lastResponseSize,
    min_buffer_size: stats.minResponseSize,
    max_buffer_size: stats.maxResponseSize,
  }
  const leading = role.member?.leader
  return {
    version: FULL_VERSION,
    read_only: server.isReadOnly,
    server_stats: {
      packets_sent: stats.sent,
      packets_received: stats.received,
      fsync_threshold_exceed_count: stats.slowFsyncs,
      client_response_stats: buffers,
      uptime: Math.floor(target.platform.clock.monotonic() - target.startedAt),
      data_dir_size: sizes.snapshots,
      log_dir_size: sizes.logs,
      provider_null: false,
      last_processed_zxid: tree.lastZxid,
      outstanding_requests: pipeline.outstanding,
      server_state: role.mode,
      avg_latency: new JavaDouble(latency.mean),
      max_latency: Math.floor(latency.max),
      min_latency: Math.floor(latency.min),
      num_alive_client_connections: open.size,
      auth_failed_count: stats.authFailed,
      non_mtlsremote_conn_count: stats.plainRemote,
      non_mtlslocal_conn_count: stats.plainLocal,
    },
    client_response: buffers,
    proposal_stats:
      leading === undefined
        ? undefined
        : {
            last_buffer_size: leading.lastProposalSize,
            min_buffer_size: leading.minProposalSize,
            max_buffer_size: leading.maxProposalSize,
          },
    // Apache ZooKeeper counts the root twice, under its two names.
    node_count: tree.nodeCount + 1,
  }
}

/** Returns the metrics of `mntr` without a prefix; between two roles those that need no service. */
function monitor(server: ServerReport | undefined, target: AdminTarget): Members {
  if (server === undefined) return { version: FULL_VERSION, server_state: 'leaderelection' }
  return Object.fromEntries(
    monitorMetrics(server, target.startedAt).map(([key, value]) => [
      key,
      typeof value === 'string' && /^-?\d+\.\d+$/.test(value) ? new JavaDouble(Number(value)) : value,
    ]),
  )
}

/** Closes a share of the connections, so that their clients move to other servers. */
async function shedConnections({ server, request }: CommandContext): Promise<Members> {
  const percentage = await numberIn(request.body, 'percentage', { max: 100, byDefault: undefined })
  if (percentage === undefined || !Number.isInteger(percentage))
    return { error: 'Expected {"percentage": n} with a whole number n from 0 to 100' }
  const shed = Math.floor((server.connections.size * percentage) / 100)
  let left = shed
  await server.forEachConnection((connection) => {
    if (left-- <= 0) return false
    connection.destroy('drained', 'Closed: an operator moves connections to other servers')
    return true
  })
  return { connections_shed: shed, percentage_requested: percentage }
}

function setTraceMask({ query }: HttpRequest, state: CommandState): Members {
  const text = query.get('traceMask')
  const problem = 'setTraceMask requires long traceMask argument'
  if (text === null) return { error: problem }
  if (!/^[+-]?\d{1,19}$/.test(text) || BigInt.asIntN(64, BigInt(text)) !== BigInt(text))
    return { error: `${problem}, got ${text}` }
  state.traceMask = BigInt(text)
  return { tracemask: state.traceMask }
}

async function lastSnapshot({ platform, directories }: AdminTarget): Promise<Members> {
  const newest = await newestSnapshot(platform.disk, directories)
  if (newest === undefined) return { zxid: 'ffffffffffffffff', timestamp: -1 }
  return { zxid: newest.zxid.toString(16), timestamp: Math.floor(newest.at / 1000) }
}

// Ensemble

function leader({ role }: ServerReport, target: AdminTarget): Members {
  if (target.configuration === undefined) return { error: 'server is not initialized' }
  const id = target.leader ?? -1
  return {
    is_leader: role.mode === 'leader',
    leader_id: id,
    leader_ip: target.configuration.members.get(id)?.addresses[0]?.host ?? '',
  }
}

function observers({ role }: ServerReport): Members {
  const synced = role.member?.observers ?? []
  return {
    synced_observers: synced.length,
    observers: synced.map((observer) => ({
      // As Java writes a socket address.
      remote_socket_address: `/${observer.address}`,
      sid: observer.serverId,
      established: observer.establishedAt,
      queued_packets: observer.heldPackets,
      queued_packets_size: observer.unsentBytes,
      packets_received: observer.packetsReceived,
      packets_sent: observer.packetsSent,
      requests: observer.requests,
      last_zxid: observer.lastZxid,
    })),
  }
}

/** A member without a client address in the configuration knows its own by `clientPort`, as in Apache ZooKeeper. */
function votingView({ configuration: active, settings }: AdminTarget, server: ServerReport): JsonValue {
  if (active === undefined) return {}
  const { serverId, clientPortAddress = '0.0.0.0' } = settings
  const port = server.portStatus.portOf('clientPort')
  const own = port < 0 ? undefined : { host: clientPortAddress, port }
  return new LazyObject(
    votersOf(active).map((id) => {
      const { addresses, client = id === serverId ? own : undefined, role } = active.members.get(id)!
      return [
        String(id),
        {
          server_addresses: addresses.map(({ host, quorumPort }) => hostPort(host, quorumPort)),
          election_addresses: addresses.map(({ host, electionPort }) => hostPort(host, electionPort)),
          client_address: client === undefined ? '' : hostPort(client.host, client.port),
          learner_type: role,
        },
      ] as const
    }),
  )
}

function zabState(server: ServerReport | undefined, target: AdminTarget): Members {
  const { configuration: active, settings } = target
  if (active === undefined) return { voting: false, zabstate: '' }
  const own = active.members.get(settings.serverId)
  const [address] = own?.addresses ?? []
  const zxid = server?.tree.lastZxid ?? 0
  return {
    myid: settings.serverId,
    is_leader: server?.role.mode === 'leader',
    quorum_address: address === undefined ? '' : hostPort(address.host, address.quorumPort),
    election_address: address === undefined ? '' : hostPort(address.host, address.electionPort),
    client_address: own?.client === undefined ? '' : hostPort(own.client.host, own.client.port),
    voting: own?.role === 'participant',
    last_zxid: `0x${zxid.toString(16)}`,
    zab_epoch: epochOf(zxid),
    zab_counter: counterOf(zxid),
    zabstate: /- (\w+)$/.exec(server?.role.member?.peerState ?? '')?.[1] ?? 'election',
  }
}

const hostPort = (host: string, port: number): string => `${host.includes(':') ? `[${host}]` : host}:${port}`

// Watches

function watchSummary(server: ServerReport): Members {
  const { data } = server.watches
  return {
    num_connections: new LazyNumber(countWatchers(server)),
    num_paths: data.pathCount,
    num_total_watches: data.size,
  }
}

function* watchersByPath({ watches: { data } }: ServerReport): Generator<[string, JsonValue]> {
  for (const [path, watchers] of data.entries()) yield [path, watchers.map(({ sessionId }) => sessionId)]
}

function* watchedPaths(server: ServerReport): Generator<[string, JsonValue]> {
  for (const connection of presentIn(server.connections))
    if (connection.watchedPaths.size > 0)
      yield [String(connection.sessionId), watchedPathsOf(server, connection)]
}

// Settings

/** Names of values that may hold secrets. */
const SECRET = /passw|secret|token|digest|key(?!store)/i

function withoutSecrets(entries: Iterable<readonly [name: string, value: string]>): Members {
  return Object.fromEntries(
    [...entries].map(([name, value]) => [
      name,
      (SECRET.test(name) && value !== '') || /(?:passw\w*|secret|token|digest)=\S/i.test(value)
        ? HIDDEN
        : value,
    ]),
  )
}

/** Returns the settings in force by their keys in zoo.cfg. */
export function settingsOf(settings: Readonly<Record<string, unknown>>): [key: string, value: string][] {
  return settingNames
    .filter((name) => settings[name] !== undefined)
    .map((name) => {
      const { key, type, isSecret } = rowOf(name)
      return [key, isSecret === true ? HIDDEN : type.show(settings[name])]
    })
}
