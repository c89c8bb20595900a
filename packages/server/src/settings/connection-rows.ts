import { bool, duration, integer, optional, size, text } from './value-types.ts'
import { row } from './row.ts'

const sessions = 'Sessions'
const requests = 'Connections and requests'

/** Sessions, connections and limits of requests. */
export const connectionRows = {
  tickTimeMs: row({
    group: sessions,
    key: 'tickTime',
    type: duration('ms', { min: 1 }),
    defaultValue: 3000,
    description:
      'Basic unit of time: session timeouts are rounded up to it, and their limits are multiples of it.',
  }),
  minSessionTimeoutMs: row({
    group: sessions,
    key: 'minSessionTimeout',
    type: duration('ms', { min: 1 }),
    defaultValue: (inputs) => 2 * inputs.tickTimeMs,
    defaultText: '2 × `tickTime`',
    description: 'Shortest session timeout that a client gets.',
  }),
  maxSessionTimeoutMs: row({
    group: sessions,
    key: 'maxSessionTimeout',
    type: duration('ms', { min: 1 }),
    defaultValue: (inputs) => 20 * inputs.tickTimeMs,
    defaultText: '20 × `tickTime`',
    description: 'Longest session timeout that a client gets.',
  }),
  sessionSecretFile: row({
    group: sessions,
    key: 'sessionSecretFile',
    isOwn: true,
    type: optional(text('a file with at least 16 random bytes')),
    isPath: true,
    isSecretFile: true,
    defaultValue: undefined,
    defaultText:
      'made in `dataDir`; members that log in or use TLS share one; others have none, with a warning',
    apacheDefault: 'not supported',
    description:
      'File with the secret that protects the passwords of sessions: the same on every member, or set on none. Not for ensembles with members of Apache ZooKeeper. Without it, members that prove who they are to each other take the secret from their leader, and use it once all have it.',
  }),
  sessionSecretEnabled: row({
    group: sessions,
    key: 'sessionSecretEnabled',
    isOwn: true,
    type: bool(),
    defaultValue: true,
    apacheDefault: 'not supported',
    description:
      'Uses a secret for the passwords of sessions. With false they follow from the ids, so that open sessions survive a return of the data to Apache ZooKeeper.',
  }),
  sessionlessTimeoutMs: row({
    group: sessions,
    key: 'nio.sessionlessCnxnTimeout',
    property: 'zookeeper.nio.sessionlessCnxnTimeout',
    type: duration('ms', { min: 1 }),
    defaultValue: 10_000,
    description: 'How long a connection may stay open without a session.',
  }),

  maxClientCnxns: row({
    group: requests,
    key: 'maxClientCnxns',
    isChangeable: true,
    type: integer(0),
    defaultValue: 60,
    description:
      'Maximum number of connections from one address; 0 means no limit. A host with a network of IPv6 has many addresses: limit those with maxCnxns.',
  }),
  maxSessions: row({
    group: requests,
    key: 'maxSessions',
    isOwn: true,
    isChangeable: true,
    type: integer(0),
    defaultValue: 0,
    apacheDefault: 'no such limit',
    description:
      'Maximum number of sessions; a client that requests one more is disconnected. 0 means no limit.',
  }),
  clientMemoryBytes: row({
    group: requests,
    key: 'clientMemory',
    isOwn: true,
    property: 'zookeeper.clientMemory',
    type: size('B'),
    defaultValue: 0,
    defaultText:
      'a quarter of the heap or of the memory of the container, whichever is smaller; 2 GiB at most',
    apacheDefault: 'no such limit',
    description:
      'Memory for watches, identities, unread replies, incomplete and waiting requests of all clients together, for sessions, and for the last lines of the log. When it is spent, the connections that hold most are closed.',
  }),
  dataMemoryBytes: row({
    group: requests,
    key: 'dataMemory',
    isOwn: true,
    property: 'zookeeper.dataMemory',
    type: size('B'),
    defaultValue: 0,
    defaultText: 'three quarters of the memory of the container or machine',
    apacheDefault: 'no such limit',
    description:
      'Memory of the process above which no write may make the data larger: creations, and longer data, are refused with QuotaExceeded until there is room. What is deleted makes room once it is collected: within seconds under load, up to half a minute later on an idle server. The leader decides. Above nine tenths of the heap they are refused too.',
  }),
  maxCnxns: row({
    group: requests,
    key: 'maxCnxns',
    isChangeable: true,
    property: 'zookeeper.maxCnxns',
    type: integer(0),
    defaultValue: 0,
    description: 'Maximum number of connections; 0 means no limit.',
  }),
  globalOutstandingLimit: row({
    group: requests,
    key: 'globalOutstandingLimit',
    isChangeable: true,
    property: 'zookeeper.globalOutstandingLimit',
    type: integer(1),
    defaultValue: 1000,
    description:
      'Outstanding requests above which the server stops reading from clients. In an ensemble of n voters, n > 2, each member gets 1/(n-1) of it.',
  }),
  juteMaxBufferBytes: row({
    group: requests,
    key: 'jute.maxbuffer',
    property: 'jute.maxbuffer',
    isPropertyOnly: true,
    type: size('B', { min: 1, max: 2 ** 31 - 1 }),
    defaultValue: 1_048_575,
    description:
      'Maximum size of a request and of a transaction; clients must be configured with the same value.',
  }),
  juteMaxBufferExtraBytes: row({
    group: requests,
    key: 'jute.maxbuffer.extrasize',
    property: 'zookeeper.jute.maxbuffer.extrasize',
    type: size('B', { max: 2 ** 31 - 1 }),
    defaultValue: (inputs) => inputs.juteMaxBufferBytes,
    defaultText: '`jute.maxbuffer`',
    description: 'Size beyond `jute.maxbuffer` that is accepted when transactions are read from the log.',
  }),
  slowRequestMs: row({
    group: requests,
    key: 'slow.request.ms',
    isChangeable: true,
    isOwn: true,
    type: duration('ms'),
    defaultValue: 200,
    apacheDefault: 'none',
    description:
      'Time from which on a request is logged as slow, at most ten a second, and kept for `GET /api/v1/slow`; 0 turns both off.',
  }),
  slowRequestReadMs: row({
    group: requests,
    key: 'slow.request.readMs',
    isChangeable: true,
    isOwn: true,
    type: duration('ms'),
    defaultValue: (inputs) => inputs.slowRequestMs,
    defaultText: '`slow.request.ms`',
    apacheDefault: 'none',
    description: 'The same time for reads, which a server answers alone; 0 turns both off for them.',
  }),
  connectionThrottleTokens: row({
    group: requests,
    key: 'connection_throttle_tokens',
    isChangeable: true,
    property: 'zookeeper.connection_throttle_tokens',
    type: integer(0),
    defaultValue: 0,
    description: 'New connections that are accepted in a burst; 0 disables connection throttling.',
  }),
  connectionThrottleFillTimeMs: row({
    group: requests,
    key: 'connection_throttle_fill_time',
    isChangeable: true,
    property: 'zookeeper.connection_throttle_fill_time',
    type: duration('ms', { min: 1 }),
    defaultValue: 1,
    description: 'Interval at which connection tokens are added.',
  }),
  connectionThrottleFillCount: row({
    group: requests,
    key: 'connection_throttle_fill_count',
    isChangeable: true,
    property: 'zookeeper.connection_throttle_fill_count',
    type: integer(1),
    defaultValue: 1,
    description: 'Connection tokens that are added in each interval.',
  }),
} as const
