import { ErrorCode, errors as wireErrors, parentOf, type ErrorName } from '@zabra/protocol'
import { BRAND } from './error-brand.ts'
import { errorOf } from './error-of.ts'

/** What has failed: this request alone, the session with its ephemeral znodes, or the client, which is closed. */
export type ErrorScope = 'request' | 'session' | 'client'

/** The class of each code of a client. */
export interface ErrorsByCode {
  readonly ABORTED: AbortedError
  readonly API_ERROR: ServerFaultError
  readonly AUTH_FAILED: AuthFailedError
  readonly BAD_ARGUMENTS: ServerFaultError
  readonly BAD_VERSION: BadVersionError
  readonly CLOSED: ClosedError
  readonly CONNECTION_LOSS: ConnectionLossError
  readonly CONNECT_FAILED: ConnectFailedError
  readonly DATA_INCONSISTENCY: ServerFaultError
  readonly DECODE_FAILED: CodecError
  readonly ENCODE_FAILED: CodecError
  readonly EPHEMERAL_ON_LOCAL_SESSION: EphemeralOnLocalSessionError
  readonly INVALID_ACL: InvalidACLError
  readonly INVALID_CALLBACK: ServerFaultError
  readonly MARSHALLING_ERROR: ServerFaultError
  readonly MULTI_FAILED: MultiError
  readonly NEW_CONFIG_NO_QUORUM: NewConfigNoQuorumError
  readonly NODE_EXISTS: NodeExistsError
  readonly NOT_EMPTY: NotEmptyError
  readonly NOT_READ_ONLY: NotReadOnlyError
  readonly NO_AUTH: NoAuthError
  readonly NO_CHILDREN_FOR_EPHEMERALS: NoChildrenForEphemeralsError
  readonly NO_CHROOT: NoChrootError
  readonly NO_NODE: NoNodeError
  readonly NO_WATCHER: NoWatcherError
  readonly OPERATION_TIMEOUT: OperationTimeoutError
  readonly QUOTA_EXCEEDED: QuotaExceededError
  readonly RECONFIG_DISABLED: ReconfigDisabledError
  readonly RECONFIG_IN_PROGRESS: ReconfigInProgressError
  readonly REQUEST_TIMEOUT: OperationTimeoutError
  readonly RUNTIME_INCONSISTENCY: ServerFaultError
  readonly SESSION_CLOSED_REQUIRE_SASL_AUTH: AuthFailedError
  readonly SESSION_EXPIRED: SessionExpiredError
  readonly SESSION_MOVED: SessionMovedError
  readonly SYSTEM_ERROR: ServerFaultError
  readonly THROTTLED_OP: ThrottledError
  readonly UNIMPLEMENTED: ServerFaultError
  readonly UNKNOWN_SESSION: ServerFaultError
  readonly USAGE: UsageError
}

/** Codes of the errors that only recipes throw. */
export type RecipeErrorCode =
  | 'AMBIGUOUS_RESULT'
  | 'HAND_OVER'
  | 'LOST'
  | 'NODE_CONFLICT'
  | 'PERMITS_CONFLICT'
  | 'QUEUE_FULL'

/** The identifier of an error. `UNKNOWN_<number>` is a code of the protocol that this version does not know. */
export type ZooKeeperErrorCode = keyof ErrorsByCode | RecipeErrorCode | `UNKNOWN_${number}`

/** The errors of one code; for the codes of recipes and unknown ones, the base class with that code. */
export type ZooKeeperErrorOf<C extends ZooKeeperErrorCode> = C extends keyof ErrorsByCode
  ? ErrorsByCode[C] & { readonly code: C }
  : ZooKeeperError & { readonly code: C }

// Without the table of all codes, which a recipe in a page does not need. The types compare them with it.
const SESSION_EXPIRED: typeof ErrorCode.SESSIONEXPIRED = -112
const OPERATION_TIMEOUT: typeof ErrorCode.OPERATIONTIMEOUT = -7

/** The server has not applied the request, or cannot know; the same call may succeed later in the same session. */
const retryable: ReadonlySet<string> = new Set<ZooKeeperErrorCode>([
  'AMBIGUOUS_RESULT',
  'CONNECTION_LOSS',
  'NEW_CONFIG_NO_QUORUM',
  'NOT_READ_ONLY',
  'OPERATION_TIMEOUT',
  'QUEUE_FULL',
  'RECONFIG_IN_PROGRESS',
  'REQUEST_TIMEOUT',
  'SESSION_MOVED',
  // A server replies so while its disk is full.
  'SYSTEM_ERROR',
  'THROTTLED_OP',
])

const scopes: Readonly<Partial<Record<string, ErrorScope>>> = {
  AUTH_FAILED: 'client',
  CLOSED: 'client',
  CONNECT_FAILED: 'client',
  SESSION_CLOSED_REQUIRE_SASL_AUTH: 'client',
  SESSION_EXPIRED: 'session',
}

/** Properties of the failed call that an error carries. */
export interface ErrorContext {
  /** Client path, without the chroot. */
  readonly path?: string | undefined
  readonly operation?: string | undefined
  readonly maybeApplied?: boolean | undefined
  readonly cause?: unknown
}

/** Base class of all errors of this package. `instanceof` works across copies of the package. */
export abstract class ZooKeeperError extends Error {
  /** The name by which copies of the package recognise a class. Subclasses of yours need none. */
  static readonly tag: string = 'ZooKeeperError'
  /** A stable identifier such as `NO_NODE`. */
  readonly code: ZooKeeperErrorCode
  /** The error code of the protocol, if there is one. */
  readonly wireCode?: number | undefined
  /**
   * Whether the same call may succeed later in this session: the connection was lost, the server was busy or had no
   * space. For a write, `maybeApplied` says whether it may have succeeded already.
   */
  readonly retryable: boolean
  readonly scope: ErrorScope
  /** True only if a write was sent and its outcome is unknown. */
  readonly maybeApplied: boolean
  /** Client path, without the chroot. */
  readonly path?: string | undefined
  readonly operation?: string | undefined

  constructor(message: string, code: ZooKeeperErrorCode, context: ErrorContext = {}, wireCode?: number) {
    super(message, context.cause === undefined ? undefined : { cause: context.cause })
    this.name = new.target.tag
    this.code = code
    this.retryable = retryable.has(code)
    this.scope = scopes[code] ?? 'request'
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

  /**
   * Returns whether `error` is one of this package's errors, of the class it is called on, and, with a code, whether it
   * has that code. Narrows to the class of the code.
   */
  static is<C extends ZooKeeperErrorCode>(error: unknown, code: C): error is ZooKeeperErrorOf<C>
  static is(error: unknown): error is AnyZooKeeperError
  static is(error: unknown, code?: ZooKeeperErrorCode): boolean {
    return error instanceof this && (code === undefined || error.code === code)
  }

  static override [Symbol.hasInstance](value: unknown): boolean {
    if (!Object.hasOwn(this, 'tag')) return Function.prototype[Symbol.hasInstance].call(this, value)
    const tags =
      typeof value === 'object' && value !== null ? (value as { [BRAND]?: unknown })[BRAND] : undefined
    return Array.isArray(tags) && tags.includes(this.tag)
  }
}

/** Every error of a client, as a union that a test of `code` narrows. */
export type AnyZooKeeperError = { [C in ZooKeeperErrorCode]: ZooKeeperErrorOf<C> }[ZooKeeperErrorCode]

const isErrorClass = (type: unknown): type is { tag: string } =>
  typeof type === 'function' && type !== Error && 'tag' in type

/** The connection broke, or there was none. `maybeApplied` says whether the request had been sent. */
export class ConnectionLossError extends ZooKeeperError {
  static override readonly tag = 'ConnectionLossError'
}
/** The deadline of the request passed, at the client or at the server. */
export class OperationTimeoutError extends ZooKeeperError {
  static override readonly tag: string = 'OperationTimeoutError'
}
/** Another server has taken over the session; the client reconnects automatically. The request was not applied. */
export class SessionMovedError extends ZooKeeperError {
  static override readonly tag = 'SessionMovedError'
}
/** The server is overloaded and did not apply the request. */
export class ThrottledError extends ZooKeeperError {
  static override readonly tag = 'ThrottledError'
}
/** Another reconfiguration is in progress. */
export class ReconfigInProgressError extends ZooKeeperError {
  static override readonly tag = 'ReconfigInProgressError'
}
/** No quorum of the new configuration is connected and synced. */
export class NewConfigNoQuorumError extends ZooKeeperError {
  static override readonly tag = 'NewConfigNoQuorumError'
}

/** The znode, or its parent, does not exist. */
export class NoNodeError extends ZooKeeperError {
  static override readonly tag: string = 'NoNodeError'
}
/** The chroot of this client does not exist. Connect with `createChroot: true`, or call `createMissing(['/'])`. */
export class NoChrootError extends NoNodeError {
  static override readonly tag = 'NoChrootError'
}
export class NodeExistsError extends ZooKeeperError {
  static override readonly tag = 'NodeExistsError'
}
export class BadVersionError extends ZooKeeperError {
  static override readonly tag = 'BadVersionError'
}
export class NotEmptyError extends ZooKeeperError {
  static override readonly tag = 'NotEmptyError'
}
/** No identity of this client has the required permission. */
export class NoAuthError extends ZooKeeperError {
  static override readonly tag = 'NoAuthError'
}
export class NoChildrenForEphemeralsError extends ZooKeeperError {
  static override readonly tag = 'NoChildrenForEphemeralsError'
}
export class InvalidACLError extends ZooKeeperError {
  static override readonly tag = 'InvalidACLError'
}
/** The change would exceed a hard quota. */
export class QuotaExceededError extends ZooKeeperError {
  static override readonly tag = 'QuotaExceededError'
}
export class EphemeralOnLocalSessionError extends ZooKeeperError {
  static override readonly tag = 'EphemeralOnLocalSessionError'
}
/** The server is read-only now. Pass `waitForReadWrite` to wait for a read-write server. */
export class NotReadOnlyError extends ZooKeeperError {
  static override readonly tag = 'NotReadOnlyError'
}
export class NoWatcherError extends ZooKeeperError {
  static override readonly tag = 'NoWatcherError'
}
export class ReconfigDisabledError extends ZooKeeperError {
  static override readonly tag = 'ReconfigDisabledError'
}
/** A multi failed as a whole; `cause` is the error of operation `index`, and `causeCode` its code. */
export class MultiError extends ZooKeeperError {
  static override readonly tag = 'MultiError'
  /** Position of the operation that failed. */
  readonly index: number
  /** Code of the error of the operation, such as `NODE_EXISTS`. */
  readonly causeCode: ZooKeeperErrorCode
  override readonly retryable: boolean
  override readonly cause: ZooKeeperError
  constructor(message: string, index: number, cause: ZooKeeperError) {
    super(message, 'MULTI_FAILED', { path: cause.path, operation: 'multi', cause }, cause.wireCode)
    this.index = index
    this.causeCode = cause.code
    this.retryable = cause.retryable
    this.cause = cause
  }
}

/** An error code that this version does not know. Only the request fails. */
export class UnknownServerError extends ZooKeeperError {
  static override readonly tag = 'UnknownServerError'
}
/** The server could not process the request: it is unknown to the server, malformed, or hit an internal fault. */
export class ServerFaultError extends ZooKeeperError {
  static override readonly tag = 'ServerFaultError'
}
/** The session has expired: its ephemeral znodes and its watches are gone. */
export class SessionExpiredError extends ZooKeeperError {
  static override readonly tag = 'SessionExpiredError'
  readonly sessionId: bigint
  constructor(message: string, sessionId: bigint, context: ErrorContext = {}) {
    super(message, 'SESSION_EXPIRED', context, SESSION_EXPIRED)
    this.sessionId = sessionId
  }
}
/** The server rejected the credentials, or requires some. The client is closed. */
export class AuthFailedError extends ZooKeeperError {
  static override readonly tag = 'AuthFailedError'
}
/** No server can be connected to, however often the client tries: a wrong certificate, file or protocol. `cause` is the reason. */
export class ConnectFailedError extends ZooKeeperError {
  static override readonly tag = 'ConnectFailedError'
}
/** The client is closed. */
export class ClosedError extends ZooKeeperError {
  static override readonly tag = 'ClosedError'
}

/** The call is invalid in any state of the tree. No request was sent. */
export class UsageError extends ZooKeeperError {
  static override readonly tag: string = 'UsageError'
  constructor(message: string, context: ErrorContext = {}) {
    super(message, 'USAGE', context)
  }
}
/** The caller's signal aborted the call; `cause` is its reason. The name is `AbortError`, as in the platform. */
export class AbortedError extends ZooKeeperError {
  static override readonly tag = 'AbortedError'
  constructor(message: string, context: ErrorContext = {}) {
    super(message, 'ABORTED', context)
    this.name = 'AbortError'
  }
}

/** A codec could not encode a value or decode the data of a znode; `cause` is its error. */
export class CodecError extends ZooKeeperError {
  static override readonly tag = 'CodecError'
}

type ConcreteError = new (
  message: string,
  code: ZooKeeperErrorCode,
  context: ErrorContext,
  wireCode: number,
) => ZooKeeperError

/** The protocol names its errors without the underscores of the codes here. */
type NameInProtocol<C extends string> = C extends `${infer A}_${infer B}` ? NameInProtocol<`${A}${B}`> : C

interface ErrorRow {
  readonly code: ZooKeeperErrorCode
  readonly type: ConcreteError
}

/** Maps every error code of the protocol to its identifier and class. `docs/errors.md` is generated from this table. */
// A function, so that a bundler can drop the table with all its classes from an application without a client.
export const errorTable: ReadonlyMap<number, ErrorRow> = /* @__PURE__ */ (() => {
  const types = {
    SYSTEM_ERROR: ServerFaultError,
    RUNTIME_INCONSISTENCY: ServerFaultError,
    DATA_INCONSISTENCY: ServerFaultError,
    CONNECTION_LOSS: ConnectionLossError,
    MARSHALLING_ERROR: ServerFaultError,
    UNIMPLEMENTED: ServerFaultError,
    OPERATION_TIMEOUT: OperationTimeoutError,
    BAD_ARGUMENTS: ServerFaultError,
    UNKNOWN_SESSION: ServerFaultError,
    NEW_CONFIG_NO_QUORUM: NewConfigNoQuorumError,
    RECONFIG_IN_PROGRESS: ReconfigInProgressError,
    API_ERROR: ServerFaultError,
    NO_NODE: NoNodeError,
    NO_AUTH: NoAuthError,
    BAD_VERSION: BadVersionError,
    NO_CHILDREN_FOR_EPHEMERALS: NoChildrenForEphemeralsError,
    NODE_EXISTS: NodeExistsError,
    NOT_EMPTY: NotEmptyError,
    INVALID_CALLBACK: ServerFaultError,
    INVALID_ACL: InvalidACLError,
    AUTH_FAILED: AuthFailedError,
    SESSION_MOVED: SessionMovedError,
    NOT_READ_ONLY: NotReadOnlyError,
    EPHEMERAL_ON_LOCAL_SESSION: EphemeralOnLocalSessionError,
    NO_WATCHER: NoWatcherError,
    REQUEST_TIMEOUT: OperationTimeoutError,
    RECONFIG_DISABLED: ReconfigDisabledError,
    SESSION_CLOSED_REQUIRE_SASL_AUTH: AuthFailedError,
    QUOTA_EXCEEDED: QuotaExceededError,
    THROTTLED_OP: ThrottledError,
  } satisfies {
    readonly [C in ZooKeeperErrorCode as NameInProtocol<C> extends ErrorName ? C : never]?: ConcreteError
  }
  return new Map(
    (Object.entries(types) as [keyof typeof types, ConcreteError][]).map(([code, type]) => [
      ErrorCode[code.replaceAll('_', '') as NameInProtocol<typeof code>],
      { code, type },
    ]),
  )
})()

/** Returns the operation and the path of a call, for messages. */
const callOf = ({ operation = 'request', path }: ErrorContext): string =>
  path === undefined ? operation : `${operation} ${path}`

/**
 * Returns the error for an error code of a reply. `detail` replaces the meaning of the code where the request says
 * more.
 */
export function errorFromCode(
  wireCode: number,
  context: ErrorContext,
  sessionId = 0n,
  detail?: string,
): ZooKeeperError {
  const meaning =
    detail ??
    wireErrors.get(wireCode)?.meaning ??
    'The server replied with an error code that this client does not know.'
  if (wireCode === ErrorCode.SESSIONEXPIRED)
    return new SessionExpiredError(`${callOf(context)}: ${meaning}`, sessionId, context)
  const row = errorTable.get(wireCode)
  if (row === undefined)
    return new UnknownServerError(
      `${callOf(context)}: ${meaning} (${wireCode})`,
      `UNKNOWN_${-wireCode}`,
      context,
      wireCode,
    )
  return new row.type(`${callOf(context)}: ${meaning} (${row.code})`, row.code, context, wireCode)
}

/** Returns what failed where the parent of a znode to create is missing, and what to do. */
export const missingParent = (path: string, advice: string): string =>
  `The parent ${parentOf(path)} does not exist; ${advice}.`

/** Returns what failed where a znode has another version than the request expected; `present` is the one read since. */
export const otherVersion = (expected: number, present?: number): string =>
  `Expected version ${expected}, and the znode has ${present ?? 'another'}; read it again.`

/** Returns the error of a reply that this client cannot decode, or that is longer than its `maxFrameBytes`. */
export function unreadableReplyError(context: ErrorContext & { readonly cause: Error }): ServerFaultError {
  return new ServerFaultError(
    `${callOf(context)}: this reply cannot be read here: ${context.cause.message}`,
    'MARSHALLING_ERROR',
    context,
    ErrorCode.MARSHALLINGERROR,
  )
}

/** Returns the error for an encode or a decode in which a codec threw `cause`. */
export function codecError(
  code: 'DECODE_FAILED' | 'ENCODE_FAILED',
  cause: unknown,
  context: ErrorContext,
): CodecError {
  const what = code === 'ENCODE_FAILED' ? 'the value cannot be encoded' : 'the data cannot be decoded'
  return new CodecError(`${callOf(context)}: ${what}: ${errorOf(cause).message}`, code, {
    ...context,
    cause,
  })
}

/** Returns the error of a request that failed because the chroot does not exist. */
export function noChrootError(chroot: string, context: ErrorContext): NoChrootError {
  const message = `${context.operation} ${context.path}: the chroot ${chroot} does not exist; connect with createChroot: true, or call createMissing(['/'])`
  return new NoChrootError(message, 'NO_CHROOT', context, ErrorCode.NONODE)
}

/** Returns the error for a connection that broke, or that was not there. */
export function connectionLossError(
  context: ErrorContext & { reason?: string | undefined },
): ConnectionLossError {
  const outcome = context.maybeApplied ? 'it may or may not have been applied' : 'it was not sent'
  return new ConnectionLossError(
    `${callOf(context)}: ${context.reason ?? 'the connection broke before the reply arrived'}; ${outcome}`,
    'CONNECTION_LOSS',
    context,
    ErrorCode.CONNECTIONLOSS,
  )
}

/** Returns the error for an aborted call: an `OperationTimeoutError` for a deadline, otherwise an `AbortedError`. */
export function abortError(reason: unknown, context: ErrorContext): OperationTimeoutError | AbortedError {
  const outcome = context.maybeApplied ? '; it was sent and may still be applied' : ''
  const timedOut = (reason as { name?: unknown } | undefined)?.name === 'TimeoutError'
  return timedOut
    ? new OperationTimeoutError(
        `${callOf(context)}: no reply before the deadline${outcome}`,
        'OPERATION_TIMEOUT',
        { ...context, cause: reason },
        OPERATION_TIMEOUT,
      )
    : new AbortedError(`${callOf(context)}: aborted by the caller${outcome}`, { ...context, cause: reason })
}

/** Returns the error that a call rejects with when its client or session ends with `error`. */
export function terminalErrorFor(error: ZooKeeperError, context: ErrorContext): ZooKeeperError {
  const message = `${callOf(context)}: ${error.message}`
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
