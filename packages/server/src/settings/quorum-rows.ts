import { bool, oneOf, duration, list, optional, decimal, text, integer } from './value-types.ts'
import { row } from './row.ts'

const quorum = 'Ensemble'
const ticks = (description: string): string => `${description} In ticks.`

/**
 * Settings for elections, connections, syncs and timeouts between the members of an ensemble. The members themselves are in
 * `server.N` lines.
 */
export const quorumRows = {
  initLimit: row({
    group: quorum,
    key: 'initLimit',
    type: integer(1, 1_000_000),
    defaultValue: 10,
    apacheDefault: 'none, required in an ensemble',
    description: ticks('How long a member may take to connect to its leader and to sync with it.'),
  }),
  syncLimit: row({
    group: quorum,
    key: 'syncLimit',
    type: integer(1, 1_000_000),
    defaultValue: 5,
    apacheDefault: 'none, required in an ensemble',
    description: ticks(
      'How long a member or its leader may be silent, and how long a proposal may stay unacknowledged.',
    ),
  }),
  connectToLearnerMasterLimit: row({
    group: quorum,
    key: 'connectToLearnerMasterLimit',
    property: 'zookeeper.connectToLearnerMasterLimit',
    type: integer(0, 1_000_000),
    defaultValue: 0,
    description: ticks('How long a member may take to connect to its leader; 0 means `initLimit`.'),
  }),
  connectRetryDelayMs: row({
    group: quorum,
    key: 'leaderConnectDelayDuringRetryMs',
    property: 'zookeeper.leaderConnectDelayDuringRetryMs',
    type: duration('ms', { min: 1 }),
    defaultValue: 100,
    description: 'Delay between two attempts to connect to the leader.',
  }),
  electionAlg: row({
    group: quorum,
    key: 'electionAlg',
    type: integer(3, 3),
    defaultValue: 3,
    description: 'The election algorithm; 3 is the only one.',
  }),
  standaloneEnabled: row({
    group: quorum,
    key: 'standaloneEnabled',
    type: bool('named'),
    defaultValue: true,
    description:
      'Whether a single `server.N` line means a standalone server; with false it is an ensemble of one member, to which others can be added.',
  }),
  reconfigEnabled: row({
    group: quorum,
    key: 'reconfigEnabled',
    type: bool('named'),
    defaultValue: false,
    description:
      'Whether members can be added, removed and changed while the ensemble runs. The setting of the leader counts.',
  }),
  quorumListenOnAllIPs: row({
    group: quorum,
    key: 'quorumListenOnAllIPs',
    type: bool(),
    defaultValue: false,
    description:
      'Opens the ports for other members on all interfaces instead of on the addresses of `server.N`.',
  }),
  quorumAddressCheck: row({
    group: quorum,
    key: 'quorumAddressCheck',
    isOwn: true,
    type: bool(),
    defaultValue: true,
    apacheDefault: 'no such check',
    description:
      'Whether another server must connect from an address of the `server.N` line whose id it claims, and one that no configuration names from an address of any member, unless it has proved who it is. Turn it off where network addresses are translated between the members.',
  }),
  quorumJoinerHosts: row({
    group: quorum,
    key: 'quorumJoinerHosts',
    isOwn: true,
    type: list('hosts separated by commas'),
    defaultValue: [] as readonly string[],
    defaultText: 'none',
    apacheDefault: 'no such check',
    description:
      'Hosts from which servers that no configuration names may join before they are added (`reconfigEnabled`), beside those of the members. Needed only where members prove nothing to each other.',
  }),
  featureAuto: row({
    group: quorum,
    key: 'feature.auto',
    isOwn: true,
    type: bool(),
    defaultValue: false,
    apacheDefault: 'none',
    description:
      'Finalizes a feature level once all members have been connected and at that level for 24 hours without a break, as `zabra cluster finalize` does: then no member goes back to an earlier release or to Apache ZooKeeper. The setting of the leader counts.',
  }),
  observerMasterPort: row({
    group: quorum,
    key: 'observerMasterPort',
    type: integer(0, 65_535),
    defaultValue: 0,
    description:
      'Port on which followers serve observers, to relieve the leader; 0 means none. Observers connect to followers at this port too, so it must be the same on all members.',
  }),
  oraclePath: row({
    group: quorum,
    key: 'oraclePath',
    type: optional(text('a path')),
    isPath: true,
    defaultValue: undefined,
    defaultText: 'none',
    description:
      'File of an oracle for an ensemble of two members: while it begins with 1, this member may continue without the other one. It must never begin with 1 on both members while they cannot reach each other: they would accept different writes, and one of the two histories is lost.',
  }),
  peerType: row({
    group: quorum,
    key: 'peerType',
    type: optional(oneOf('participant', 'observer')),
    defaultValue: undefined,
    defaultText: 'the role in `server.N`',
    description: 'Expected role of this member; the role in its `server.N` line takes precedence.',
  }),
  multiAddress: row({
    group: quorum,
    key: 'multiAddress.enabled',
    property: 'zookeeper.multiAddress.enabled',
    type: bool(),
    defaultValue: false,
    description:
      'Lets a `server.N` line name several addresses. Members before 3.6 cannot parse the addresses that are then announced.',
  }),
  commitLogCount: row({
    group: quorum,
    key: 'commitLogCount',
    property: 'zookeeper.commitLogCount',
    type: integer(1, 10_000_000),
    defaultValue: 500,
    description: 'Committed transactions that are kept in memory to sync members that reconnect.',
  }),
  snapshotSizeFactor: row({
    group: quorum,
    key: 'snapshotSizeFactor',
    property: 'zookeeper.snapshotSizeFactor',
    type: decimal(-1, 1000),
    defaultValue: 0.33,
    description:
      'A member that is far behind gets transactions from the log if they have at most this share of the size of a snapshot, otherwise a snapshot; 0 means any size of log, a negative number never the log.',
  }),
  truncateFromBytes: row({
    group: quorum,
    key: 'leader.truncateFromBytes',
    type: integer(0),
    defaultValue: 64 << 20,
    apacheDefault: '0',
    description:
      'A member whose log has transactions that were not committed has to truncate it only if a snapshot has at least this size; otherwise it gets the snapshot, because Apache ZooKeeper can keep transactions that it had to truncate.',
  }),
  maxUnsentBytes: row({
    group: quorum,
    key: 'leader.maxUnsentBytes',
    type: integer(16 << 10, 128 << 20),
    defaultValue: 128 << 20,
    description:
      'Bytes that are queued for a member that does not read them; beyond them it is disconnected and synchronizes again. It must exceed the largest transaction.',
  }),
  forceSnapshotSync: row({
    group: quorum,
    key: 'forceSnapshotSync',
    property: 'zookeeper.forceSnapshotSync',
    type: bool(),
    defaultValue: false,
    description: 'Syncs every member with a snapshot. For tests.',
  }),
  maxConcurrentSnapSyncs: row({
    group: quorum,
    key: 'leader.maxConcurrentSnapSyncs',
    isChangeable: true,
    property: 'zookeeper.leader.maxConcurrentSnapSyncs',
    type: integer(1, 10_000),
    defaultValue: 10,
    description:
      'Observers, and servers that no configuration names, that get a snapshot at the same time; further ones must reconnect later. Voters never wait.',
  }),
  leaderServes: row({
    group: quorum,
    key: 'leaderServes',
    property: 'zookeeper.leaderServes',
    type: bool('yes-default'),
    defaultValue: true,
    description: 'Whether a member accepts clients while it leads.',
  }),
  readOnlyModeEnabled: row({
    group: quorum,
    key: 'readonlymode.enabled',
    property: 'readonlymode.enabled',
    isPropertyOnly: true,
    type: bool(),
    defaultValue: false,
    description: 'Whether a member without a quorum serves reads to clients that accept a read-only server.',
  }),
  localSessionsEnabled: row({
    group: quorum,
    key: 'localSessionsEnabled',
    type: bool(),
    defaultValue: false,
    description:
      'Whether a session is local, known to its server alone, until it needs more. A local session ends with its connection to that server.',
  }),
  localSessionsUpgradingEnabled: row({
    group: quorum,
    key: 'localSessionsUpgradingEnabled',
    type: bool(),
    defaultValue: false,
    description:
      'Whether a local session is upgraded to a global one when it creates an ephemeral node; otherwise the request is rejected.',
  }),
  electionConnectTimeoutMs: row({
    group: quorum,
    key: 'cnxTimeout',
    property: 'zookeeper.cnxTimeout',
    type: duration('ms', { min: 1 }),
    defaultValue: 5000,
    description: 'Timeout for connecting to the election port of another member.',
  }),
  electionHelloTimeoutMs: row({
    group: quorum,
    key: 'quorumCnxnTimeoutMs',
    property: 'zookeeper.quorumCnxnTimeoutMs',
    type: duration('ms', { negativeIsOff: true }),
    defaultValue: 0,
    defaultText: '`tickTime` times `syncLimit`',
    description:
      'How long a member that connects to the election port may take to identify itself; 0 means the default.',
  }),
  electionPortBindRetry: row({
    group: quorum,
    key: 'electionPortBindRetry',
    property: 'zookeeper.electionPortBindRetry',
    type: integer(0, 1_000_000),
    defaultValue: 3,
    description: 'How often opening the election port is retried, one second apart; 0 means forever.',
  }),
  minNotificationIntervalMs: row({
    group: quorum,
    key: 'fastleader.minNotificationInterval',
    property: 'zookeeper.fastleader.minNotificationInterval',
    type: duration('ms', { min: 1 }),
    defaultValue: 200,
    description:
      'Time without a notification in an election after which votes are sent again; it doubles each time.',
  }),
  maxNotificationIntervalMs: row({
    group: quorum,
    key: 'fastleader.maxNotificationInterval',
    property: 'zookeeper.fastleader.maxNotificationInterval',
    type: duration('ms', { min: 1 }),
    defaultValue: 10_000,
    apacheDefault: '60 s',
    description: 'Upper limit of that time. A long outage ends at most this long after its cause has ended.',
  }),
  observerElectionDelayMs: row({
    group: quorum,
    key: 'observer.election.DelayMs',
    property: 'zookeeper.observer.election.DelayMs',
    type: duration('ms'),
    defaultValue: 200,
    description: 'Maximum delay before an observer looks for a leader again.',
  }),
  observerReconnectDelayMs: row({
    group: quorum,
    key: 'observer.reconnectDelayMs',
    property: 'zookeeper.observer.reconnectDelayMs',
    type: duration('ms'),
    defaultValue: 0,
    description: 'Maximum delay before an observer reconnects, so that not all observers reconnect at once.',
  }),
} as const
