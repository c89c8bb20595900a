// @zabra/recipes
//   Abortable
//   AcquireOptions
//   AmbiguousResultError
//   AtomicValue
//   AtomicValueOptions
//   Barrier
//   BarrierHandle
//   BarrierOptions
//   BarrierWaitOptions
//   CacheEvent
//   Configuration
//   ConfigurationOptions
//   ConfigurationSetOptions
//   ConfigurationValue
//   Counter
//   CounterOptions
//   DoubleBarrier
//   ElectionOptions
//   ElectionParticipant
//   Entry
//   Group
//   GroupChange
//   GroupOptions
//   Handle
//   JoinOptions
//   LeadOptions
//   Leader
//   LeaderElection
//   Lease
//   LeaseHandle
//   LeaseOptions
//   LockHandle
//   LockSide
//   LockTimeoutError
//   LostError
//   LostReason
//   MemberIdConflictError
//   Membership
//   Message
//   Mutex
//   MutexOptions
//   Naming
//   NodeChange
//   NodeConflictError
//   Participant
//   Party
//   PartyMembership
//   PartyOptions
//   PermitHolder
//   PermitOptions
//   PermitsConflictError
//   PersistentNode
//   PersistentNodeOptions
//   PutOptions
//   Queue
//   QueueFullError
//   QueueOptions
//   ReadWriteLock
//   ReadWriteParticipant
//   ReceiveOptions
//   RecipeOptions
//   ReleaseOptions
//   Semaphore
//   SemaphoreOptions
//   TreeCache
//   TreeCacheOptions
//   TreeTooLargeError
//   UniqueIds
//   UniqueIdsOptions
//   Versioned
//   WaitOptions
//   bigEndian
//   curatorItems
//   decimal
//   settledChildren
//   watchChildren
//   watchData

// @zabra/recipes/multi-lock
//   MultiLock
//   MultiLockHandle

// @zabra/recipes/name-service
//   NameService
//   RegisterOptions
//   Registration
//   ResolveOptions

// @zabra/recipes/partitioner
//   HandOverError
//   PartitionState
//   Partitioner
//   PartitionerOptions
//   Share

// @zabra/recipes/revocable
//   RevocableLockHandle
//   RevocableLockSide
//   RevocableMutex
//   RevocableReadWriteLock
//   RevokeOptions
//   RevokeOutcome
//   RevokeRequest
//   revoke

// @zabra/recipes/service-discovery
//   DownPolicy
//   Instance
//   InstanceIdConflictError
//   NewInstance
//   PayloadCodec
//   ProviderOptions
//   ServiceDiscovery
//   ServiceDiscoveryOptions
//   ServiceProvider
//   ServiceRegisterOptions
//   ServiceRegistration
//   ServiceType
//   Strategy
//   UriSpec
//   strategies
//   uriOf
//   uriSpec

// @zabra/recipes/two-phase-commit
//   Decision
//   ParticipantHandlers
//   TransactionRequest
//   TwoPhaseCommit
//   Vote

// atomic-value/atomic-value.d.ts

export declare class AtomicValue<T> {
    #private;
    readonly path: string;
    constructor(client: Client, path: string, options: AtomicValueOptions<T>);
    get(options?: WaitOptions): Promise<Versioned<T>>;
    compareAndSet(expected: {
        readonly stat: Stat;
    }, value: T, options?: WaitOptions): Promise<boolean>;
    update(change: (current: T) => T, options?: WaitOptions): Promise<T>;
    set(value: T, options?: WaitOptions): Promise<T>;
    updates(options?: Abortable): AsyncGenerator<T, void, undefined>;
}

export interface AtomicValueOptions<T> {
    readonly codec: Codec<T>;
    readonly initial: T;
    readonly mode?: 'exact' | 'fast' | undefined;
}

export declare class Counter {
    #private;
    constructor(client: Client, path: string, options?: CounterOptions);
    get(options?: WaitOptions): Promise<bigint>;
    add(amount?: bigint | number, options?: WaitOptions): Promise<bigint>;
    updates(options?: Abortable): AsyncGenerator<bigint, void, undefined>;
}

export interface CounterOptions {
    readonly format?: 'decimal' | 4 | 8 | undefined;
    readonly mode?: 'exact' | 'fast' | undefined;
}

export interface Versioned<T> {
    readonly value: T;
    readonly stat: Stat;
}

// atomic-value/decide.d.ts

export declare function bigEndian(size: 4 | 8): Codec<bigint>;

export declare const decimal: Codec<bigint>;

// atomic-value/unique-ids.d.ts

export declare class UniqueIds {
    #private;
    constructor(client: Client, path: string, options?: UniqueIdsOptions);
    next(options?: WaitOptions): Promise<bigint>;
}

export interface UniqueIdsOptions extends Pick<CounterOptions, 'format'> {
    readonly blockSize?: number | undefined;
}

// barrier/barrier.d.ts

export declare class Barrier {
    #private;
    readonly path: string;
    constructor(client: Client, path: string, options?: BarrierOptions);
    set(options?: WaitOptions): Promise<void>;
    remove(options?: WaitOptions): Promise<void>;
    wait(options?: BarrierWaitOptions): Promise<void>;
    waitForPresence(options?: WaitOptions): Promise<void>;
}

export interface BarrierOptions {
    readonly acl?: readonly ACL[] | undefined;
    readonly parents?: 'container' | 'persistent' | undefined;
    readonly data?: Data | undefined;
}

export interface BarrierWaitOptions extends WaitOptions {
    readonly generation?: boolean | undefined;
}

// configuration/configuration.d.ts

export declare class Configuration<T> {
    #private;
    readonly path: string;
    constructor(client: Client, path: string, options: ConfigurationOptions<T>);
    get(options?: WaitOptions): Promise<ConfigurationValue<T>>;
    set(value: T, options?: ConfigurationSetOptions): Promise<void>;
    update(change: (current: T) => T, options?: WaitOptions): Promise<T>;
    updates(options?: Abortable): AsyncGenerator<ConfigurationValue<T>, void, undefined>;
}

export interface ConfigurationOptions<T> {
    readonly codec: Codec<T>;
    readonly defaults?: T | undefined;
    readonly jitterMs?: number | undefined;
    readonly onInvalid?: ((error: CodecError, stat: Stat) => void) | undefined;
}

export interface ConfigurationSetOptions extends WaitOptions {
    readonly version?: number | undefined;
}

export interface ConfigurationValue<T> {
    readonly value: T;
    readonly version: number;
    readonly mzxid: bigint;
}

// double-barrier/double-barrier.d.ts

export interface BarrierHandle extends Handle {
    readonly round: number;
    release(options?: Omit<WaitOptions, 'onExpiry'>): Promise<void>;
}

export declare class DoubleBarrier {
    #private;
    readonly path: string;
    constructor(client: Client, path: string, options: {
        readonly members: number;
    });
    enter(options?: WaitOptions): Promise<BarrierHandle>;
}

// group/decide.d.ts

export interface Difference {
    readonly joined: readonly string[];
    readonly left: readonly string[];
    readonly changed: readonly string[];
}

// group/group.d.ts

export declare class Group<T = Bytes> implements AsyncDisposable {
    #private;
    readonly path: string;
    constructor(client: Client, path: string, options?: GroupOptions<T>);
    join(id: string, value: T, options?: JoinOptions): Promise<Membership<T>>;
    members(options?: CallOptions): Promise<ReadonlyMap<string, T>>;
    changes(options?: Abortable): AsyncGenerator<GroupChange<T>, void, undefined>;
    close(): Promise<void>;
    [Symbol.asyncDispose](): Promise<void>;
}

export interface GroupChange<T> extends Difference {
    readonly members: ReadonlyMap<string, T>;
}

export interface GroupOptions<T> {
    readonly codec?: Codec<T> | undefined;
    readonly settleMs?: number | undefined;
}

export interface JoinOptions extends WaitOptions {
    readonly onConflict?: 'fail' | 'wait' | undefined;
}

export declare class MemberIdConflictError extends NodeConflictError {
    static readonly tag = "MemberIdConflictError";
}

export interface Membership<T> extends KeptHandle {
    readonly id: string;
    update(value: T): Promise<void>;
    release(): Promise<void>;
}

// group/party.d.ts

export declare class Party {
    #private;
    readonly path: string;
    constructor(client: Client, path: string, options?: PartyOptions);
    join(identifier: string, options?: WaitOptions): Promise<PartyMembership>;
    members(options?: CallOptions): Promise<string[]>;
}

export interface PartyMembership extends KeptHandle {
    readonly identifier: string;
}

export interface PartyOptions {
    readonly layout?: 'party' | 'shallow' | undefined;
}

// handles/lock-timeout.d.ts

export declare class LockTimeoutError extends OperationTimeoutError {
    static readonly tag = "LockTimeoutError";
    readonly holders: readonly Participant[];
    constructor(message: string, holders: readonly Participant[], context: ConstructorParameters<typeof OperationTimeoutError>[2], wireCode?: number);
}

export interface Participant {
    readonly path: string;
    readonly data: Bytes;
    readonly owner: bigint;
}

// handles/lost.d.ts

export declare class LostError extends ZooKeeperError {
    static readonly tag = "LostError";
    readonly reason: LostReason;
    readonly token: bigint;
    constructor(message: string, reason: LostReason, token: bigint, path: string, cause?: unknown);
}

export type LostReason = 'suspended' | 'leasePassed' | 'expired' | 'nodeDeleted' | 'revoked' | 'released' | 'closed';

// handles/types.d.ts

export interface Abortable {
    readonly signal?: AbortSignal | undefined;
}

export interface AcquireOptions extends WaitOptions {
    readonly owner?: object | undefined;
}

export interface Handle extends AsyncDisposable {
    release(): Promise<void>;
}

export interface KeptHandle extends Handle {
    readonly signal: AbortSignal;
}

export interface LockHandle extends Handle {
    readonly token: bigint;
    readonly path: string;
    readonly signal: AbortSignal;
    assertHeld(): void;
    guard<const T extends readonly WriteOp[]>(operations: T, options?: CallOptions): Promise<{
        [K in keyof T]: WriteResult<T[K]>;
    }>;
    release(options?: ReleaseOptions): Promise<void>;
}

export type Naming = 'recipe' | 'curator' | 'kazoo';

export interface RecipeOptions {
    readonly acl?: readonly ACL[] | undefined;
    readonly errorPolicy?: ErrorPolicy | undefined;
    readonly parents?: 'container' | 'persistent' | undefined;
    readonly naming?: Naming | undefined;
    readonly data?: Data | undefined;
}

export interface ReleaseOptions {
    readonly background?: boolean | undefined;
}

export interface WaitOptions extends Abortable {
    readonly timeoutMs?: number | undefined;
    readonly onExpiry?: 'retry' | 'fail' | undefined;
}

// leader-election/announcement.d.ts

export interface Leader {
    readonly id: string;
    readonly token: bigint;
}

// leader-election/leader-election.d.ts

export interface ElectionOptions extends Omit<RecipeOptions, 'data'> {
    readonly id?: string | undefined;
    readonly announce?: boolean | undefined;
}

export interface ElectionParticipant extends Omit<Participant, 'data'> {
    readonly id: string;
}

export interface LeadOptions extends Abortable {
    readonly requeue?: boolean | undefined;
}

export declare class LeaderElection implements AsyncDisposable {
    #private;
    readonly client: Client;
    readonly path: string;
    readonly id: string;
    constructor(client: Client, path: string, options?: ElectionOptions);
    acquire(options?: WaitOptions): Promise<LockHandle>;
    leadership(options?: Abortable): AsyncGenerator<LockHandle, void, undefined>;
    lead(body: (leadership: LockHandle) => Promise<void>, options?: LeadOptions): Promise<void>;
    observe(options?: Abortable): AsyncGenerator<Leader | undefined>;
    participants(options?: CallOptions): Promise<ElectionParticipant[]>;
    close(): Promise<void>;
    [Symbol.asyncDispose](): Promise<void>;
}

// lease/lease.d.ts

export declare class Lease {
    #private;
    readonly path: string;
    constructor(client: Client, path: string, options: LeaseOptions);
    acquire(options?: WaitOptions): Promise<LeaseHandle>;
    tryAcquire(options?: WaitOptions): Promise<LeaseHandle | undefined>;
    run<T>(body: (held: LeaseHandle) => Promise<T>, options?: WaitOptions): Promise<T>;
}

export interface LeaseHandle extends Handle {
    readonly token: bigint;
    readonly path: string;
    readonly signal: AbortSignal;
    assertHeld(): void;
    renew(): Promise<void>;
    release(): Promise<void>;
}

export interface LeaseOptions extends Pick<RecipeOptions, 'acl' | 'parents'> {
    readonly holder: string;
    readonly durationMs: number;
}

// multi-lock/multi-lock.d.ts

export declare class MultiLock {
    #private;
    constructor(locks: readonly Mutex[]);
    acquire(options?: AcquireOptions): Promise<MultiLockHandle>;
    tryAcquire(options?: AcquireOptions): Promise<MultiLockHandle | undefined>;
    run<T>(body: (held: MultiLockHandle) => Promise<T>, options?: AcquireOptions): Promise<T>;
}

export interface MultiLockHandle extends LockHandle {
    readonly tokens: readonly bigint[];
}

// mutex/mutex.d.ts

export declare class Mutex {
    #private;
    readonly client: Client;
    readonly path: string;
    readonly data: Bytes;
    constructor(client: Client, path: string, options?: MutexOptions);
    acquire(options?: AcquireOptions): Promise<LockHandle>;
    tryAcquire(options?: AcquireOptions): Promise<LockHandle | undefined>;
    run<T>(body: (held: LockHandle) => Promise<T>, options?: AcquireOptions): Promise<T>;
    participants(options?: CallOptions): Promise<Participant[]>;
}

export interface MutexOptions extends RecipeOptions {
    readonly reentrant?: boolean | undefined;
    readonly localQueue?: boolean | undefined;
}

// name-service/name-service.d.ts

export declare class NameService<T> {
    #private;
    readonly base: string;
    constructor(client: Client, base: string, codec: Codec<T>);
    register(name: string, value: T, options?: RegisterOptions): Promise<Registration<T>>;
    resolve(name: string, options?: ResolveOptions): Promise<T | undefined>;
    names(options?: CallOptions): Promise<string[]>;
    rename(from: string, to: string): Promise<void>;
}

export interface RegisterOptions extends WaitOptions {
    readonly ephemeral?: boolean | undefined;
}

export interface Registration<T> extends KeptHandle {
    readonly signal: AbortSignal;
    update(value: T): Promise<void>;
    release(): Promise<void>;
}

export interface ResolveOptions extends CallOptions {
    readonly fresh?: boolean | undefined;
}

// partitioner/decide.d.ts

export type PartitionState = 'idle' | 'releasing' | 'allocating' | 'acquired';

// partitioner/partitioner.d.ts

export declare class Partitioner {
    #private;
    readonly path: string;
    readonly id: string;
    readonly items: readonly string[];
    constructor(client: Client, path: string, items: readonly string[], options?: PartitionerOptions);
    get state(): PartitionState;
    get owned(): readonly string[];
    shares(options?: Abortable): AsyncGenerator<Share, void, undefined>;
    run(body: (share: Share) => Promise<void>, options?: Abortable): Promise<void>;
}

export interface PartitionerOptions extends Omit<RecipeOptions, 'naming' | 'data'> {
    readonly id?: string | undefined;
    readonly settleMs?: number | undefined;
    readonly graceMs?: number | undefined;
}

// partitioner/shares.d.ts

export declare class HandOverError extends ZooKeeperError {
    static readonly tag = "HandOverError";
}

export interface Share extends Handle {
    readonly item: string;
    readonly lock: LockHandle;
    readonly signal: AbortSignal;
}

// persistent-node/persistent-node.d.ts

export declare class NodeConflictError extends ZooKeeperError {
    static readonly tag: string;
    readonly owner: bigint;
    constructor(path: string, owner: bigint);
}

export declare class PersistentNode implements AsyncDisposable {
    #private;
    readonly ready: Promise<string>;
    constructor(client: Client, path: string, data: Data, options?: PersistentNodeOptions);
    get signal(): AbortSignal;
    get path(): string;
    setData(data: Data): Promise<void>;
    close(): Promise<void>;
    [Symbol.asyncDispose](): Promise<void>;
}

export interface PersistentNodeOptions {
    readonly mode?: 'ephemeral' | 'persistent' | 'ephemeralSequential' | 'persistentSequential' | undefined;
    readonly acl?: readonly ACL[] | undefined;
    readonly parents?: boolean | 'persistent' | undefined;
    readonly onConflict?: 'fail' | 'wait' | undefined;
    readonly leaveBehind?: boolean | undefined;
}

// queue/curator-items.d.ts

export declare function curatorItems<T>(codec: Codec<T>): Codec<readonly T[]>;

// queue/message.d.ts

export declare class Message<T> implements AsyncDisposable {
    #private;
    readonly value: T;
    readonly token: bigint;
    readonly deliveries: number;
    readonly settled: Promise<void>;
    get id(): string;
    get isAcknowledged(): boolean;
    get signal(): AbortSignal;
    ack(): Promise<void>;
    nack(options?: {
        readonly delayMs?: number | undefined;
    }): Promise<void>;
    [Symbol.asyncDispose](): Promise<void>;
}

// queue/names.d.ts

export type QueueNaming = 'recipe' | 'kazoo' | 'kazooPlain' | 'curator';

// queue/producer.d.ts

export interface PutOptions extends WaitOptions {
    readonly priority?: number | undefined;
    readonly delayMs?: number | undefined;
    readonly id?: string | undefined;
    readonly whenFull?: 'wait' | 'fail' | undefined;
}

export declare class QueueFullError extends ZooKeeperError {
    static readonly tag = "QueueFullError";
}

// queue/queue.d.ts

export declare class Queue<T> {
    #private;
    readonly path: string;
    constructor(client: Client, path: string, options: QueueOptions<T>);
    put(value: T, options?: PutOptions): Promise<string | undefined>;
    putAll(values: readonly T[], options?: PutOptions): Promise<string[] | undefined>;
    take(options?: WaitOptions): Promise<T>;
    takeById(id: string, options?: WaitOptions): Promise<T | undefined>;
    receive(options?: ReceiveOptions): AsyncGenerator<Message<T>, void, undefined>;
    peek(options?: WaitOptions): Promise<T | undefined>;
    size(options?: CallOptions): Promise<number>;
    deadLetters(options?: CallOptions): Promise<{
        readonly name: string;
        readonly data: Uint8Array;
    }[]>;
}

export interface QueueOptions<T> {
    readonly codec: Codec<T>;
    readonly maxItems?: number | undefined;
    readonly bound?: 'soft' | 'hard' | undefined;
    readonly deadLetterAfter?: number | undefined;
    readonly naming?: QueueNaming | undefined;
}

export interface ReceiveOptions extends Abortable {
    readonly concurrency?: number | undefined;
}

// read-write-lock/read-write-lock.d.ts

export interface LockSide {
    acquire(options?: WaitOptions): Promise<LockHandle>;
    tryAcquire(options?: WaitOptions): Promise<LockHandle | undefined>;
    run<T>(body: (held: LockHandle) => Promise<T>, options?: WaitOptions): Promise<T>;
}

type Mode = 'read' | 'write';

export declare class ReadWriteLock {
    #private;
    readonly client: Client;
    readonly path: string;
    readonly read: LockSide;
    readonly write: LockSide;
    constructor(client: Client, path: string, options?: RecipeOptions);
    downgrade(write: LockHandle): Promise<LockHandle>;
    tryUpgrade(read: LockHandle): Promise<LockHandle | undefined>;
    participants(options?: CallOptions): Promise<ReadWriteParticipant[]>;
}

export interface ReadWriteParticipant extends Participant {
    readonly mode: Mode;
}

// revocable/request.d.ts

export interface RevokeRequest {
    readonly by?: string | undefined;
    readonly reason?: string | undefined;
    readonly graceMs?: number | undefined;
}

// revocable/revocable-mutex.d.ts

export interface RevocableLockHandle extends LockHandle {
    readonly revokeRequested: Promise<RevokeRequest>;
}

export declare class RevocableMutex extends Mutex {
    #private;
    constructor(client: Client, path: string, options?: MutexOptions);
    acquire(options?: AcquireOptions): Promise<RevocableLockHandle>;
    tryAcquire(options?: AcquireOptions): Promise<RevocableLockHandle | undefined>;
    run<T>(body: (held: RevocableLockHandle) => Promise<T>, options?: AcquireOptions): Promise<T>;
}

// revocable/revocable-read-write-lock.d.ts

export interface RevocableLockSide extends LockSide {
    acquire(options?: WaitOptions): Promise<RevocableLockHandle>;
    tryAcquire(options?: WaitOptions): Promise<RevocableLockHandle | undefined>;
    run<T>(body: (held: RevocableLockHandle) => Promise<T>, options?: WaitOptions): Promise<T>;
}

export declare class RevocableReadWriteLock extends ReadWriteLock {
    #private;
    readonly read: RevocableLockSide;
    readonly write: RevocableLockSide;
    constructor(client: Client, path: string, options?: RecipeOptions);
    downgrade(write: LockHandle): Promise<RevocableLockHandle>;
    tryUpgrade(read: LockHandle): Promise<RevocableLockHandle | undefined>;
}

// revocable/revoke.d.ts

export interface RevokeOptions extends Abortable, RevokeRequest {
    readonly force?: boolean | undefined;
    readonly naming?: Naming | undefined;
}

export type RevokeOutcome = 'released' | 'forced' | 'refused';

export declare function revoke(client: Client, lockPath: string, options?: RevokeOptions): Promise<RevokeOutcome>;

// semaphore/permits.d.ts

export declare class PermitsConflictError extends ZooKeeperError {
    static readonly tag = "PermitsConflictError";
    readonly expected: number;
    readonly actual: number;
    constructor(path: string, expected: number, actual: number);
}

// semaphore/semaphore.d.ts

export interface PermitHolder extends Participant {
    readonly permits: number;
}

export interface PermitOptions extends WaitOptions {
    readonly permits?: number | undefined;
}

export declare class Semaphore {
    #private;
    readonly client: Client;
    readonly path: string;
    constructor(client: Client, path: string, options: SemaphoreOptions);
    acquire(options?: PermitOptions): Promise<LockHandle>;
    tryAcquire(options?: PermitOptions): Promise<LockHandle | undefined>;
    holders(options?: CallOptions): Promise<PermitHolder[]>;
    run<T>(body: (held: LockHandle) => Promise<T>, options?: PermitOptions): Promise<T>;
    setPermits(permits: number): Promise<void>;
}

export interface SemaphoreOptions extends RecipeOptions {
    readonly permits: number;
}

// service-discovery/down.d.ts

export interface DownPolicy {
    readonly errors?: number | undefined;
    readonly withinMs?: number | undefined;
}

// service-discovery/instance.d.ts

export interface Instance<T = unknown> {
    readonly name: string;
    readonly id: string;
    readonly address?: string | undefined;
    readonly port?: number | undefined;
    readonly sslPort?: number | undefined;
    readonly payload?: T | undefined;
    readonly registrationTimeUTC: number;
    readonly serviceType: ServiceType;
    readonly uriSpec?: UriSpec | undefined;
    readonly enabled: boolean;
}

export type NewInstance<T = unknown> = Pick<Instance<T>, 'name'> & Partial<Omit<Instance<T>, 'name'>>;

export interface PayloadCodec<T> {
    encode(payload: T): unknown;
    decode(json: unknown): T;
}

export type ServiceType = (typeof serviceTypes)[number];

export interface UriSpec {
    readonly parts: readonly {
        readonly value: string;
        readonly variable: boolean;
    }[];
}

export declare const serviceTypes: readonly ['DYNAMIC', 'STATIC', 'PERMANENT', 'DYNAMIC_SEQUENTIAL'];

// service-discovery/provider.d.ts

export interface ProviderOptions<T> {
    readonly strategy?: keyof typeof simpleStrategies | Strategy<T> | undefined;
    readonly down?: DownPolicy | undefined;
    readonly filter?: ((instance: Instance<T>) => boolean) | undefined;
}

export declare class ServiceProvider<T> implements AsyncDisposable {
    #private;
    constructor(client: Client, path: string, codec: Codec<Instance<T>>, options?: ProviderOptions<T>);
    get ready(): Promise<void>;
    get stale(): boolean;
    all(): readonly Instance<T>[];
    changes(options?: Abortable): AsyncGenerator<readonly Instance<T>[], void, undefined>;
    next(): Instance<T> | undefined;
    noteError(id: string): void;
    close(): Promise<void>;
    [Symbol.asyncDispose](): Promise<void>;
}

// service-discovery/service-discovery.d.ts

export declare class InstanceIdConflictError extends NodeConflictError {
    static readonly tag = "InstanceIdConflictError";
}

export declare class ServiceDiscovery<T = unknown> implements AsyncDisposable {
    #private;
    readonly path: string;
    constructor(client: Client, path: string, options?: ServiceDiscoveryOptions<T>);
    register(instance: NewInstance<T>, options?: ServiceRegisterOptions): Promise<ServiceRegistration<T>>;
    names(options?: CallOptions): Promise<string[]>;
    instances(name: string, options?: CallOptions): Promise<Instance<T>[]>;
    provider(name: string, options?: ProviderOptions<T> & WaitOptions): Promise<ServiceProvider<T>>;
    close(): Promise<void>;
    [Symbol.asyncDispose](): Promise<void>;
}

export interface ServiceDiscoveryOptions<T> {
    readonly payload?: PayloadCodec<T> | undefined;
}

export interface ServiceRegisterOptions extends WaitOptions {
    readonly onConflict?: 'fail' | 'wait' | undefined;
}

export interface ServiceRegistration<T> extends KeptHandle {
    readonly instance: Instance<T>;
    update(changes: Partial<Omit<Instance<T>, 'name' | 'id' | 'serviceType'>>): Promise<void>;
    release(): Promise<void>;
}

// service-discovery/strategies.d.ts

export type Strategy<T = unknown> = (instances: readonly Instance<T>[], draw: (end: number) => number) => Instance<T> | undefined;

declare const random: <T>() => Strategy<T>;

declare function roundRobin<T>(): Strategy<T>;

export declare const simpleStrategies: {
    readonly roundRobin: typeof roundRobin;
    readonly random: typeof random;
    readonly sticky: typeof sticky;
};

declare function sticky<T>(inner?: Strategy<T>): Strategy<T>;

export declare const strategies: {
    readonly roundRobin: typeof roundRobin;
    readonly random: typeof random;
    readonly sticky: typeof sticky;
    readonly weighted: typeof weighted;
};

declare function weighted<T>(weightOf: (instance: Instance<T>) => number): Strategy<T>;

// service-discovery/uri-spec.d.ts

export declare function uriOf(instance: Instance, variables?: Readonly<Record<string, string>>): string;

export declare function uriSpec(template: string): UriSpec;

// support/ambiguous-result.d.ts

export declare class AmbiguousResultError extends ZooKeeperError {
    static readonly tag = "AmbiguousResultError";
    readonly value: unknown;
    constructor(message: string, facts: {
        readonly path: string;
        readonly cause?: unknown;
        readonly value?: unknown;
    });
}

// tree-cache/entries.d.ts

export interface Entry<T> {
    readonly value: T;
    readonly stat: Stat;
}

export type NodeChange<T> = {
    readonly type: 'added';
    readonly path: string;
    readonly value: T;
    readonly stat: Stat;
} | {
    readonly type: 'updated';
    readonly path: string;
    readonly value: T;
    readonly stat: Stat;
    readonly old: T;
} | {
    readonly type: 'removed';
    readonly path: string;
    readonly old: T;
};

// tree-cache/tree-cache.d.ts

export type CacheEvent<T> = NodeChange<T> | {
    readonly type: 'initialized' | 'stale' | 'resynced';
} | {
    readonly type: 'unreadable';
    readonly path: string;
    readonly cause: unknown;
};

export declare class TreeCache<T = Bytes> implements AsyncDisposable {
    #private;
    readonly root: string;
    readonly ready: Promise<void>;
    constructor(client: Client, root: string, options?: TreeCacheOptions<T>);
    get stale(): boolean;
    get size(): number;
    get(path: string): Entry<T> | undefined;
    children(path: string): readonly string[] | undefined;
    entries(): IterableIterator<[string, Entry<T>]>;
    events(options?: Abortable): AsyncIterableIterator<CacheEvent<T>>;
    close(): Promise<void>;
    [Symbol.asyncDispose](): Promise<void>;
}

export interface TreeCacheOptions<T> {
    readonly codec?: Codec<T> | undefined;
    readonly data?: boolean | undefined;
    readonly depth?: number | undefined;
    readonly maxNodes?: number | undefined;
    readonly filter?: ((path: string) => boolean) | undefined;
}

export declare class TreeTooLargeError extends UsageError {
    static readonly tag = "TreeTooLargeError";
}

// tree-cache/watchers.d.ts

export declare function settledChildren(client: Client, path: string, settleMs: number, options?: WaitOptions): Promise<readonly string[]>;

export declare function watchChildren(client: Client, path: string, options?: Abortable): AsyncGenerator<readonly string[] | undefined, void, undefined>;

export declare function watchData(client: Client, path: string, options?: Abortable): AsyncGenerator<{
    readonly data: Bytes;
    readonly stat: Stat;
} | undefined, void, undefined>;

// two-phase-commit/coordinate.d.ts

export interface TransactionRequest {
    readonly participants: readonly string[];
    readonly payload: Data;
    readonly deadlineMs: number;
    readonly signal?: AbortSignal | undefined;
}

// two-phase-commit/decide.d.ts

export type Decision = 'committed' | 'aborted';

export type Vote = 'commit' | 'abort';

// two-phase-commit/participate.d.ts

export interface ParticipantHandlers {
    prepare(transaction: {
        readonly id: string;
        readonly payload: Bytes;
    }, signal: AbortSignal): Promise<Vote>;
    commit(transaction: {
        readonly id: string;
    }): Promise<void>;
    abort(transaction: {
        readonly id: string;
    }): Promise<void>;
    onFailed?(error: unknown, transaction: {
        readonly id: string;
    }): void;
}

// two-phase-commit/two-phase-commit.d.ts

export declare class TwoPhaseCommit {
    #private;
    readonly path: string;
    constructor(client: Client, path: string);
    run(request: TransactionRequest): Promise<Decision>;
    join(site: string, handlers: ParticipantHandlers, options?: WaitOptions): Promise<KeptHandle>;
}
