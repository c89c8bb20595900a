import { ErrorCode, errors as wireErrors } from '@zabra/protocol'

/**
 * What an error asks of the caller. `recoverable`: the same call may succeed later in this session. `state`: the tree
 * or the arguments forbid it. `fatal`: the session or the request has failed for good. `usage`: the call was wrong.
 */
export type ErrorCategory = 'recoverable' | 'state' | 'fatal' | 'usage'

/** Properties of the failed call that an error carries. */
export interface ErrorContext {
  /** Client path, without the chroot. */
  readonly path?: string | undefined
  readonly operation?: string | undefined
  readonly maybeApplied?: boolean | undefined
  readonly cause?: unknown
}

/** A registered symbol, so that several copies of this package in one process recognise each other's errors. */
const BRAND = Symbol.for('@zabra/client.error')

/** Base class of all errors of this package. `instanceof` works across copies of the package. */
export abstract class ZooKeeperError extends Error {
  /** The name by which copies of the package recognise a class. Subclasses of yours need none. */
  static readonly tag: string = 'ZooKeeperError'
  /** A stable identifier such as `NO_NODE`. */
  readonly code: string
  /** The error code of the protocol, if there is one. */
  readonly wireCode?: number
  abstract readonly category: ErrorCategory
  /** True only if a write was sent and its outcome is unknown. */
  readonly maybeApplied: boolean
  /** Client path, without the chroot. */
  readonly path?: string
  readonly operation?: string

  constructor(message: string, code: string, context: ErrorContext = {}, wireCode?: number) {
    super(message, context.cause === undefined ? undefined : { cause: context.cause })
    this.name = new.target.tag
    this.code = code
    this.maybeApplied = context.maybeApplied ?? false
    if (context.path !== undefined) this.path = context.path
    if (context.operation !== undefined) this.operation = context.operation
    if (wireCode !== undefined) this.wireCode = wireCode
    const tags: string[] = []
    for (let type: unknown = new.target; isErrorClass(type); type = Object.getPrototypeOf(type)) {
      if (Object.hasOwn(type, 'tag')) tags.push(type.tag)
    }
    Object.defineProperty(this, BRAND, { value: tags })
  }

  static override [Symbol.hasInstance](value: unknown): boolean {
    if (!Object.hasOwn(this, 'tag')) return Function.prototype[Symbol.hasInstance].call(this, value)
    const tags =
      typeof value === 'object' && value !== null ? (value as { [BRAND]?: unknown })[BRAND] : undefined
    return Array.isArray(tags) && tags.includes(this.tag)
  }
}

const isErrorClass = (type: unknown): type is { tag: string } =>
  typeof type === 'function' && type !== Error && 'tag' in type

/** The same call may succeed later in the same session. */
export abstract class RecoverableError extends ZooKeeperError {
  static override readonly tag: string = 'RecoverableError'
  readonly category = 'recoverable'
}

/** The connection broke, or there was none. `maybeApplied` says whether the request had been sent. */
export class ConnectionLossError extends RecoverableError {
  static override readonly tag = 'ConnectionLossError'
}
/** The deadline of the request passed, at the client or at the server. */
export class OperationTimeoutError extends RecoverableError {
  static override readonly tag = 'OperationTimeoutError'
}
/** Another server has taken over the session; the client reconnects automatically. The request was not applied. */
export class SessionMovedError extends RecoverableError {
  static override readonly tag = 'SessionMovedError'
}
/** The server is overloaded and did not apply the request. */
export class ThrottledError extends RecoverableError {
  static override readonly tag = 'ThrottledError'
}
/** Another reconfiguration is in progress. */
export class ReconfigInProgressError extends RecoverableError {
  static override readonly tag = 'ReconfigInProgressError'
}
/** No quorum of the new configuration is connected and synced. */
export class NewConfigNoQuorumError extends RecoverableError {
  static override readonly tag = 'NewConfigNoQuorumError'
}

/** The tree or the arguments forbid the request. Retrying it unchanged has the same result. */
export abstract class StateError extends ZooKeeperError {
  static override readonly tag: string = 'StateError'
  readonly category = 'state'
  declare readonly path: string
}

/** The znode, or its parent, does not exist. */
export class NoNodeError extends StateError {
  static override readonly tag: string = 'NoNodeError'
}
/** The chroot of this client does not exist. Connect with `createChroot: true`, or call `mkdirp('/')`. */
export class NoChrootError extends NoNodeError {
  static override readonly tag = 'NoChrootError'
}
export class NodeExistsError extends StateError {
  static override readonly tag = 'NodeExistsError'
}
export class BadVersionError extends StateError {
  static override readonly tag = 'BadVersionError'
}
export class NotEmptyError extends StateError {
  static override readonly tag = 'NotEmptyError'
}
/** No identity of this client has the required permission. */
export class NoAuthError extends StateError {
  static override readonly tag = 'NoAuthError'
}
export class NoChildrenForEphemeralsError extends StateError {
  static override readonly tag = 'NoChildrenForEphemeralsError'
}
export class InvalidACLError extends StateError {
  static override readonly tag = 'InvalidACLError'
}
/** The change would exceed a hard quota. */
export class QuotaExceededError extends StateError {
  static override readonly tag = 'QuotaExceededError'
}
export class EphemeralOnLocalSessionError extends StateError {
  static override readonly tag = 'EphemeralOnLocalSessionError'
}
/** The server is read-only now. Pass `waitForReadWrite` to wait for a read-write server. */
export class NotReadOnlyError extends StateError {
  static override readonly tag = 'NotReadOnlyError'
}
export class NoWatcherError extends StateError {
  static override readonly tag = 'NoWatcherError'
}
export class ReconfigDisabledError extends StateError {
  static override readonly tag = 'ReconfigDisabledError'
}
/** A multi failed as a whole; `cause` is the error of operation `index`, and `causeCode` its code. */
export class MultiError extends StateError {
  static override readonly tag = 'MultiError'
  /** Position of the operation that failed. */
  readonly index: number
  /** Code of the error of the operation, such as `NODE_EXISTS`. */
  readonly causeCode: string
  constructor(message: string, index: number, cause: ZooKeeperError) {
    super(message, 'MULTI_FAILED', { path: cause.path, operation: 'multi', cause }, cause.wireCode)
    this.index = index
    this.causeCode = cause.code
  }
}

/** The session, the client or this request has failed for good. */
export abstract class FatalError extends ZooKeeperError {
  static override readonly tag: string = 'FatalError'
  readonly category = 'fatal'
}
/** An error code that this version does not know. Only the request fails. */
export class UnknownServerError extends FatalError {
  static override readonly tag = 'UnknownServerError'
}
/** The server could not process the request: it is unknown to the server, malformed, or hit an internal fault. */
export class ServerFaultError extends FatalError {
  static override readonly tag = 'ServerFaultError'
}
/** The session has expired: its ephemeral znodes and its watches are gone. */
export class SessionExpiredError extends FatalError {
  static override readonly tag = 'SessionExpiredError'
  readonly sessionId: bigint
  constructor(message: string, sessionId: bigint, context: ErrorContext = {}) {
    super(message, 'SESSION_EXPIRED', context, ErrorCode.SESSIONEXPIRED)
    this.sessionId = sessionId
  }
}
/** The server rejected the credentials, or requires some. The client is closed. */
export class AuthFailedError extends FatalError {
  static override readonly tag = 'AuthFailedError'
}
/** The client is closed. */
export class ClosedError extends FatalError {
  static override readonly tag = 'ClosedError'
}

/** The call is invalid in any state of the tree. No request was sent. */
export class UsageError extends ZooKeeperError {
  static override readonly tag: string = 'UsageError'
  readonly category = 'usage'
  constructor(message: string, context: ErrorContext = {}) {
    super(message, 'USAGE', context)
  }
}
/** The caller's signal aborted the call; `cause` is its reason. The name is `AbortError`, as in the platform. */
export class AbortedError extends ZooKeeperError {
  static override readonly tag = 'AbortedError'
  readonly category = 'usage'
  constructor(message: string, context: ErrorContext = {}) {
    super(message, 'ABORTED', context)
    this.name = 'AbortError'
  }
}

type ConcreteError = new (
  message: string,
  code: string,
  context: ErrorContext,
  wireCode: number,
) => ZooKeeperError

interface ErrorRow {
  readonly code: string
  readonly type: ConcreteError
}

/** Maps every error code of the protocol to its identifier and class. `docs/errors.md` is generated from this table. */
export const errorTable: ReadonlyMap<number, ErrorRow> = new Map<number, ErrorRow>([
  [ErrorCode.SYSTEMERROR, { code: 'SYSTEM_ERROR', type: ServerFaultError }],
  [ErrorCode.RUNTIMEINCONSISTENCY, { code: 'RUNTIME_INCONSISTENCY', type: ServerFaultError }],
  [ErrorCode.DATAINCONSISTENCY, { code: 'DATA_INCONSISTENCY', type: ServerFaultError }],
  [ErrorCode.CONNECTIONLOSS, { code: 'CONNECTION_LOSS', type: ConnectionLossError }],
  [ErrorCode.MARSHALLINGERROR, { code: 'MARSHALLING_ERROR', type: ServerFaultError }],
  [ErrorCode.UNIMPLEMENTED, { code: 'UNIMPLEMENTED', type: ServerFaultError }],
  [ErrorCode.OPERATIONTIMEOUT, { code: 'OPERATION_TIMEOUT', type: OperationTimeoutError }],
  [ErrorCode.BADARGUMENTS, { code: 'BAD_ARGUMENTS', type: ServerFaultError }],
  [ErrorCode.UNKNOWNSESSION, { code: 'UNKNOWN_SESSION', type: ServerFaultError }],
  [ErrorCode.NEWCONFIGNOQUORUM, { code: 'NEW_CONFIG_NO_QUORUM', type: NewConfigNoQuorumError }],
  [ErrorCode.RECONFIGINPROGRESS, { code: 'RECONFIG_IN_PROGRESS', type: ReconfigInProgressError }],
  [ErrorCode.APIERROR, { code: 'API_ERROR', type: ServerFaultError }],
  [ErrorCode.NONODE, { code: 'NO_NODE', type: NoNodeError }],
  [ErrorCode.NOAUTH, { code: 'NO_AUTH', type: NoAuthError }],
  [ErrorCode.BADVERSION, { code: 'BAD_VERSION', type: BadVersionError }],
  [
    ErrorCode.NOCHILDRENFOREPHEMERALS,
    { code: 'NO_CHILDREN_FOR_EPHEMERALS', type: NoChildrenForEphemeralsError },
  ],
  [ErrorCode.NODEEXISTS, { code: 'NODE_EXISTS', type: NodeExistsError }],
  [ErrorCode.NOTEMPTY, { code: 'NOT_EMPTY', type: NotEmptyError }],
  [ErrorCode.INVALIDCALLBACK, { code: 'INVALID_CALLBACK', type: ServerFaultError }],
  [ErrorCode.INVALIDACL, { code: 'INVALID_ACL', type: InvalidACLError }],
  [ErrorCode.AUTHFAILED, { code: 'AUTH_FAILED', type: AuthFailedError }],
  [ErrorCode.SESSIONMOVED, { code: 'SESSION_MOVED', type: SessionMovedError }],
  [ErrorCode.NOTREADONLY, { code: 'NOT_READ_ONLY', type: NotReadOnlyError }],
  [
    ErrorCode.EPHEMERALONLOCALSESSION,
    { code: 'EPHEMERAL_ON_LOCAL_SESSION', type: EphemeralOnLocalSessionError },
  ],
  [ErrorCode.NOWATCHER, { code: 'NO_WATCHER', type: NoWatcherError }],
  [ErrorCode.REQUESTTIMEOUT, { code: 'REQUEST_TIMEOUT', type: OperationTimeoutError }],
  [ErrorCode.RECONFIGDISABLED, { code: 'RECONFIG_DISABLED', type: ReconfigDisabledError }],
  [
    ErrorCode.SESSIONCLOSEDREQUIRESASLAUTH,
    { code: 'SESSION_CLOSED_REQUIRE_SASL_AUTH', type: AuthFailedError },
  ],
  [ErrorCode.QUOTAEXCEEDED, { code: 'QUOTA_EXCEEDED', type: QuotaExceededError }],
  [ErrorCode.THROTTLEDOP, { code: 'THROTTLED_OP', type: ThrottledError }],
])

/** Returns the error for an error code of a reply. */
export function errorFromCode(wireCode: number, context: ErrorContext, sessionId = 0n): ZooKeeperError {
  const what = `${context.operation ?? 'request'}${context.path === undefined ? '' : ` ${context.path}`}`
  const meaning =
    wireErrors.get(wireCode)?.meaning ??
    'The server replied with an error code that this client does not know.'
  if (wireCode === ErrorCode.SESSIONEXPIRED)
    return new SessionExpiredError(`${what}: ${meaning}`, sessionId, context)
  const row = errorTable.get(wireCode)
  if (row === undefined)
    return new UnknownServerError(
      `${what}: ${meaning} (${wireCode})`,
      `UNKNOWN_${-wireCode}`,
      context,
      wireCode,
    )
  return new row.type(`${what}: ${meaning} (${row.code})`, row.code, context, wireCode)
}

/** Returns the error of a reply that this client cannot decode, or that is longer than its `maxFrame`. */
export function unreadableReplyError(context: ErrorContext & { readonly cause: Error }): ServerFaultError {
  const what = `${context.operation ?? 'request'}${context.path === undefined ? '' : ` ${context.path}`}`
  return new ServerFaultError(
    `${what}: this reply cannot be read here: ${context.cause.message}`,
    'MARSHALLING_ERROR',
    context,
    ErrorCode.MARSHALLINGERROR,
  )
}

/** Returns the error of a request that failed because the chroot does not exist. */
export function noChrootError(chroot: string, context: ErrorContext): NoChrootError {
  const message = `${context.operation} ${context.path}: the chroot ${chroot} does not exist; connect with createChroot: true, or call mkdirp('/')`
  return new NoChrootError(message, 'NO_CHROOT', context, ErrorCode.NONODE)
}

/** Returns the error for a connection that broke, or that was not there. */
export function connectionLossError(context: ErrorContext & { reason?: string }): ConnectionLossError {
  const what = `${context.operation ?? 'request'}${context.path === undefined ? '' : ` ${context.path}`}`
  const outcome = context.maybeApplied ? 'it may or may not have been applied' : 'it was not sent'
  return new ConnectionLossError(
    `${what}: ${context.reason ?? 'the connection broke before the reply arrived'}; ${outcome}`,
    'CONNECTION_LOSS',
    context,
    ErrorCode.CONNECTIONLOSS,
  )
}

/** Returns the error for an aborted call: an `OperationTimeoutError` for a deadline, otherwise an `AbortedError`. */
export function abortError(reason: unknown, context: ErrorContext): OperationTimeoutError | AbortedError {
  const what = `${context.operation ?? 'request'}${context.path === undefined ? '' : ` ${context.path}`}`
  const outcome = context.maybeApplied ? '; it was sent and may still be applied' : ''
  const timedOut = (reason as { name?: unknown } | undefined)?.name === 'TimeoutError'
  return timedOut
    ? new OperationTimeoutError(
        `${what}: no reply before the deadline${outcome}`,
        'OPERATION_TIMEOUT',
        { ...context, cause: reason },
        ErrorCode.OPERATIONTIMEOUT,
      )
    : new AbortedError(`${what}: aborted by the caller${outcome}`, { ...context, cause: reason })
}

/** Returns the error that a call rejects with when its client or session ends with `error`. */
export function terminalErrorFor(error: ZooKeeperError, context: ErrorContext): ZooKeeperError {
  const message = `${context.operation ?? 'request'} ${context.path ?? ''}: ${error.message}`
  const endContext = { ...context, cause: error }
  if (error instanceof SessionExpiredError)
    return new SessionExpiredError(message, error.sessionId, endContext)
  if (error instanceof AuthFailedError) {
    return new AuthFailedError(message, error.code, endContext, ErrorCode.AUTHFAILED)
  }
  return new ClosedError(message, 'CLOSED', endContext)
}

/** Returns whether the caller gave up (signal or deadline); such a call must not be retried on its behalf. */
export const isAbandonedByCaller = (error: unknown): boolean =>
  error instanceof AbortedError || (error instanceof OperationTimeoutError && error.cause !== undefined)

/** Returns what `client.closed` resolves to: undefined after a close. */
export const closeReason = (error: ZooKeeperError): Error | undefined =>
  error instanceof ClosedError ? undefined : error
