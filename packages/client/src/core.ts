/**
 * The client without a platform: the caller passes a transport, a clock and a random source. The entry points of Node
 * and of the web pass theirs.
 */
export { connectWith } from './connect-with.ts'
export type { ConnectOptions, ConnectDefaults } from './connect.ts'
export {
  AbortedError,
  AuthFailedError,
  BadVersionError,
  ClosedError,
  CodecError,
  ConnectFailedError,
  ConnectionLossError,
  EphemeralOnLocalSessionError,
  InvalidACLError,
  MultiError,
  NewConfigNoQuorumError,
  NoAuthError,
  NoChildrenForEphemeralsError,
  NoChrootError,
  NodeExistsError,
  NoNodeError,
  NotEmptyError,
  NotReadOnlyError,
  NoWatcherError,
  OperationTimeoutError,
  QuotaExceededError,
  ReconfigDisabledError,
  ReconfigInProgressError,
  ServerFaultError,
  SessionExpiredError,
  SessionMovedError,
  ThrottledError,
  UnknownServerError,
  UsageError,
  ZooKeeperError,
  type AnyZooKeeperError,
  type ErrorContext,
  type ErrorsByCode,
  type ErrorScope,
  type RecipeErrorCode,
  type ZooKeeperErrorCode,
  type ZooKeeperErrorOf,
} from './errors.ts'
export { digestMd5With } from './sasl.ts'
export type { DigestMd5Login, DigestMd5Options } from './sasl.ts'
export { json, utf8 } from './codecs.ts'
export type { Schema, StandardSchema } from './codecs.ts'
export type { Client, ClientStats, NodeHandle, TypedClient, TypedValue } from './client-api.ts'
export type { ClientOptions, ConnectFailure, ErrorPolicy, SaslMechanism } from './client-options.ts'
export type { Instrumentation, RequestEndCallback, RequestInfo, RequestOutcome } from './instrumentation.ts'
export type { Platform, ServerAddress, Transport } from './platform.ts'
export type {
  ACL,
  AuthInfo,
  Bytes,
  CallOptions,
  Codec,
  ConnectionState,
  CreateMode,
  CreateOptions,
  CreateResult,
  Data,
  DeleteOptions,
  MissingNode,
  NamedNodeOptions,
  ModeOptions,
  NewNodeOptions,
  NodeEvent,
  NodeEventType,
  OneShotWatch,
  OneShotWatches,
  Ordered,
  OwnBytes,
  ReadOp,
  ReadResult,
  ReconfigChange,
  ResyncEvent,
  RetryFunction,
  RetryPolicy,
  SessionCredentials,
  SetDataOptions,
  Stat,
  StateChange,
  TtlMode,
  ValueOptions,
  WatchedEvent,
  Watcher,
  WatchKind,
  WatchOptions,
  WriteOp,
  WriteResult,
  Zxid,
} from './types.ts'
export type { RecursiveDeleteOptions, TreeOptions, Visit, WalkOptions } from './tree-types.ts'
export { mapConcurrent } from './map-concurrent.ts'
/** The types of which a custom transport and platform are made. */
export type { Cancel, Clock, Connection, ConnectionHandler, Random } from '@zabra/runtime'
export { parseServers } from './servers/connect-string.ts'
export { addressKey } from './servers/server-address.ts'
export { digestId, Perms } from '@zabra/protocol'
