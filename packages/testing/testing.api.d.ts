// @zabra/testing
//   CLIENT_PORT
//   ChildEnsembleOptions
//   ChildServer
//   ChildServerOptions
//   ClockSkew
//   CrashKind
//   DiskConditions
//   DiskFault
//   DiskImage
//   FileImage
//   Host
//   HostState
//   Incarnation
//   LogLine
//   NetworkConditions
//   Prng
//   ProcessState
//   ScheduledEvent
//   ServerEndpoint
//   SimulateOptions
//   SimulatedConnection
//   SimulatedNetwork
//   SimulatedServer
//   SimulatedWorld
//   Simulation
//   Tap
//   TestEnsemble
//   TestEnsembleOptions
//   TestMember
//   TestServer
//   TestServerOptions
//   TraceEvent
//   UnexpectedStop
//   expireSession
//   jumpWallClock
//   setClockRate
//   simulate
//   startEnsemble
//   startServer

// ensemble/child-server.d.ts

export declare class ChildServer implements TestMember {
    #private;
    address: string;
    constructor(options: ChildServerOptions);
    get isRunning(): boolean;
    get role(): Role | undefined;
    get isServing(): boolean;
    start(): Promise<this>;
    kill(): Promise<void>;
    pause(): void;
    resume(): void;
    blockPorts(ports: readonly number[]): void;
    close(): Promise<void>;
    [Symbol.asyncDispose](): Promise<void>;
}

export interface ChildServerOptions {
    readonly process: 'child';
    readonly settings?: GivenServerSettings | undefined;
    readonly data?: string | undefined;
}

// ensemble/expire.d.ts

export declare function expireSession(servers: string, client: Pick<Client, 'session'>): Promise<void>;

// ensemble/start-server.d.ts

export declare function startServer(options: ChildServerOptions): Promise<ChildServer>;
export declare function startServer(options?: TestServerOptions): Promise<TestServer>;

// ensemble/test-ensemble.d.ts

export interface ChildEnsembleOptions extends Omit<ChildServerOptions, 'data'> {
    readonly data?: string | undefined;
}

interface MemberPorts {
    readonly quorum: number;
    readonly election: number;
    readonly client: number;
}

type MemberSettings = Pick<ServerSettings, 'serverId' | 'clientPort' | 'ensemble'>;

export declare class TestEnsemble<M extends TestMember = TestServer> {
    #private;
    readonly members: readonly M[];
    constructor(ports: readonly MemberPorts[], make: (id: number, settings: MemberSettings) => M);
    get connectString(): string;
    member(id: number): M;
    get leader(): number | undefined;
    waitForLeader(except?: number): Promise<number>;
    waitForAll(): Promise<true>;
    partition(...groups: readonly (readonly number[])[]): void;
    heal(): void;
    close(): Promise<void>;
    [Symbol.asyncDispose](): Promise<void>;
}

export interface TestEnsembleOptions extends Omit<TestServerOptions, 'data'> {
    readonly data?: 'memory' | (string & {}) | undefined;
}

export declare function startEnsemble(size: number, options: ChildEnsembleOptions): Promise<TestEnsemble<ChildServer>>;
export declare function startEnsemble(size?: number, options?: TestEnsembleOptions): Promise<TestEnsemble>;

// ensemble/test-member.d.ts

export type Role = Server['role'];

export interface TestMember {
    readonly address: string;
    readonly isRunning: boolean;
    readonly role: Role | undefined;
    readonly isServing: boolean;
    start(): Promise<this>;
    kill(): Promise<void>;
    pause(): void;
    resume(): void;
    close(): Promise<void>;
    blockPorts(ports: readonly number[]): void;
}

// ensemble/test-server.d.ts

export declare class TestServer implements TestMember {
    #private;
    address: string;
    constructor(options: TestServerOptions);
    get server(): Server;
    get isRunning(): boolean;
    get role(): Role | undefined;
    get isServing(): boolean;
    start(): Promise<this>;
    kill(): Promise<void>;
    pause(): void;
    resume(): void;
    blockPorts(ports: readonly number[]): void;
    close(): Promise<void>;
    [Symbol.asyncDispose](): Promise<void>;
}

export interface TestServerOptions {
    readonly process?: 'own' | undefined;
    readonly settings?: GivenServerSettings | undefined;
    readonly data?: 'memory' | (string & {}) | undefined;
    readonly platform?: Partial<Platform> | undefined;
}

// simulation/simulate.d.ts

export interface SimulateOptions {
    readonly seed: number;
    readonly servers?: number | undefined;
    readonly settings?: GivenServerSettings | undefined;
    readonly limitMs?: number | undefined;
}

export declare class Simulation {
    #private;
    readonly world: SimulatedWorld;
    readonly servers: readonly SimulatedServer[];
    constructor({ seed, servers, settings }: SimulateOptions);
    client(options?: Partial<ConnectOptions>): Promise<Client>;
    sleep(ms: number): Promise<void>;
    server(id: number): SimulatedServer;
    crash(target: number | Client, kind?: CrashKind): void;
    pause(target: number | Client): void;
    resume(target: number | Client): void;
    isolate(...group: readonly (number | Client)[]): void;
    heal(): void;
    hostOf(target: number | Client): Host;
}

export declare function simulate<T>(options: SimulateOptions, scenario: (simulation: Simulation) => Promise<T>): Promise<T>;

// simulation/simulated-server.d.ts

export declare const CLIENT_PORT = 2181;

export interface ServerEndpoint {
    readonly name: string;
    readonly host: string;
    readonly port: number;
}

export declare class SimulatedServer {
    #private;
    readonly id: number;
    readonly host: Host;
    readonly stops: UnexpectedStop[];
    repairs: number;
    readonly removedLogs: Uint8Array[];
    server: Server | undefined;
    readonly onReplaceDisk: (() => void)[];
    isSupervised: boolean;
    settings: ServerSettings;
    featureLevel: number | undefined;
    networkFactories: NetworkFactories | undefined;
    onStop: ((stop: UnexpectedStop) => void) | undefined;
    constructor(world: SimulatedWorld, host: Host, id: number, settings: ServerSettings);
    get address(): ServerEndpoint;
    get isUp(): boolean;
    keepFile(path: string, bytes: Uint8Array): void;
    start(): void;
    crash(kind: CrashKind): void;
    replaceDisk({ path, text, ensemble, }: {
        path: string;
        text: string;
        ensemble: EnsembleConfiguration;
    }): void;
    handleError(error: unknown): void;
}

export interface UnexpectedStop {
    readonly server: string;
    readonly at: number;
    readonly during: 'start' | 'service';
    readonly reason: string;
    readonly code: string;
}

// world/clock-skew.d.ts

export interface ClockSkew {
    offsetMs: number;
    rate: number;
    rateSetAtMs: number;
    monotonicAtMs: number;
}

export declare function jumpWallClock(clock: ClockSkew, ms: number): void;

export declare function setClockRate(clock: ClockSkew, nowMs: number, rate: number): void;

// world/connection.d.ts

export type Packet = Uint8Array | 'fin' | 'reset';

export interface PacketCarrier {
    send(from: SimulatedConnection, packet: Packet): void;
    remove(connection: SimulatedConnection): void;
}

export declare class SimulatedConnection implements Connection {
    #private;
    readonly local: Address;
    readonly remote: Address;
    readonly transport = "tcp";
    readonly canReuseBuffers = true;
    readonly owner: ProcessState;
    remoteEnd: SimulatedConnection;
    peer: PeerIdentity | undefined;
    readonly isInitiator: boolean;
    readonly id: number;
    lastArrival: number;
    readonly stalledPackets: Packet[];
    constructor(network: PacketCarrier, owner: ProcessState, local: Address, remote: Address, isInitiator: boolean, id: number);
    get isOpen(): boolean;
    get bufferedBytes(): number;
    setHandler(events: ConnectionHandler): void;
    write(bytes: Uint8Array): boolean;
    pause(): void;
    resume(): void;
    end(): void;
    destroy(cause?: Error): void;
    breakWith(code: string): void;
    abandon(): void;
    acknowledge(bytes: number): void;
    receive(packet: Packet): void;
}

// world/disk-image.d.ts

export type CrashKind = 'kill' | 'power';

export interface DiskConditions {
    callMs: number;
    syncMs: number;
    stallRate: number;
    stallMs: number;
    isFull: boolean;
    failNextSync: boolean;
    reordersSectors: boolean;
}

export type DiskFault = 'lost tails' | 'torn tails' | 'reordered tails' | 'tails with flipped bytes' | 'lost names' | 'writes without space' | 'failed syncs' | 'slow syncs';

export declare class DiskImage {
    #private;
    readonly conditions: DiskConditions;
    readonly prng: Prng;
    readonly faultCounts: Record<DiskFault, number>;
    readonly inFlightWrites: Set<InFlightWrite>;
    onNextDurableWrite: (() => void) | undefined;
    namesVersion: number;
    onRemove: ((path: string, bytes: Uint8Array) => void) | undefined;
    constructor(prng: Prng);
    get paths(): string[];
    file(path: string): FileImage | undefined;
    durable(path: string): FileImage | undefined;
    hasFolder(path: string): boolean;
    list(folder: string): string[];
    makeFolder(path: string): void;
    create(path: string): FileImage;
    rename(from: string, to: string): void;
    remove(path: string): void;
    syncFolder(folder: string): void;
    wipe(): void;
    install(path: string, bytes: Uint8Array): void;
    crash(kind: CrashKind): void;
    notifyDurableWrite(): void;
}

interface InFlightWrite {
    readonly file: FileImage;
    readonly position: number;
    readonly bytes: Uint8Array;
}

// world/file-image.d.ts

export declare class FileImage {
    #private;
    modifiedAt: number;
    durableVersion: number;
    truncations: number;
    firstUnsyncedByte: number;
    get length(): number;
    get bytes(): Uint8Array;
    get durableBytes(): Uint8Array;
    get pending(): number;
    write(position: number, bytes: Uint8Array): void;
    truncate(length: number): void;
    sync(count: number): void;
    dropPending(): void;
    losePower(prng: Prng, wild: boolean): PowerLoss;
}

export type PowerLoss = 'clean' | 'lost' | 'torn' | 'reordered' | 'rotten';

// world/network.d.ts

export interface NetworkConditions {
    delayMs: number;
    jitterMs: number;
    tailRate: number;
    tailMs: number;
    splitRate: number;
    breakOnHealRate: number;
}

interface NetworkWorld extends Scheduler {
    readonly hosts: readonly HostState[];
}

export declare class SimulatedNetwork {
    #private;
    readonly conditions: NetworkConditions;
    tap: Tap | undefined;
    constructor(world: NetworkWorld);
    cut(from: HostState, to: HostState): void;
    isCut(from: HostState, to: HostState): boolean;
    slowLink(from: HostState, to: HostState, ms: number): void;
    heal(): void;
    healLink(a: HostState, b: HostState): void;
    reset(a: HostState, b: HostState): number;
    resolve(name: string, from: HostState): HostState | undefined;
    bind(owner: ProcessState, port: number, accepted: (connection: Connection) => void): number | undefined;
    unbind(owner: ProcessState, port: number): void;
    connect(owner: ProcessState, to: Address, signal: AbortSignal | undefined, peer?: PeerIdentity): Promise<Connection>;
    processEnded(ended: ProcessState, kind: CrashKind): void;
    send(from: SimulatedConnection, packet: Packet): void;
    remove(connection: SimulatedConnection): void;
    delay(from: HostState, to: HostState): number;
}

export type Tap = (from: SimulatedConnection, bytes: Uint8Array) => void;

// world/prng.d.ts

export declare class Prng implements Random {
    #private;
    constructor(seed: number, stream?: number);
    fork(name: string): Prng;
    below(limit: number): number;
    bytes(length: number): Uint8Array;
    float(): number;
    between(low: number, high: number): number;
    integer(low: number, high: number): number;
    chance(probability: number): boolean;
    exponential(mean: number): number;
    pick<T>(items: readonly T[]): T;
    pickWeighted<K extends string>(weights: Readonly<Partial<Record<K, number>>>): K;
    shuffled<T>(items: readonly T[]): T[];
}

// world/process.d.ts

export declare class Host implements HostState {
    #private;
    readonly world: HostWorld;
    readonly name: string;
    readonly address: string;
    readonly disk: DiskImage;
    readonly clockSkew: ClockSkew;
    isPowered: boolean;
    current: Incarnation | undefined;
    isPaused: boolean;
    readonly deferredEvents: ScheduledEvent[];
    startCount: number;
    constructor(world: HostWorld, name: string, address: string, disk: DiskImage);
    start(): Incarnation;
    crash(kind: CrashKind): void;
    pause(): void;
    resume(): void;
}

export interface HostWorld extends Scheduler {
    readonly network: SimulatedNetwork;
    nextPid(): number;
    trace(owner: ProcessState | undefined, event: string, detail: string): void;
    logged(owner: ProcessState, level: LogLevel, facts: object, sentence: string): void;
}

export declare class Incarnation implements ProcessState {
    readonly host: Host;
    readonly pid: number;
    isAlive: boolean;
    readonly pendingConnects: Set<() => void>;
    readonly platform: Platform;
    constructor(host: Host, pid: number);
    schedule(delayMs: number, kind: string, action: () => void): ScheduledEvent;
}

// world/types.d.ts

export interface HostState {
    readonly name: string;
    readonly address: string;
    readonly disk: DiskImage;
    readonly clockSkew: ClockSkew;
    readonly isPowered: boolean;
    readonly isPaused: boolean;
    readonly deferredEvents: ScheduledEvent[];
}

export interface ProcessState {
    readonly host: HostState;
    readonly pid: number;
    readonly isAlive: boolean;
    readonly pendingConnects: Set<() => void>;
    schedule(delayMs: number, kind: string, action: () => void): ScheduledEvent;
}

export interface ScheduledEvent {
    readonly at: number;
    readonly order: number;
    readonly owner: ProcessState | undefined;
    readonly kind: string;
    action: (() => void) | undefined;
}

export interface Scheduler {
    readonly now: number;
    readonly prng: Prng;
    schedule(delayMs: number, owner: ProcessState | undefined, kind: string, action: () => void): ScheduledEvent;
    scheduleAt(time: number, owner: ProcessState | undefined, kind: string, action: () => void): ScheduledEvent;
    afterPromises(owner: ProcessState, action: () => void): void;
    mixIntoHash(value: number): void;
}

// world/world.d.ts

export interface LogLine {
    readonly at: number;
    readonly host: string;
    readonly level: LogLevel;
    readonly facts: object;
    readonly sentence: string;
}

export declare class SimulatedWorld implements HostWorld {
    #private;
    readonly seed: number;
    readonly prng: Prng;
    readonly network: SimulatedNetwork;
    readonly hosts: Host[];
    now: number;
    eventCount: number;
    hash: number;
    onTrace: ((note: TraceEvent) => void) | undefined;
    onLog: ((line: LogLine) => void) | undefined;
    onError: ((error: unknown, owner: ProcessState | undefined) => void) | undefined;
    constructor(seed: number);
    addHost(name: string, address?: string): Host;
    nextPid(): number;
    schedule(delayMs: number, owner: ProcessState | undefined, kind: string, action: () => void): ScheduledEvent;
    scheduleAt(time: number, owner: ProcessState | undefined, kind: string, action: () => void): ScheduledEvent;
    afterPromises(owner: ProcessState, action: () => void): void;
    mixIntoHash(value: number): void;
    trace(owner: ProcessState | undefined, event: string, detail: string): void;
    logged(owner: ProcessState, level: LogLevel, facts: object, sentence: string): void;
    run(untilMs: number, done?: () => boolean): Promise<boolean>;
    runUntilSettled<T>(promise: Promise<T>, withinMs: number): Promise<T>;
}

export interface TraceEvent {
    readonly at: number;
    readonly host: string;
    readonly event: string;
    readonly detail: string;
}
