// @zabra/client
//   ACL
//   AbortedError
//   AnyZooKeeperError
//   AuthFailedError
//   AuthInfo
//   BadVersionError
//   Bytes
//   CallOptions
//   Cancel
//   CertificateError
//   Client
//   ClientOptions
//   ClientStats
//   Clock
//   ClosedError
//   Codec
//   CodecError
//   CompressedOptions
//   ConnectDefaults
//   ConnectFailedError
//   ConnectFailure
//   ConnectOptions
//   Connection
//   ConnectionHandler
//   ConnectionLossError
//   ConnectionState
//   CreateMode
//   CreateOptions
//   CreateResult
//   Data
//   DeleteOptions
//   DigestMd5Login
//   DigestMd5Options
//   EphemeralOnLocalSessionError
//   ErrorContext
//   ErrorPolicy
//   ErrorScope
//   ErrorsByCode
//   FindServersOptions
//   FourLetterWordOptions
//   Instrumentation
//   InvalidACLError
//   MissingNode
//   ModeOptions
//   MultiError
//   NamedNodeOptions
//   NewConfigNoQuorumError
//   NewNodeOptions
//   NoAuthError
//   NoChildrenForEphemeralsError
//   NoChrootError
//   NoNodeError
//   NoWatcherError
//   NodeEvent
//   NodeEventType
//   NodeExistsError
//   NodeHandle
//   NodeTransport
//   NodeTransportOptions
//   NotEmptyError
//   NotReadOnlyError
//   OneShotWatch
//   OneShotWatches
//   OperationTimeoutError
//   Ordered
//   OwnBytes
//   Perms
//   Platform
//   QuotaExceededError
//   Random
//   ReadOp
//   ReadResult
//   RecipeErrorCode
//   ReconfigChange
//   ReconfigDisabledError
//   ReconfigInProgressError
//   RecursiveDeleteOptions
//   RequestContext
//   RequestEndCallback
//   RequestInfo
//   RequestOutcome
//   ResyncEvent
//   RetryFunction
//   RetryPolicy
//   SaslMechanism
//   Schema
//   ServerAddress
//   ServerFaultError
//   ServerList
//   SessionCredentials
//   SessionExpiredError
//   SessionMovedError
//   SetDataOptions
//   StandardSchema
//   Stat
//   StateChange
//   ThrottledError
//   TlsOptions
//   Transport
//   TreeOptions
//   TtlMode
//   TypedClient
//   TypedValue
//   UnknownServerError
//   UsageError
//   ValueOptions
//   Visit
//   WalkOptions
//   WatchKind
//   WatchOptions
//   WatchedEvent
//   Watcher
//   WriteOp
//   WriteResult
//   ZooKeeperError
//   ZooKeeperErrorCode
//   ZooKeeperErrorOf
//   Zxid
//   addressKey
//   compressed
//   connect
//   connectWith
//   digestId
//   digestMd5
//   digestMd5With
//   findServers
//   fourLetterWord
//   json
//   mapConcurrent
//   nodeTransport
//   parseServers
//   utf8

// @zabra/client/node
//   ACL
//   AbortedError
//   AnyZooKeeperError
//   AuthFailedError
//   AuthInfo
//   BadVersionError
//   Bytes
//   CallOptions
//   Cancel
//   CertificateError
//   Client
//   ClientOptions
//   ClientStats
//   Clock
//   ClosedError
//   Codec
//   CodecError
//   CompressedOptions
//   ConnectDefaults
//   ConnectFailedError
//   ConnectFailure
//   ConnectOptions
//   Connection
//   ConnectionHandler
//   ConnectionLossError
//   ConnectionState
//   CreateMode
//   CreateOptions
//   CreateResult
//   Data
//   DeleteOptions
//   DigestMd5Login
//   DigestMd5Options
//   EphemeralOnLocalSessionError
//   ErrorContext
//   ErrorPolicy
//   ErrorScope
//   ErrorsByCode
//   FindServersOptions
//   FourLetterWordOptions
//   Instrumentation
//   InvalidACLError
//   MissingNode
//   ModeOptions
//   MultiError
//   NamedNodeOptions
//   NewConfigNoQuorumError
//   NewNodeOptions
//   NoAuthError
//   NoChildrenForEphemeralsError
//   NoChrootError
//   NoNodeError
//   NoWatcherError
//   NodeEvent
//   NodeEventType
//   NodeExistsError
//   NodeHandle
//   NodeTransport
//   NodeTransportOptions
//   NotEmptyError
//   NotReadOnlyError
//   OneShotWatch
//   OneShotWatches
//   OperationTimeoutError
//   Ordered
//   OwnBytes
//   Perms
//   Platform
//   QuotaExceededError
//   Random
//   ReadOp
//   ReadResult
//   RecipeErrorCode
//   ReconfigChange
//   ReconfigDisabledError
//   ReconfigInProgressError
//   RecursiveDeleteOptions
//   RequestContext
//   RequestEndCallback
//   RequestInfo
//   RequestOutcome
//   ResyncEvent
//   RetryFunction
//   RetryPolicy
//   SaslMechanism
//   Schema
//   ServerAddress
//   ServerFaultError
//   ServerList
//   SessionCredentials
//   SessionExpiredError
//   SessionMovedError
//   SetDataOptions
//   StandardSchema
//   Stat
//   StateChange
//   ThrottledError
//   TlsOptions
//   Transport
//   TreeOptions
//   TtlMode
//   TypedClient
//   TypedValue
//   UnknownServerError
//   UsageError
//   ValueOptions
//   Visit
//   WalkOptions
//   WatchKind
//   WatchOptions
//   WatchedEvent
//   Watcher
//   WriteOp
//   WriteResult
//   ZooKeeperError
//   ZooKeeperErrorCode
//   ZooKeeperErrorOf
//   Zxid
//   addressKey
//   compressed
//   connect
//   connectWith
//   digestId
//   digestMd5
//   digestMd5With
//   findServers
//   fourLetterWord
//   json
//   mapConcurrent
//   nodeTransport
//   parseServers
//   utf8

// @zabra/client/web
//   ACL
//   AbortedError
//   AnyZooKeeperError
//   AuthFailedError
//   AuthInfo
//   BadVersionError
//   Bytes
//   CallOptions
//   Cancel
//   Client
//   ClientOptions
//   ClientStats
//   Clock
//   ClosedError
//   Codec
//   CodecError
//   ConnectDefaults
//   ConnectFailedError
//   ConnectFailure
//   ConnectOptions
//   Connection
//   ConnectionHandler
//   ConnectionLossError
//   ConnectionState
//   CreateMode
//   CreateOptions
//   CreateResult
//   Data
//   DeleteOptions
//   DigestMd5Login
//   DigestMd5Options
//   EphemeralOnLocalSessionError
//   ErrorContext
//   ErrorPolicy
//   ErrorScope
//   ErrorsByCode
//   Instrumentation
//   InvalidACLError
//   MissingNode
//   ModeOptions
//   MultiError
//   NamedNodeOptions
//   NewConfigNoQuorumError
//   NewNodeOptions
//   NoAuthError
//   NoChildrenForEphemeralsError
//   NoChrootError
//   NoNodeError
//   NoWatcherError
//   NodeEvent
//   NodeEventType
//   NodeExistsError
//   NodeHandle
//   NotEmptyError
//   NotReadOnlyError
//   OneShotWatch
//   OneShotWatches
//   OperationTimeoutError
//   Ordered
//   OwnBytes
//   Perms
//   Platform
//   QuotaExceededError
//   Random
//   ReadOp
//   ReadResult
//   RecipeErrorCode
//   ReconfigChange
//   ReconfigDisabledError
//   ReconfigInProgressError
//   RecursiveDeleteOptions
//   RequestEndCallback
//   RequestInfo
//   RequestOutcome
//   ResyncEvent
//   RetryFunction
//   RetryPolicy
//   SaslMechanism
//   Schema
//   ServerAddress
//   ServerFaultError
//   SessionCredentials
//   SessionExpiredError
//   SessionMovedError
//   SetDataOptions
//   StandardSchema
//   Stat
//   StateChange
//   ThrottledError
//   Transport
//   TreeOptions
//   TtlMode
//   TypedClient
//   TypedValue
//   UnknownServerError
//   UsageError
//   ValueOptions
//   Visit
//   WalkOptions
//   WatchKind
//   WatchOptions
//   WatchedEvent
//   Watcher
//   WriteOp
//   WriteResult
//   ZooKeeperError
//   ZooKeeperErrorCode
//   ZooKeeperErrorOf
//   Zxid
//   addressKey
//   connect
//   connectWith
//   digestId
//   digestMd5
//   digestMd5With
//   json
//   mapConcurrent
//   parseServers
//   utf8

// @zabra/client/core
//   ACL
//   AbortedError
//   AnyZooKeeperError
//   AuthFailedError
//   AuthInfo
//   BadVersionError
//   Bytes
//   CallOptions
//   Cancel
//   Client
//   ClientOptions
//   ClientStats
//   Clock
//   ClosedError
//   Codec
//   CodecError
//   ConnectDefaults
//   ConnectFailedError
//   ConnectFailure
//   ConnectOptions
//   Connection
//   ConnectionHandler
//   ConnectionLossError
//   ConnectionState
//   CreateMode
//   CreateOptions
//   CreateResult
//   Data
//   DeleteOptions
//   DigestMd5Login
//   DigestMd5Options
//   EphemeralOnLocalSessionError
//   ErrorContext
//   ErrorPolicy
//   ErrorScope
//   ErrorsByCode
//   Instrumentation
//   InvalidACLError
//   MissingNode
//   ModeOptions
//   MultiError
//   NamedNodeOptions
//   NewConfigNoQuorumError
//   NewNodeOptions
//   NoAuthError
//   NoChildrenForEphemeralsError
//   NoChrootError
//   NoNodeError
//   NoWatcherError
//   NodeEvent
//   NodeEventType
//   NodeExistsError
//   NodeHandle
//   NotEmptyError
//   NotReadOnlyError
//   OneShotWatch
//   OneShotWatches
//   OperationTimeoutError
//   Ordered
//   OwnBytes
//   Perms
//   Platform
//   QuotaExceededError
//   Random
//   ReadOp
//   ReadResult
//   RecipeErrorCode
//   ReconfigChange
//   ReconfigDisabledError
//   ReconfigInProgressError
//   RecursiveDeleteOptions
//   RequestEndCallback
//   RequestInfo
//   RequestOutcome
//   ResyncEvent
//   RetryFunction
//   RetryPolicy
//   SaslMechanism
//   Schema
//   ServerAddress
//   ServerFaultError
//   SessionCredentials
//   SessionExpiredError
//   SessionMovedError
//   SetDataOptions
//   StandardSchema
//   Stat
//   StateChange
//   ThrottledError
//   Transport
//   TreeOptions
//   TtlMode
//   TypedClient
//   TypedValue
//   UnknownServerError
//   UsageError
//   ValueOptions
//   Visit
//   WalkOptions
//   WatchKind
//   WatchOptions
//   WatchedEvent
//   Watcher
//   WriteOp
//   WriteResult
//   ZooKeeperError
//   ZooKeeperErrorCode
//   ZooKeeperErrorOf
//   Zxid
//   addressKey
//   connectWith
//   digestId
//   digestMd5With
//   json
//   mapConcurrent
//   parseServers
//   utf8

// @zabra/client/recipe-kit
//   AsyncQueue
//   OverflowPolicy
//   Rule
//   aCodec
//   aFunction
//   aText
//   abortError
//   anAbortSignal
//   anObject
//   anything
//   backoff
//   callObserver
//   checkArgument
//   checkOptionsOf
//   childPath
//   errorPolicyRule
//   isReserved
//   milliseconds
//   nameOf
//   onAbort
//   oneOf
//   parentOf
//   shown
//   syncResult
//   trueOrFalse
//   validatePath
//   whole
//   withCodecErrors
//   withoutTimeout

// @zabra/client/otel
//   OpenTelemetryOptions
//   openTelemetry

// async-queue.d.ts

export declare class AsyncQueue<T> implements AsyncIterableIterator<T> {
    #private;
    constructor(limit: number, overflow: OverflowPolicy<T>, left?: () => void);
    push(item: T): void;
    end(error?: unknown): void;
    next(): Promise<IteratorResult<T>>;
    return(): Promise<IteratorResult<T>>;
    [Symbol.asyncIterator](): this;
}

export type OverflowPolicy<T> = (waiting: T[], item: T) => T[];

// checks.d.ts

export type Check = (value: unknown) => boolean;

export type Rule = readonly [expected: string, check: Check];

export declare const aCodec: Rule;

export declare const aFunction: Rule;

export declare const aText: Rule;

export declare const anAbortSignal: Rule;

export declare const anObject: Rule;

export declare const anything: Rule;

export declare function checkArgument(what: string, name: string, value: unknown, rule: Rule): void;

export declare function checkOptionsOf(name: string, options: unknown, rules: Readonly<Record<string, Rule>>): void;

export declare const errorPolicyRule: Rule;

export declare const milliseconds: Rule;

export declare const oneOf: (...words: readonly unknown[]) => Rule;

export declare function shown(value: unknown): string;

export declare const trueOrFalse: Rule;

export declare const whole: (from: number, to?: number) => Check;

// client-api.d.ts

export interface Client extends AsyncDisposable {
    readonly state: ConnectionState;
    readonly server: string | undefined;
    readonly session: SessionCredentials & {
        readonly timeoutMs: number;
        readonly generation: number;
    };
    readonly leaseHorizon: number;
    leaseRemaining(): number;
    stats(): ClientStats;
    readonly lastContact: number;
    readonly platform: Platform;
    readonly errorPolicy: ErrorPolicy;
    readonly instrumentation: Instrumentation | undefined;
    states(): AsyncIterableIterator<StateChange>;
    readonly closed: Promise<Error | undefined>;
    chroot(path: string): Client;
    unordered(): Client;
    withCodec<T>(codec: Codec<T>): TypedClient<T>;
    node<T>(path: string, codec: Codec<T>): NodeHandle<T>;
    node(path: string): NodeHandle<OwnBytes, Data>;
    create(path: string, options?: CreateOptions): Promise<CreateResult>;
    delete(path: string, options: RecursiveDeleteOptions): Promise<number>;
    delete(path: string, options?: DeleteOptions): Promise<void>;
    exists(path: string, options?: CallOptions): Promise<(Stat & Ordered) | undefined>;
    getData(path: string, options?: CallOptions): Promise<{
        data: OwnBytes;
        isNull: boolean;
        stat: Stat;
    } & Ordered>;
    setData(path: string, data: Data, options?: SetDataOptions): Promise<Stat & Ordered>;
    getChildren(path: string, options?: CallOptions): Promise<{
        children: string[];
        stat: Stat;
    } & Ordered>;
    getACL(path: string, options?: CallOptions): Promise<{
        acl: ACL[];
        stat: Stat;
    }>;
    setACL(path: string, acl: readonly ACL[], options?: CallOptions & {
        version?: number | undefined;
    }): Promise<Stat & Ordered>;
    getAllChildrenNumber(path: string, options?: CallOptions): Promise<number>;
    getEphemerals(prefix?: string, options?: CallOptions): Promise<string[]>;
    sync(path: string, options?: CallOptions): Promise<void>;
    syncCommitted(options?: CallOptions): Promise<Zxid>;
    multi<const T extends readonly WriteOp[]>(operations: T, options?: CallOptions): Promise<{
        [K in keyof T]: WriteResult<T[K]>;
    }>;
    multiRead<const T extends readonly ReadOp[]>(operations: T, options?: CallOptions): Promise<{
        [K in keyof T]: ReadResult<T[K]> | ZooKeeperError;
    }>;
    watchOnce<K extends WatchKind>(path: string, kind: K, options?: CallOptions): Promise<OneShotWatches[K]>;
    watch(path: string, options?: WatchOptions): Promise<Watcher>;
    addAuth(scheme: string, auth: Bytes | string, options?: CallOptions): Promise<void>;
    whoAmI(options?: CallOptions): Promise<{
        scheme: string;
        id: string;
    }[]>;
    getConfig(options?: CallOptions): Promise<{
        data: OwnBytes;
        stat: Stat;
    } & Ordered>;
    reconfig(change: ReconfigChange, options?: CallOptions): Promise<{
        data: OwnBytes;
        stat: Stat;
    } & Ordered>;
    createMissing(nodes: readonly (string | MissingNode)[], options?: CallOptions): Promise<void>;
    walk(path: string, options: WalkOptions & {
        readonly stats: true;
    }): AsyncIterableIterator<Visit>;
    walk(path: string, options?: WalkOptions & {
        readonly stats?: false | undefined;
    }): AsyncIterableIterator<string>;
    updateServerList(servers: string | readonly string[]): Promise<boolean>;
    close(options?: {
        signal?: AbortSignal | undefined;
    }): Promise<void>;
    detach(): Promise<SessionCredentials>;
}

export interface ClientStats {
    readonly inFlight: number;
    readonly waiting: number;
    readonly sent: number;
    readonly received: number;
    readonly sentBytes: number;
    readonly receivedBytes: number;
    readonly reconnects: number;
    readonly latencyMs: number | undefined;
}

export interface NodeHandle<T, W = T> {
    readonly path: string;
    create(value: W, options?: NamedNodeOptions): Promise<CreateResult>;
    get(options?: CallOptions): Promise<TypedValue<T> & Ordered>;
    set(value: W, options?: SetDataOptions): Promise<Stat & Ordered>;
    update(change: (value: T) => W, options?: CallOptions): Promise<{
        value: W;
        stat: Stat & Ordered;
    }>;
    watch(options?: {
        readonly signal?: AbortSignal | undefined;
    }): AsyncGenerator<TypedValue<T> | undefined, void>;
    exists(options?: CallOptions): Promise<(Stat & Ordered) | undefined>;
    delete(options: RecursiveDeleteOptions): Promise<number>;
    delete(options?: DeleteOptions): Promise<void>;
}

export interface TypedClient<T> {
    readonly client: Client;
    create(path: string, value: T, options?: ValueOptions): Promise<CreateResult>;
    get(path: string, options?: CallOptions): Promise<TypedValue<T> & Ordered>;
    set(path: string, value: T, options?: SetDataOptions): Promise<Stat & Ordered>;
    readonly delete: Client['delete'];
    children(path: string, options?: CallOptions): Promise<Map<string, TypedValue<T>>>;
    watch(path: string, options?: {
        readonly signal?: AbortSignal | undefined;
    }): AsyncGenerator<TypedValue<T> | undefined, void>;
    update(path: string, change: (value: T) => T, options?: CallOptions): Promise<{
        value: T;
        stat: Stat & Ordered;
    }>;
}

export interface TypedValue<T> {
    readonly value: T;
    readonly stat: Stat;
}

// client-options.d.ts

export interface ClientOptions {
    readonly servers: string | readonly string[];
    readonly transport?: Transport | undefined;
    readonly chroot?: string | undefined;
    readonly createChroot?: boolean | undefined;
    readonly sessionTimeoutMs?: number | undefined;
    readonly connectTimeoutMs?: number | undefined;
    readonly waitForever?: boolean | undefined;
    readonly onAttemptFailed?: ((failure: ConnectFailure) => void) | undefined;
    readonly session?: SessionCredentials | undefined;
    readonly sessionExpiry?: 'renew' | 'close' | undefined;
    readonly readOnly?: boolean | undefined;
    readonly auth?: readonly AuthInfo[] | undefined;
    readonly sasl?: ((server: ServerAddress) => SaslMechanism) | undefined;
    readonly timeoutMs?: number | undefined;
    readonly retry?: RetryPolicy | RetryFunction | undefined;
    readonly errorPolicy?: ErrorPolicy | undefined;
    readonly offlineQueue?: number | undefined;
    readonly trackEnsemble?: boolean | undefined;
    readonly maxFrameBytes?: number | undefined;
    readonly maxRequestBytes?: number | undefined;
    readonly batchReads?: boolean | {
        readonly maxReads?: number | undefined;
    } | undefined;
    readonly platform?: Partial<Platform> | undefined;
    readonly instrumentation?: Instrumentation | undefined;
    readonly callerStacks?: boolean | undefined;
    readonly redactPath?: ((path: string) => string) | undefined;
}

export interface ConnectFailure {
    readonly server: string;
    readonly error: Error;
    readonly attempts: number;
}

export type ErrorPolicy = 'connection' | 'session' | {
    readonly lease: {
        readonly marginMs?: number | undefined;
        readonly renew?: 'commit' | 'passive' | undefined;
    };
};

export interface SaslMechanism {
    readonly name: string;
    step(challenge?: Bytes): Promise<Bytes | undefined>;
}

// codec-errors.d.ts

export declare const withCodecErrors: <T>(codec: Codec<T>, context: ErrorContext) => Codec<T>;

// codecs.d.ts

interface Refusal {
    readonly issues: readonly StandardIssue[];
}

export type Schema<T> = StandardSchema<T> | ((value: unknown) => T);

interface StandardIssue {
    readonly message: string;
    readonly path?: readonly (PropertyKey | {
        readonly key: PropertyKey;
    })[] | undefined;
}

type StandardResult<T> = {
    readonly value: T;
    readonly issues?: undefined;
} | Refusal;

export interface StandardSchema<T> {
    readonly '~standard': {
        readonly version: 1;
        readonly vendor: string;
        readonly validate: (value: unknown) => StandardResult<T> | PromiseLike<StandardResult<T>>;
        readonly types?: {
            readonly input: unknown;
            readonly output: T;
        } | undefined;
    };
}

export declare function json<T>(schema: StandardSchema<T>): Codec<T>;
export declare function json<T = unknown>(validate?: (value: unknown) => T): Codec<T>;

export declare const utf8: Codec<string>;

// connect-with.d.ts

export declare function connectWith(options: ConnectOptions, defaults: ConnectDefaults): Promise<Client>;

// connect.d.ts

export interface ConnectDefaults {
    readonly transport?: Transport | undefined;
    readonly platform: Platform;
    readonly warn?: ((message: string) => void) | undefined;
}

export type ConnectOptions = ClientOptions & {
    readonly signal?: AbortSignal | undefined;
};

// errors.d.ts

export declare class AbortedError extends ZooKeeperError {
    static readonly tag = "AbortedError";
    constructor(message: string, context?: ErrorContext);
}

export type AnyZooKeeperError = {
    [C in ZooKeeperErrorCode]: ZooKeeperErrorOf<C>;
}[ZooKeeperErrorCode];

export declare class AuthFailedError extends ZooKeeperError {
    static readonly tag = "AuthFailedError";
}

export declare class BadVersionError extends ZooKeeperError {
    static readonly tag = "BadVersionError";
}

export declare class ClosedError extends ZooKeeperError {
    static readonly tag = "ClosedError";
}

export declare class CodecError extends ZooKeeperError {
    static readonly tag = "CodecError";
}

export declare class ConnectFailedError extends ZooKeeperError {
    static readonly tag = "ConnectFailedError";
}

export declare class ConnectionLossError extends ZooKeeperError {
    static readonly tag = "ConnectionLossError";
}

export declare class EphemeralOnLocalSessionError extends ZooKeeperError {
    static readonly tag = "EphemeralOnLocalSessionError";
}

export interface ErrorContext {
    readonly path?: string | undefined;
    readonly operation?: string | undefined;
    readonly maybeApplied?: boolean | undefined;
    readonly cause?: unknown;
}

export type ErrorScope = 'request' | 'session' | 'client';

export interface ErrorsByCode {
    readonly ABORTED: AbortedError;
    readonly API_ERROR: ServerFaultError;
    readonly AUTH_FAILED: AuthFailedError;
    readonly BAD_ARGUMENTS: ServerFaultError;
    readonly BAD_VERSION: BadVersionError;
    readonly CLOSED: ClosedError;
    readonly CONNECTION_LOSS: ConnectionLossError;
    readonly CONNECT_FAILED: ConnectFailedError;
    readonly DATA_INCONSISTENCY: ServerFaultError;
    readonly DECODE_FAILED: CodecError;
    readonly ENCODE_FAILED: CodecError;
    readonly EPHEMERAL_ON_LOCAL_SESSION: EphemeralOnLocalSessionError;
    readonly INVALID_ACL: InvalidACLError;
    readonly INVALID_CALLBACK: ServerFaultError;
    readonly MARSHALLING_ERROR: ServerFaultError;
    readonly MULTI_FAILED: MultiError;
    readonly NEW_CONFIG_NO_QUORUM: NewConfigNoQuorumError;
    readonly NODE_EXISTS: NodeExistsError;
    readonly NOT_EMPTY: NotEmptyError;
    readonly NOT_READ_ONLY: NotReadOnlyError;
    readonly NO_AUTH: NoAuthError;
    readonly NO_CHILDREN_FOR_EPHEMERALS: NoChildrenForEphemeralsError;
    readonly NO_CHROOT: NoChrootError;
    readonly NO_NODE: NoNodeError;
    readonly NO_WATCHER: NoWatcherError;
    readonly OPERATION_TIMEOUT: OperationTimeoutError;
    readonly QUOTA_EXCEEDED: QuotaExceededError;
    readonly RECONFIG_DISABLED: ReconfigDisabledError;
    readonly RECONFIG_IN_PROGRESS: ReconfigInProgressError;
    readonly REQUEST_TIMEOUT: OperationTimeoutError;
    readonly RUNTIME_INCONSISTENCY: ServerFaultError;
    readonly SESSION_CLOSED_REQUIRE_SASL_AUTH: AuthFailedError;
    readonly SESSION_EXPIRED: SessionExpiredError;
    readonly SESSION_MOVED: SessionMovedError;
    readonly SYSTEM_ERROR: ServerFaultError;
    readonly THROTTLED_OP: ThrottledError;
    readonly UNIMPLEMENTED: ServerFaultError;
    readonly UNKNOWN_SESSION: ServerFaultError;
    readonly USAGE: UsageError;
}

export declare class InvalidACLError extends ZooKeeperError {
    static readonly tag = "InvalidACLError";
}

export declare class MultiError extends ZooKeeperError {
    static readonly tag = "MultiError";
    readonly index: number;
    readonly causeCode: ZooKeeperErrorCode;
    readonly retryable: boolean;
    readonly cause: ZooKeeperError;
    constructor(message: string, index: number, cause: ZooKeeperError);
}

export declare class NewConfigNoQuorumError extends ZooKeeperError {
    static readonly tag = "NewConfigNoQuorumError";
}

export declare class NoAuthError extends ZooKeeperError {
    static readonly tag = "NoAuthError";
}

export declare class NoChildrenForEphemeralsError extends ZooKeeperError {
    static readonly tag = "NoChildrenForEphemeralsError";
}

export declare class NoChrootError extends NoNodeError {
    static readonly tag = "NoChrootError";
}

export declare class NoNodeError extends ZooKeeperError {
    static readonly tag: string;
}

export declare class NoWatcherError extends ZooKeeperError {
    static readonly tag = "NoWatcherError";
}

export declare class NodeExistsError extends ZooKeeperError {
    static readonly tag = "NodeExistsError";
}

export declare class NotEmptyError extends ZooKeeperError {
    static readonly tag = "NotEmptyError";
}

export declare class NotReadOnlyError extends ZooKeeperError {
    static readonly tag = "NotReadOnlyError";
}

export declare class OperationTimeoutError extends ZooKeeperError {
    static readonly tag: string;
}

export declare class QuotaExceededError extends ZooKeeperError {
    static readonly tag = "QuotaExceededError";
}

export type RecipeErrorCode = 'AMBIGUOUS_RESULT' | 'HAND_OVER' | 'LOST' | 'NODE_CONFLICT' | 'PERMITS_CONFLICT' | 'QUEUE_FULL';

export declare class ReconfigDisabledError extends ZooKeeperError {
    static readonly tag = "ReconfigDisabledError";
}

export declare class ReconfigInProgressError extends ZooKeeperError {
    static readonly tag = "ReconfigInProgressError";
}

export declare class ServerFaultError extends ZooKeeperError {
    static readonly tag = "ServerFaultError";
}

export declare class SessionExpiredError extends ZooKeeperError {
    static readonly tag = "SessionExpiredError";
    readonly sessionId: bigint;
    constructor(message: string, sessionId: bigint, context?: ErrorContext);
}

export declare class SessionMovedError extends ZooKeeperError {
    static readonly tag = "SessionMovedError";
}

export declare class ThrottledError extends ZooKeeperError {
    static readonly tag = "ThrottledError";
}

export declare class UnknownServerError extends ZooKeeperError {
    static readonly tag = "UnknownServerError";
}

export declare class UsageError extends ZooKeeperError {
    static readonly tag: string;
    constructor(message: string, context?: ErrorContext);
}

export declare abstract class ZooKeeperError extends Error {
    static readonly tag: string;
    readonly code: ZooKeeperErrorCode;
    readonly wireCode?: number | undefined;
    readonly retryable: boolean;
    readonly scope: ErrorScope;
    readonly maybeApplied: boolean;
    readonly path?: string | undefined;
    readonly operation?: string | undefined;
    constructor(message: string, code: ZooKeeperErrorCode, context?: ErrorContext, wireCode?: number);
    static is<C extends ZooKeeperErrorCode>(error: unknown, code: C): error is ZooKeeperErrorOf<C>;
    static is(error: unknown): error is AnyZooKeeperError;
    static [Symbol.hasInstance](value: unknown): boolean;
}

export type ZooKeeperErrorCode = keyof ErrorsByCode | RecipeErrorCode | `UNKNOWN_${number}`;

export type ZooKeeperErrorOf<C extends ZooKeeperErrorCode> = C extends keyof ErrorsByCode ? ErrorsByCode[C] & {
    readonly code: C;
} : ZooKeeperError & {
    readonly code: C;
};

export declare function abortError(reason: unknown, context: ErrorContext): OperationTimeoutError | AbortedError;

// four-letter-word.d.ts

export interface FourLetterWordOptions {
    readonly transport?: Transport | undefined;
    readonly timeoutMs?: number | undefined;
    readonly signal?: AbortSignal | undefined;
}

// instrumentation.d.ts

export interface Instrumentation {
    request?(info: RequestInfo): RequestEndCallback | void;
    state?(change: StateChange): void;
    attempt?(info: {
        server: string;
        error: Error;
    }): void;
    event?(info: {
        type: string;
        path?: string | undefined;
        watchers: number;
    }): void;
    recipe?(info: {
        recipe: string;
        path: string;
        phase: string;
        waitedMs?: number | undefined;
    }): void;
    stall?(lateMs: number): void;
}

export type RequestEndCallback = (outcome: RequestOutcome) => void;

export interface RequestInfo {
    readonly operation: string;
    readonly path?: string | undefined;
    readonly server?: string | undefined;
}

export interface RequestOutcome {
    readonly error?: ZooKeeperError | undefined;
    readonly requestBytes: number;
    readonly replyBytes: number;
    readonly zxid?: Zxid | undefined;
}

// internal-client.d.ts

export declare const isReserved: (client: Client, path: string) => boolean;

export declare const withoutTimeout: (client: Client) => Client;

// map-concurrent.d.ts

export declare function mapConcurrent<T, R>(items: Iterable<T> | AsyncIterable<T>, work: (item: T) => Promise<R>, ahead?: number): AsyncGenerator<R, void, undefined>;

// node/compressed.d.ts

export interface CompressedOptions {
    readonly maxBytes?: number | undefined;
}

export declare function compressed<T>(inner: Codec<T>, options?: CompressedOptions): Codec<T>;

// node/diagnostics.d.ts

export interface RequestContext extends RequestInfo {
    error?: Error | undefined;
    zxid?: Zxid | undefined;
    replyBytes?: number | undefined;
}

// node/index.d.ts

export declare function connect(options: ConnectOptions): Promise<Client>;

export declare const digestMd5: (options: DigestMd5Options) => DigestMd5Login;

export declare function findServers(servers: string | readonly string[], options?: FindServersOptions): Promise<ServerList>;

export declare function fourLetterWord(server: string | ServerAddress, word: string, options?: FourLetterWordOptions): Promise<string>;

// node/transport.d.ts

export interface NodeTransport extends Transport {
    reload(): Promise<boolean>;
}

export interface NodeTransportOptions {
    readonly tls?: TlsOptions | undefined;
}

export declare function nodeTransport(options?: NodeTransportOptions): NodeTransport;

// on-abort.d.ts

export declare function onAbort(signal: AbortSignal | undefined, action: () => void): () => void;

// otel.d.ts

export interface OpenTelemetryOptions {
    readonly tracer?: Tracer | undefined;
    readonly meter?: Meter | undefined;
    readonly withoutPaths?: boolean | undefined;
}

export declare function openTelemetry(options?: OpenTelemetryOptions): Instrumentation;

// platform.d.ts

export interface Platform {
    readonly clock: Clock;
    readonly random: Random;
    readonly resolveSrv?: ((name: string) => Promise<readonly {
        readonly host: string;
        readonly port: number;
    }[]>) | undefined;
}

export interface ServerAddress {
    readonly scheme: 'tcp' | 'tls' | 'ws' | 'wss';
    readonly host: string;
    readonly port: number;
    readonly url?: string | undefined;
}

export interface Transport {
    readonly schemes?: readonly string[] | undefined;
    open(server: ServerAddress, signal: AbortSignal): Promise<Connection>;
    probe?(server: ServerAddress, signal: AbortSignal): Promise<'rw' | 'ro' | 'unknown'>;
}

// retry.d.ts

export declare function backoff(client: Pick<Client, 'platform' | 'states'>, tries: number, { signal, timeoutMs }?: Pick<CallOptions, 'signal' | 'timeoutMs'>): Promise<void>;

// sasl.d.ts

export type DigestMd5Login = (server: ServerAddress) => SaslMechanism;

export interface DigestMd5Options {
    readonly username: string;
    readonly password: string;
    readonly service?: string | undefined;
    readonly host?: string | undefined;
    readonly realm?: string | undefined;
}

export declare const digestMd5With: (random: Pick<Random, 'bytes'>) => ((options: DigestMd5Options) => DigestMd5Login);

// servers/connect-string.d.ts

export interface ServerList {
    readonly servers: readonly ServerAddress[];
    readonly chroot: string;
}

export declare function parseServers(servers: string | readonly string[], chroot?: string): ServerList;

// servers/server-address.d.ts

export declare function addressKey(server: ServerAddress): string;

// servers/srv.d.ts

export interface FindServersOptions {
    readonly chroot?: string | undefined;
    readonly signal?: AbortSignal | undefined;
}

// session/observe.d.ts

export declare function callObserver<T>(call: () => T): T | undefined;

// sync-result.d.ts

export declare function syncResult<T>(what: string, result: T): T;

// tree-types.d.ts

export interface RecursiveDeleteOptions extends TreeOptions {
    readonly recursive: true;
    readonly missingOk?: boolean | undefined;
    readonly batchSize?: number | undefined;
    readonly includeRoot?: boolean | undefined;
    readonly onFound?: ((znodes: number) => void) | undefined;
    readonly onDeleted?: ((znodes: number) => void) | undefined;
}

export interface TreeOptions extends CallOptions {
    readonly requestTimeoutMs?: number | undefined;
    readonly onUnreadable?: ((path: string) => void) | undefined;
}

export interface Visit {
    readonly path: string;
    readonly stat: Stat | undefined;
    readonly children: readonly string[];
    readonly depth: number;
    readonly isLast: boolean;
}

export interface WalkOptions extends TreeOptions {
    readonly maxDepth?: number | undefined;
    readonly filter?: ((path: string) => boolean) | undefined;
    readonly stats?: boolean | undefined;
}

// types.d.ts

export interface ACL {
    readonly perms: number;
    readonly scheme: string;
    readonly id: string;
}

export interface AuthInfo {
    readonly scheme: string;
    readonly auth: Bytes | string;
}

export type Bytes = Uint8Array;

export interface CallOptions {
    readonly signal?: AbortSignal | undefined;
    readonly timeoutMs?: number | undefined;
    readonly retry?: RetryPolicy | RetryFunction | false | undefined;
    readonly waitForReadWrite?: boolean | undefined;
}

export interface Codec<T> {
    encode(value: T): Bytes;
    decode(data: Bytes): T;
}

export type ConnectionState = 'connecting' | 'connected' | 'connectedReadOnly' | 'suspended' | 'expired' | 'authFailed' | 'closed';

export type CreateMode = 'persistent' | 'ephemeral' | 'persistentSequential' | 'ephemeralSequential' | 'container' | TtlMode;

export type CreateOptions = ModeOptions & NewNodeOptions;

export interface CreateResult extends Ordered {
    readonly path: string;
    readonly stat: Stat;
}

export type Data = Bytes | string | null;

export interface DeleteOptions extends CallOptions {
    readonly version?: number | undefined;
    readonly guaranteed?: boolean | undefined;
    readonly idempotent?: boolean | undefined;
    readonly missingOk?: boolean | undefined;
    readonly recursive?: false | undefined;
}

export interface MissingNode {
    readonly path: string;
    readonly data?: Data | undefined;
    readonly mode?: 'container' | 'persistent' | undefined;
    readonly acl?: readonly ACL[] | undefined;
}

export type ModeOptions = {
    readonly mode?: Exclude<CreateMode, TtlMode> | undefined;
    readonly ttlMs?: undefined;
} | {
    readonly mode: TtlMode;
    readonly ttlMs: number;
};

export type NamedNodeOptions = ({
    readonly mode?: 'persistent' | 'ephemeral' | 'container' | undefined;
    readonly ttlMs?: undefined;
} | {
    readonly mode: 'persistentWithTtl';
    readonly ttlMs: number;
}) & Omit<NewNodeOptions, 'data' | 'protected'>;

export interface NewNodeOptions extends CallOptions {
    readonly data?: Data | undefined;
    readonly acl?: readonly ACL[] | undefined;
    readonly parents?: boolean | 'persistent' | undefined;
    readonly protected?: boolean | ((uuid: string) => string) | undefined;
    readonly idempotent?: boolean | undefined;
}

export interface NodeEvent extends Ordered {
    readonly type: NodeEventType;
    readonly path: string;
    readonly zxid?: Zxid | undefined;
}

export type NodeEventType = 'nodeCreated' | 'nodeDeleted' | 'nodeDataChanged' | 'nodeChildrenChanged';

export interface OneShotWatch extends Ordered, AsyncDisposable {
    readonly data?: OwnBytes | undefined;
    readonly children?: readonly string[] | undefined;
    readonly stat?: Stat | undefined;
    readonly fired: Promise<NodeEvent>;
    close(): Promise<void>;
}

export interface OneShotWatches {
    readonly data: OneShotWatch & {
        readonly data: OwnBytes;
        readonly isNull: boolean;
        readonly stat: Stat;
    };
    readonly children: OneShotWatch & {
        readonly children: readonly string[];
        readonly stat: Stat;
    };
    readonly exists: OneShotWatch & {
        readonly stat: Stat | undefined;
    };
}

export interface Ordered {
    readonly order: number;
}

export type OwnBytes = Uint8Array<ArrayBuffer>;

export interface ReadOp {
    readonly op: 'getData' | 'getChildren';
    readonly path: string;
}

export type ReadResult<O> = O extends {
    op: 'getData';
} ? {
    data: OwnBytes;
    stat: Stat;
} : {
    children: string[];
};

export interface ReconfigChange {
    readonly joining?: string | undefined;
    readonly leaving?: string | undefined;
    readonly members?: string | undefined;
    readonly version?: bigint | undefined;
}

export interface ResyncEvent extends Ordered {
    readonly type: 'resync';
    readonly reason: 'reconnected' | 'newSession' | 'overflow';
}

export type RetryFunction = (error: ZooKeeperError, attempt: number) => number | false;

export interface RetryPolicy {
    readonly baseMs?: number | undefined;
    readonly factor?: number | undefined;
    readonly capMs?: number | undefined;
    readonly maxAttempts?: number | undefined;
    readonly maxElapsedMs?: number | undefined;
}

export interface SessionCredentials {
    readonly id: bigint;
    readonly password: Bytes;
}

export interface SetDataOptions extends CallOptions {
    readonly version?: number | undefined;
    readonly idempotent?: boolean | undefined;
    readonly createIfMissing?: boolean | undefined;
}

export interface Stat {
    readonly czxid: Zxid;
    readonly mzxid: Zxid;
    readonly pzxid: Zxid;
    readonly ctime: number;
    readonly mtime: number;
    readonly version: number;
    readonly cversion: number;
    readonly aversion: number;
    readonly ephemeralOwner: bigint;
    readonly dataLength: number;
    readonly numChildren: number;
}

export interface StateChange extends Ordered {
    readonly state: ConnectionState;
    readonly previous: ConnectionState;
    readonly server?: string | undefined;
    readonly cause?: Error | undefined;
    readonly sessionGeneration: number;
}

export type TtlMode = 'persistentWithTtl' | 'persistentSequentialWithTtl';

export type ValueOptions = ModeOptions & Omit<NewNodeOptions, 'data'>;

export type WatchKind = keyof OneShotWatches;

export interface WatchOptions extends CallOptions {
    readonly mode?: 'persistent' | 'persistentRecursive' | undefined;
    readonly buffer?: number | undefined;
}

export type WatchedEvent = NodeEvent | ResyncEvent;

export interface Watcher extends AsyncIterable<WatchedEvent>, AsyncDisposable {
    readonly path: string;
    close(): Promise<void>;
}

export type WriteOp = ({
    readonly op: 'create';
    readonly path: string;
    readonly data?: Data | undefined;
    readonly acl?: readonly ACL[] | undefined;
} & ModeOptions) | {
    readonly op: 'delete' | 'check';
    readonly path: string;
    readonly version?: number | undefined;
} | {
    readonly op: 'setData';
    readonly path: string;
    readonly data: Data;
    readonly version?: number | undefined;
};

export type WriteResult<O> = O extends {
    op: 'create';
} ? {
    path: string;
    stat?: Stat | undefined;
} : O extends {
    op: 'setData';
} ? Stat : undefined;

export type Zxid = bigint & {
    readonly [zxidBrand]: 'Zxid';
};

declare const zxidBrand: unique symbol;

// web/index.d.ts

export declare function connect(options: Omit<ConnectOptions, 'batchReads'>): Promise<Client>;

export declare const digestMd5: (options: DigestMd5Options) => DigestMd5Login;
