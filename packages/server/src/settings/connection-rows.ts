import { duration, size, whole } from './kinds.ts'
import { row } from './row.ts'

const sessions = 'Sessions'
const requests = 'Connections and requests'

/** Sessions, connections and the limits on what clients may ask for. */
export const connectionRows = {
  tickTimeMs: row({
    group: sessions,
    key: 'tickTime',
    kind: duration('ms', { min: 1 }),
    fallback: 3000,
    meaning: 'Base unit of time; session timeouts are rounded up to it and their bounds follow from it.',
  }),
  minSessionTimeoutMs: row({
    group: sessions,
    key: 'minSessionTimeout',
    kind: duration('ms', { min: 1 }),
    fallback: (basis) => 2 * basis.tickTimeMs,
    fallbackText: '2 × `tickTime`',
    meaning: 'Shortest session timeout that a client gets.',
  }),
  maxSessionTimeoutMs: row({
    group: sessions,
    key: 'maxSessionTimeout',
    kind: duration('ms', { min: 1 }),
    fallback: (basis) => 20 * basis.tickTimeMs,
    fallbackText: '20 × `tickTime`',
    meaning: 'Longest session timeout that a client gets.',
  }),
  sessionlessTimeoutMs: row({
    group: sessions,
    key: 'nio.sessionlessCnxnTimeout',
    property: 'zookeeper.nio.sessionlessCnxnTimeout',
    kind: duration('ms', { min: 1 }),
    fallback: 10_000,
    meaning: 'How long a connection may stay without opening a session.',
  }),

  maxClientCnxns: row({
    group: requests,
    key: 'maxClientCnxns',
    kind: whole(0),
    fallback: 60,
    meaning: 'Connections from one address; 0 means no limit.',
  }),
  maxSessions: row({
    group: requests,
    key: 'maxSessions',
    kind: whole(0),
    fallback: 0,
    apacheDefault: 'no such limit',
    meaning: 'Sessions in all; a client that asks for one more is disconnected. 0 is no limit.',
  }),
  maxCnxns: row({
    group: requests,
    key: 'maxCnxns',
    property: 'zookeeper.maxCnxns',
    kind: whole(0),
    fallback: 0,
    meaning: 'Connections in all; 0 means no limit.',
  }),
  globalOutstandingLimit: row({
    group: requests,
    key: 'globalOutstandingLimit',
    property: 'zookeeper.globalOutstandingLimit',
    kind: whole(1),
    fallback: 1000,
    meaning:
      'Requests in progress above which the server stops reading from clients. In an ensemble of n voters, more than two, each member has 1/(n-1) of it.',
  }),
  juteMaxBufferBytes: row({
    group: requests,
    key: 'jute.maxbuffer',
    property: 'jute.maxbuffer',
    propertyOnly: true,
    kind: size('B', { min: 1, max: 2 ** 31 - 1 }),
    fallback: 1_048_575,
    meaning: 'Largest request and largest transaction; clients must allow the same.',
  }),
  juteMaxBufferExtraBytes: row({
    group: requests,
    key: 'jute.maxbuffer.extrasize',
    property: 'zookeeper.jute.maxbuffer.extrasize',
    kind: size('B', { max: 2 ** 31 - 1 }),
    fallback: (basis) => basis.juteMaxBufferBytes,
    fallbackText: '`jute.maxbuffer`',
    meaning: 'Room beyond `jute.maxbuffer` when transactions are read back from the log.',
  }),
  connectionThrottleTokens: row({
    group: requests,
    key: 'connection_throttle_tokens',
    property: 'zookeeper.connection_throttle_tokens',
    kind: whole(0),
    fallback: 0,
    meaning: 'New connections accepted in a burst; 0 switches connection throttling off.',
  }),
  connectionThrottleFillTimeMs: row({
    group: requests,
    key: 'connection_throttle_fill_time',
    property: 'zookeeper.connection_throttle_fill_time',
    kind: duration('ms', { min: 1 }),
    fallback: 1,
    meaning: 'Period after which connection tokens are added.',
  }),
  connectionThrottleFillCount: row({
    group: requests,
    key: 'connection_throttle_fill_count',
    property: 'zookeeper.connection_throttle_fill_count',
    kind: whole(1),
    fallback: 1,
    meaning: 'Connection tokens added in each period.',
  }),
} as const
