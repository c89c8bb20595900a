import { duration, size, integer } from './value-types.ts'
import { row } from './row.ts'

const sessions = 'Sessions'
const requests = 'Connections and requests'

/** Sessions, connections and the limits on what clients may ask for. */
export const connectionRows = {
  tickTimeMs: row({
    group: sessions,
    key: 'tickTime',
    type: duration('ms', { min: 1 }),
    defaultValue: 3000,
    description: 'Base unit of time; session timeouts are rounded up to it and their bounds follow from it.',
  }),
  minSessionTimeoutMs: row({
    group: sessions,
    key: 'minSessionTimeout',
    type: duration('ms', { min: 1 }),
    defaultValue: (basis) => 2 * basis.tickTimeMs,
    defaultText: '2 × `tickTime`',
    description: 'Shortest session timeout that a client gets.',
  }),
  maxSessionTimeoutMs: row({
    group: sessions,
    key: 'maxSessionTimeout',
    type: duration('ms', { min: 1 }),
    defaultValue: (basis) => 20 * basis.tickTimeMs,
    defaultText: '20 × `tickTime`',
    description: 'Longest session timeout that a client gets.',
  }),
  sessionlessTimeoutMs: row({
    group: sessions,
    key: 'nio.sessionlessCnxnTimeout',
    property: 'zookeeper.nio.sessionlessCnxnTimeout',
    type: duration('ms', { min: 1 }),
    defaultValue: 10_000,
    description: 'How long a connection may stay without opening a session.',
  }),

  maxClientCnxns: row({
    group: requests,
    key: 'maxClientCnxns',
    type: integer(0),
    defaultValue: 60,
    description: 'Connections from one address; 0 means no limit.',
  }),
  maxSessions: row({
    group: requests,
    key: 'maxSessions',
    type: integer(0),
    defaultValue: 0,
    apacheDefault: 'no such limit',
    description: 'Sessions in all; a client that asks for one more is disconnected. 0 is no limit.',
  }),
  maxCnxns: row({
    group: requests,
    key: 'maxCnxns',
    property: 'zookeeper.maxCnxns',
    type: integer(0),
    defaultValue: 0,
    description: 'Connections in all; 0 means no limit.',
  }),
  globalOutstandingLimit: row({
    group: requests,
    key: 'globalOutstandingLimit',
    property: 'zookeeper.globalOutstandingLimit',
    type: integer(1),
    defaultValue: 1000,
    description:
      'Requests in progress above which the server stops reading from clients. In an ensemble of n voters, more than two, each member has 1/(n-1) of it.',
  }),
  juteMaxBufferBytes: row({
    group: requests,
    key: 'jute.maxbuffer',
    property: 'jute.maxbuffer',
    isPropertyOnly: true,
    type: size('B', { min: 1, max: 2 ** 31 - 1 }),
    defaultValue: 1_048_575,
    description: 'Largest request and largest transaction; clients must allow the same.',
  }),
  juteMaxBufferExtraBytes: row({
    group: requests,
    key: 'jute.maxbuffer.extrasize',
    property: 'zookeeper.jute.maxbuffer.extrasize',
    type: size('B', { max: 2 ** 31 - 1 }),
    defaultValue: (basis) => basis.juteMaxBufferBytes,
    defaultText: '`jute.maxbuffer`',
    description: 'Room beyond `jute.maxbuffer` when transactions are read back from the log.',
  }),
  connectionThrottleTokens: row({
    group: requests,
    key: 'connection_throttle_tokens',
    property: 'zookeeper.connection_throttle_tokens',
    type: integer(0),
    defaultValue: 0,
    description: 'New connections accepted in a burst; 0 switches connection throttling off.',
  }),
  connectionThrottleFillTimeMs: row({
    group: requests,
    key: 'connection_throttle_fill_time',
    property: 'zookeeper.connection_throttle_fill_time',
    type: duration('ms', { min: 1 }),
    defaultValue: 1,
    description: 'Period after which connection tokens are added.',
  }),
  connectionThrottleFillCount: row({
    group: requests,
    key: 'connection_throttle_fill_count',
    property: 'zookeeper.connection_throttle_fill_count',
    type: integer(1),
    defaultValue: 1,
    description: 'Connection tokens added in each period.',
  }),
} as const
