import { bool, oneOf, duration, optional, decimal, text, integer } from './value-types.ts'
import { row } from './row.ts'

const quorum = 'Ensemble'
const ticks = (meaning: string): string => `${meaning} In ticks.`

/** How the members of an ensemble find, follow and judge each other. Who they are stands in `server.N` lines. */
export const quorumRows = {
  initLimit: row({
    group: quorum,
    key: 'initLimit',
    type: integer(1, 1_000_000),
    defaultValue: 10,
    apacheDefault: 'none, required in an ensemble',
    description: ticks('How long a member may take to connect to its leader and to come into step with it.'),
  }),
  syncLimit: row({
    group: quorum,
    key: 'syncLimit',
    type: integer(1, 1_000_000),
    defaultValue: 5,
    apacheDefault: 'none, required in an ensemble',
    description: ticks('How long a member and its leader may be silent, or a proposal stay unacknowledged.'),
  }),
  connectToLearnerMasterLimit: row({
    group: quorum,
    key: 'connectToLearnerMasterLimit',
    property: 'zookeeper.connectToLearnerMasterLimit',
    type: integer(0, 1_000_000),
    defaultValue: 0,
    description: ticks('How long a member may take to connect to its leader; 0 is `initLimit`.'),
  }),
  connectRetryDelayMs: row({
    group: quorum,
    key: 'leaderConnectDelayDuringRetryMs',
    property: 'zookeeper.leaderConnectDelayDuringRetryMs',
    type: duration('ms', { min: 1 }),
    defaultValue: 100,
    description: 'Pause between two attempts to connect to the leader.',
  }),
  electionAlg: row({
    group: quorum,
    key: 'electionAlg',
    type: integer(3, 3),
    defaultValue: 3,
    description: 'The election algorithm; there is one.',
  }),
  standaloneEnabled: row({
    group: quorum,
    key: 'standaloneEnabled',
    type: bool('named'),
    defaultValue: true,
    description:
      'Whether a lone `server.N` line means a server on its own; with false it is an ensemble of one, which can grow.',
  }),
  reconfigEnabled: row({
    group: quorum,
    key: 'reconfigEnabled',
    type: bool('named'),
    defaultValue: false,
    description:
      'Whether members can be added, removed and changed while the ensemble runs. The leader decides.',
  }),
  quorumListenOnAllIPs: row({
    group: quorum,
    key: 'quorumListenOnAllIPs',
    type: bool(),
    defaultValue: false,
    description:
      'Opens the ports for other members on all interfaces instead of on the addresses of `server.N`.',
  }),
  observerMasterPort: row({
    group: quorum,
    key: 'observerMasterPort',
    type: integer(0, 65_535),
    defaultValue: 0,
    description:
      'Port on which followers keep observers up to date, so that the leader does not have to; 0 is none. Observers look for followers at this port too, so it is the same on all members.',
  }),
  oraclePath: row({
    group: quorum,
    key: 'oraclePath',
    type: optional(text('a path')),
    isPath: true,
    defaultValue: undefined,
    defaultText: 'none',
    description:
      'File of an oracle for an ensemble of two: when it begins with 1, this member may go on without the other one. Never let it say so to both of them while they cannot hear each other: they would accept different writes, and one of the two histories is lost.',
  }),
  peerType: row({
    group: quorum,
    key: 'peerType',
    type: optional(oneOf('participant', 'observer')),
    defaultValue: undefined,
    defaultText: 'the role in `server.N`',
    description: 'A hint at the role of this member; the role in its `server.N` line wins.',
  }),
  multiAddress: row({
    group: quorum,
    key: 'multiAddress.enabled',
    property: 'zookeeper.multiAddress.enabled',
    type: bool(),
    defaultValue: false,
    description:
      'Lets a `server.N` line name several addresses. Members before 3.6 cannot read what is announced then.',
  }),
  commitLogCount: row({
    group: quorum,
    key: 'commitLogCount',
    property: 'zookeeper.commitLogCount',
    type: integer(1, 10_000_000),
    defaultValue: 500,
    description: 'Committed transactions that are kept in memory for members that come back.',
  }),
  snapshotSizeFactor: row({
    group: quorum,
    key: 'snapshotSizeFactor',
    property: 'zookeeper.snapshotSizeFactor',
    type: decimal(-1, 1000),
    defaultValue: 0.33,
    description:
      'A member that is far behind gets transactions from the log up to so much of the size of a snapshot, and a snapshot beyond; 0 is any size of log, a negative number never the log.',
  }),
  truncateFromBytes: row({
    group: quorum,
    key: 'leader.truncateFromBytes',
    type: integer(0),
    defaultValue: 64 << 20,
    apacheDefault: '0',
    description:
      'A member whose log goes beyond what was committed is told to cut it only where a snapshot has so many bytes; with less it gets the snapshot, since Apache ZooKeeper can keep what it was told to cut.',
  }),
  forceSnapshotSync: row({
    group: quorum,
    key: 'forceSnapshotSync',
    property: 'zookeeper.forceSnapshotSync',
    type: bool(),
    defaultValue: false,
    description: 'Brings every member into step with a snapshot. For tests.',
  }),
  maxConcurrentSnapSyncs: row({
    group: quorum,
    key: 'leader.maxConcurrentSnapSyncs',
    property: 'zookeeper.leader.maxConcurrentSnapSyncs',
    type: integer(1, 10_000),
    defaultValue: 10,
    description:
      'Observers that get a snapshot at the same time; more of them are asked to come again. Voters never wait.',
  }),
  leaderServes: row({
    group: quorum,
    key: 'leaderServes',
    property: 'zookeeper.leaderServes',
    type: bool('yes-default'),
    defaultValue: true,
    description: 'Whether a member takes clients while it leads.',
  }),
  readOnlyModeEnabled: row({
    group: quorum,
    key: 'readonlymode.enabled',
    property: 'readonlymode.enabled',
    isPropertyOnly: true,
    type: bool(),
    defaultValue: false,
    description: 'Whether a member without a quorum lets those clients read that ask for it.',
  }),
  localSessionsEnabled: row({
    group: quorum,
    key: 'localSessionsEnabled',
    type: bool(),
    defaultValue: false,
    description:
      'Whether a session is known to its server alone until it needs more. It ends with its connection to that server.',
  }),
  localSessionsUpgradingEnabled: row({
    group: quorum,
    key: 'localSessionsUpgradingEnabled',
    type: bool(),
    defaultValue: false,
    description:
      'Whether a local session becomes one of the ensemble when it makes an ephemeral node; without it that is refused.',
  }),
  electionConnectTimeoutMs: row({
    group: quorum,
    key: 'cnxTimeout',
    property: 'zookeeper.cnxTimeout',
    type: duration('ms', { min: 1 }),
    defaultValue: 5000,
    description: 'How long a connection for votes may take to come about.',
  }),
  electionHelloTimeoutMs: row({
    group: quorum,
    key: 'quorumCnxnTimeoutMs',
    property: 'zookeeper.quorumCnxnTimeoutMs',
    type: duration('ms', { negativeIsOff: true }),
    defaultValue: 0,
    defaultText: '`tickTime` times `syncLimit`',
    description: 'How long whoever connects for votes may take to say who it is; 0 is the default.',
  }),
  electionPortBindRetry: row({
    group: quorum,
    key: 'electionPortBindRetry',
    property: 'zookeeper.electionPortBindRetry',
    type: integer(0, 1_000_000),
    defaultValue: 3,
    description: 'How often opening the port for votes is tried, a second apart; 0 is for ever.',
  }),
  minNotificationIntervalMs: row({
    group: quorum,
    key: 'fastleader.minNotificationInterval',
    property: 'zookeeper.fastleader.minNotificationInterval',
    type: duration('ms', { min: 1 }),
    defaultValue: 200,
    description: 'Silence in an election after which votes are sent again; it doubles each time.',
  }),
  maxNotificationIntervalMs: row({
    group: quorum,
    key: 'fastleader.maxNotificationInterval',
    property: 'zookeeper.fastleader.maxNotificationInterval',
    type: duration('ms', { min: 1 }),
    defaultValue: 10_000,
    apacheDefault: '60 s',
    description: 'The longest such silence. A long outage ends at most so long after its cause.',
  }),
  observerElectionDelayMs: row({
    group: quorum,
    key: 'observer.election.DelayMs',
    property: 'zookeeper.observer.election.DelayMs',
    type: duration('ms'),
    defaultValue: 200,
    description: 'At most so long an observer waits before it looks for a leader anew.',
  }),
  observerReconnectDelayMs: row({
    group: quorum,
    key: 'observer.reconnectDelayMs',
    property: 'zookeeper.observer.reconnectDelayMs',
    type: duration('ms'),
    defaultValue: 0,
    description: 'At most so long an observer waits before it connects anew, so that not all come at once.',
  }),
} as const
