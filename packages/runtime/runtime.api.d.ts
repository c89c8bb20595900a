// @zabra/runtime
//   AbortSignalLike
//   Address
//   AlternativeName
//   AlternativeNameType
//   ByteTransform
//   Cancel
//   CertificateError
//   CertificateStore
//   CertificateStoreType
//   Clock
//   Compression
//   Connection
//   ConnectionHandler
//   Cryptography
//   Disk
//   DiskError
//   DiskFault
//   DiskOperation
//   DiskReader
//   DiskSpace
//   DiskWriter
//   FileMode
//   FileReads
//   HandshakeStats
//   Hash
//   HttpHandler
//   HttpLimits
//   HttpRequest
//   HttpResponse
//   HttpServer
//   InvariantError
//   LastLines
//   Listener
//   LogLevel
//   Logger
//   MAX_QUERY_PARAMETERS
//   ManualClock
//   MemoryConnection
//   MemoryDisk
//   MemoryNetwork
//   Network
//   NetworkError
//   NetworkFactories
//   OwnCertificate
//   Pauses
//   PeerIdentity
//   Platform
//   Random
//   SeededRandom
//   Sfc32
//   System
//   TlsFailure
//   TlsFault
//   TlsNetwork
//   TlsOptionError
//   TlsOptions
//   TlsParameters
//   TlsVersion
//   Transport
//   WebSocketListenOptions
//   addressBlockOf
//   invariant
//   shownUrl
//   silentLogger
//   tlsFailureOf

// @zabra/runtime/node
//   NodeDisk
//   NodeTlsNetwork
//   Upgrade
//   UpgradeListener
//   channel
//   gunzipSync
//   gzipSync
//   httpServer
//   httpUpgrades
//   keepAliveNodeClock
//   nodeClock
//   nodeCompression
//   nodeCryptography
//   nodeNetwork
//   nodePlatform
//   nodeRandom
//   nodeSystem
//   resolveSrv
//   tlsNetwork
//   tracingChannel

// @zabra/runtime/node/dial
//   CertificateError
//   LazyTlsNetwork
//   channel
//   gunzipSync
//   gzipSync
//   keepAliveNodeClock
//   lazyNetwork
//   lazyTlsNetwork
//   lazyWebSocketNetwork
//   lightRandom
//   nodeNetwork
//   resolveSrv
//   tracingChannel

// @zabra/runtime/node/files
//   NodeDisk
//   endProcess
//   exitAtOnce
//   nodeCompression
//   nodeSystem

// @zabra/runtime/node/children
//   ChildProcess
//   connectToParent
//   startChild
//   temporaryFolder

// @zabra/runtime/node/certificate-authority
//   AuthorityOptions
//   CertificateWithKey
//   IssueOptions
//   createAuthority
//   issueCertificate
//   renewCertificate

// @zabra/runtime/node/tls-files
//   CertificateFacts
//   RevocationList
//   TlsFiles
//   readTlsFiles

// @zabra/runtime/ws
//   WebSocketNetworkOptions
//   webSocketNetwork

// @zabra/runtime/web
//   WebSocketConstructor
//   WebSocketLike
//   webSocketClientNetwork

// address-block.d.ts

export declare function addressBlockOf(host: string): string;

// clock.d.ts

export type Cancel = () => void;

export interface Clock {
    wall(): number;
    monotonic(): number;
    after(delayMs: number, name: string, action: () => void): Cancel;
    immediate(action: () => void): void;
    afterMicrotasks(action: () => void): void;
}

// compression.d.ts

export interface ByteTransform {
    write(bytes: Uint8Array): Promise<Uint8Array>;
    end(): Promise<Uint8Array>;
}

export interface Compression {
    gzip(): ByteTransform;
    gunzip(): ByteTransform;
}

// cryptography.d.ts

export interface Cryptography {
    sha256(): Hash;
    sha256Of(bytes: Uint8Array): string;
    seal(key: Uint8Array, nonce: Uint8Array, associated: Uint8Array, plain: Uint8Array): Uint8Array;
    open(key: Uint8Array, nonce: Uint8Array, associated: Uint8Array, sealed: Uint8Array): Uint8Array | undefined;
}

export interface Hash {
    update(bytes: Uint8Array): void;
    digest(): string;
}

// disk.d.ts

export interface Disk {
    list(folder: string): Promise<string[]>;
    exists(path: string): Promise<boolean>;
    makeFolder(path: string): Promise<void>;
    size(path: string): Promise<number>;
    modifiedAt(path: string): Promise<number>;
    modeOf?(path: string): Promise<FileMode | undefined>;
    readFile(path: string): Promise<Uint8Array>;
    replaceFile(path: string, bytes: Uint8Array, options?: {
        readonly isSecret?: boolean;
    }): Promise<void>;
    createFile(path: string, bytes: Uint8Array): Promise<void>;
    openRead(path: string): Promise<DiskReader>;
    openWrite(path: string, options: {
        create: boolean;
        durable: boolean;
    }): Promise<DiskWriter>;
    rename(from: string, to: string): Promise<void>;
    renameNew(from: string, to: string): Promise<void>;
    remove(path: string): Promise<void>;
    syncFolder(folder: string): Promise<void>;
    deviceOf?(path: string): Promise<number>;
    realPath?(path: string): Promise<string>;
    space(folder: string): Promise<DiskSpace>;
}

export declare class DiskError extends Error {
    readonly name = "DiskError";
    readonly code: string;
    readonly path: string;
    constructor(message: string, code: string, path: string, options?: ErrorOptions);
}

export interface DiskReader {
    read(into: Uint8Array, position: number): Promise<number>;
    size(): Promise<number>;
    close(): Promise<void>;
}

export interface DiskSpace {
    readonly free: number;
    readonly size: number;
}

export interface DiskWriter {
    write(bytes: Uint8Array, position: number): Promise<void>;
    sync(): Promise<void>;
    truncate(length: number): Promise<void>;
    close(): Promise<void>;
}

export interface FileMode {
    readonly bits: number;
    readonly isRoots: boolean;
}

// http.d.ts

export interface HttpHandler {
    connected?(isSecure: boolean): void;
    handle(request: HttpRequest): Promise<HttpResponse>;
    failed(error: Error): void;
}

export interface HttpLimits {
    readonly connections: number;
    readonly idleTimeoutMs: number;
}

export interface HttpRequest {
    readonly method: string;
    readonly path: string;
    readonly query: URLSearchParams;
    readonly isQueryCut?: boolean;
    readonly headers: Readonly<Record<string, string | readonly string[] | undefined>>;
    readonly remote: Address;
    readonly isSecure: boolean;
    readonly tls?: TlsParameters | undefined;
    readonly peer: PeerIdentity | undefined;
    readonly body: AsyncIterable<Uint8Array>;
}

export interface HttpResponse {
    readonly status: number;
    readonly headers?: Readonly<Record<string, string>>;
    readonly body?: string | Uint8Array | AsyncIterable<string | Uint8Array> | undefined;
}

export interface HttpServer {
    listen(at: {
        readonly host?: string;
        readonly port: number;
    }, limits: HttpLimits, handler: HttpHandler): Promise<Listener>;
}

export declare const MAX_QUERY_PARAMETERS = 64;

// invariant.d.ts

export declare class InvariantError extends Error {
    readonly name = "InvariantError";
    readonly details: object;
    constructor(message: string, details: object);
}

export declare function invariant(condition: boolean, what: string, details?: object): asserts condition;

// logger.d.ts

export interface LastLines extends Iterable<string> {
    readonly bytes: number;
}

export type LogLevel = 'error' | 'warn' | 'info' | 'debug';

export interface Logger {
    level?: string | undefined;
    readonly lost?: number | undefined;
    readonly lastLines?: LastLines | undefined;
    error(context: object, message: string): void;
    warn(context: object, message: string): void;
    info(context: object, message: string): void;
    debug(context: object, message: string): void;
}

export declare const silentLogger: Logger;

// manual-clock.d.ts

export declare class ManualClock implements Clock {
    #private;
    constructor({ wall, monotonic }?: {
        wall?: number;
        monotonic?: number;
    });
    wall(): number;
    monotonic(): number;
    after(delayMs: number, name: string, action: () => void): Cancel;
    immediate(action: () => void): void;
    afterMicrotasks(action: () => void): void;
    advance(ms: number): void;
    standStill(ms: number): void;
    jumpWall(ms: number): void;
    pendingTimers(): {
        readonly name: string;
        readonly at: number;
    }[];
    untilIdle(): Promise<void>;
}

// memory-disk.d.ts

export interface DiskFault {
    readonly code: string;
    readonly writtenBytes?: number | undefined;
}

export type DiskOperation = 'write' | 'sync' | 'open' | 'truncate' | 'read' | 'rename' | 'remove';

export declare class MemoryDisk implements Disk {
    #private;
    injectFault: ((call: DiskOperation, path: string, length: number) => DiskFault | undefined) | undefined;
    beforeWrite: (() => Promise<void>) | undefined;
    writes: number;
    freeBytes: number;
    now: () => number;
    powerCut(): void;
    putFile(path: string, bytes: Uint8Array): void;
    clone(): MemoryDisk;
    paths(): string[];
    list(folder: string): Promise<string[]>;
    exists(path: string): Promise<boolean>;
    makeFolder(path: string): Promise<void>;
    size(path: string): Promise<number>;
    modifiedAt(path: string): Promise<number>;
    readFile(path: string): Promise<Uint8Array>;
    replaceFile(path: string, bytes: Uint8Array): Promise<void>;
    createFile(path: string, bytes: Uint8Array): Promise<void>;
    openRead(path: string): Promise<DiskReader>;
    openWrite(path: string, options: {
        create: boolean;
        durable: boolean;
    }): Promise<DiskWriter>;
    rename(from: string, to: string): Promise<void>;
    renameNew(from: string, to: string): Promise<void>;
    remove(path: string): Promise<void>;
    syncFolder(folder: string): Promise<void>;
    space(): Promise<DiskSpace>;
}

// memory-network.d.ts

export declare class MemoryConnection implements Connection {
    #private;
    readonly local: Address;
    readonly remote: Address;
    readonly transport = "memory";
    readonly isSecure = true;
    readonly peer: PeerIdentity | undefined;
    constructor(clock: Clock, chunkBytes: () => number, local: Address, remote: Address, peer?: PeerIdentity);
    get bufferedBytes(): number;
    get pendingBytes(): number;
    attachPeer(peer: MemoryConnection): void;
    setHandler(events: ConnectionHandler): void;
    write(bytes: Uint8Array): boolean;
    receive(bytes: Uint8Array): void;
    pause(): void;
    resume(): void;
    end(): void;
    destroy(cause?: Error): void;
    reset(cause?: Error): void;
    cut(): void;
    drained(): void;
}

export declare class MemoryNetwork implements Network {
    #private;
    chunkBytes: number;
    constructor(clock: Clock);
    listen({ port }: {
        host?: string;
        port: number;
    }, accepted: (connection: Connection) => void): Promise<Listener>;
    connect(to: Address, { signal, peer }?: {
        signal?: AbortSignalLike;
        peer?: PeerIdentity;
    }): Promise<MemoryConnection>;
}

// network.d.ts

export interface AbortSignalLike {
    readonly aborted: boolean;
    readonly reason: unknown;
    addEventListener(type: 'abort', listener: () => void, options?: {
        once: boolean;
    }): void;
    removeEventListener(type: 'abort', listener: () => void): void;
}

export interface Address {
    readonly host: string;
    readonly port: number;
    readonly url?: string | undefined;
}

export interface AlternativeName {
    readonly type: number;
    readonly value: string;
}

export declare const AlternativeNameType: {
    readonly email: 1;
    readonly dns: 2;
    readonly directory: 4;
    readonly uri: 6;
    readonly ip: 7;
    readonly registered: 8;
};

export interface Connection {
    readonly remote: Address;
    readonly local: Address;
    readonly transport?: Transport | undefined;
    readonly isSecure?: boolean | undefined;
    readonly tls?: TlsParameters | undefined;
    readonly peerCertificates?: readonly Uint8Array[] | undefined;
    readonly peer?: PeerIdentity | undefined;
    readonly bufferedBytes: number;
    readonly heldBytes?: number;
    readonly canReuseBuffers?: boolean | undefined;
    setHandler(events: ConnectionHandler): void;
    write(bytes: Uint8Array): boolean;
    pause(): void;
    resume(): void;
    end(): void;
    destroy(cause?: Error): void;
}

export interface ConnectionHandler {
    data(chunk: Uint8Array): void;
    held?(): void;
    drain(): void;
    ended?(): boolean;
    closed(cause?: Error): void;
}

export interface Listener {
    readonly address: Address;
    close(): Promise<void>;
}

export interface Network {
    listen(at: {
        host?: string;
        port: number;
        backlog?: number;
        keepAlive?: boolean;
    }, accepted: (connection: Connection) => void, refused?: (error: Error) => void): Promise<Listener>;
    connect(to: Address, options?: {
        signal?: AbortSignalLike;
    }): Promise<Connection>;
    resolve?(name: string): Promise<readonly string[]>;
}

export declare class NetworkError extends Error {
    readonly name = "NetworkError";
    readonly code: string;
    readonly tlsFailure: TlsFailure | undefined;
    readonly remote: Address | undefined;
    constructor(message: string, code: string, { tlsFailure, remote, ...options }?: ErrorOptions & {
        readonly tlsFailure?: TlsFailure | undefined;
        readonly remote?: Address | undefined;
    });
}

export interface PeerIdentity {
    readonly subject: string;
    readonly alternativeNames: readonly AlternativeName[];
}

export interface TlsParameters {
    readonly version: string;
    readonly cipher: string;
}

export type Transport = 'memory' | 'tcp' | 'tls' | 'webSocket';

export declare const shownUrl: (url: string) => string;

// node/certificate-authority.d.ts

export interface AuthorityOptions {
    readonly name: string;
    readonly days: number;
    readonly from?: Date | undefined;
}

export interface CertificateWithKey {
    readonly certificate: string;
    readonly key: string;
}

export interface IssueOptions extends AuthorityOptions {
    readonly hosts: readonly string[];
    readonly uris?: readonly string[] | undefined;
}

export declare function createAuthority({ name, days, from }: AuthorityOptions): CertificateWithKey;

export declare function issueCertificate(authority: CertificateWithKey, options: IssueOptions): CertificateWithKey;

export declare function renewCertificate(authority: CertificateWithKey, older: string, { days, from }: Pick<IssueOptions, 'days' | 'from'>): CertificateWithKey;

// node/children.d.ts

export interface ChildProcess {
    send(message: unknown): void;
    signal(name: 'SIGKILL' | 'SIGSTOP' | 'SIGCONT'): void;
    readonly ended: Promise<string>;
}

export declare function connectToParent(onMessage: (message: unknown) => void): {
    send(message: unknown): void;
};

export declare function startChild(program: URL, onMessage: (message: unknown) => void): ChildProcess;

export declare function temporaryFolder(name: string): Promise<{
    path: string;
    remove(): Promise<void>;
}>;

// node/clock.d.ts

export declare const keepAliveNodeClock: Clock;

export declare const nodeClock: Clock;

// node/compression.d.ts

export declare const nodeCompression: Compression;

// node/cryptography.d.ts

export declare const nodeCryptography: Cryptography;

// node/dial.d.ts

export type LazyTlsNetwork = Network & Pick<TlsNetwork, 'reload'> & Pick<NodeTlsNetwork, 'clientOptions'>;

export declare function lazyTlsNetwork(options: TlsOptions): LazyTlsNetwork;

export declare function lazyWebSocketNetwork(options: WebSocketNetworkOptions): Network;

// node/disk.d.ts

export declare class NodeDisk implements Disk {
    list(folder: string): Promise<string[]>;
    exists(path: string): Promise<boolean>;
    makeFolder(path: string): Promise<void>;
    size(path: string): Promise<number>;
    modifiedAt(path: string): Promise<number>;
    modeOf(path: string): Promise<FileMode | undefined>;
    readFile(path: string): Promise<Uint8Array>;
    replaceFile(path: string, bytes: Uint8Array, { isSecret }?: {
        isSecret?: boolean | undefined;
    }): Promise<void>;
    createFile(path: string, bytes: Uint8Array): Promise<void>;
    openRead(path: string): Promise<DiskReader>;
    openWrite(path: string, options: {
        create: boolean;
        durable: boolean;
    }): Promise<DiskWriter>;
    rename(from: string, to: string): Promise<void>;
    renameNew(from: string, to: string): Promise<void>;
    remove(path: string): Promise<void>;
    syncFolder(folder: string): Promise<void>;
    deviceOf(path: string): Promise<number>;
    realPath(path: string): Promise<string>;
    space(folder: string): Promise<DiskSpace>;
}

// node/end-process.d.ts

export declare function endProcess(program: string, code: number): Promise<never>;

export declare function exitAtOnce(program: string, code: number): never;

// node/gzip.d.ts

export declare const gunzipSync: (bytes: Uint8Array, maxLength: number) => Uint8Array;

export declare const gzipSync: (bytes: Uint8Array) => Uint8Array;

// node/http.d.ts

export interface Upgrade {
    readonly request: IncomingMessage;
    readonly socket: Duplex & {
        readonly heldBytes: number;
    };
    readonly head: Buffer;
    readonly isSecure: boolean;
    readonly peer: PeerIdentity | undefined;
    readonly tls?: TlsParameters | undefined;
}

export interface UpgradeListener {
    listen(at: ListenAt, upgrade: (upgrade: Upgrade) => void, refused?: (error: Error) => void): Promise<Listener>;
}

export declare function httpUpgrades({ tls, limit, timeoutMs, }?: {
    tls?: NodeTlsNetwork | undefined;
    limit?: number;
    timeoutMs?: number;
}): UpgradeListener;

// node/index.d.ts

export declare function nodePlatform(overrides?: Partial<Platform>): Platform;

// node/lazy.d.ts

export declare function lazyNetwork(needs: string, loaded: () => Promise<Network>): Network;

// node/network.d.ts

export type ListenAt = Parameters<Network['listen']>[0];

export declare const nodeNetwork: Network;

// node/random.d.ts

export declare const lightRandom: Random;

export declare const nodeRandom: Random;

// node/srv.d.ts

export declare function resolveSrv(name: string, resolve?: (name: string) => Promise<{
    name: string;
    port: number;
}[]>): Promise<{
    host: string;
    port: number;
}[]>;

// node/system.d.ts

export declare const nodeSystem: System;

// node/tls-files.d.ts

export interface CertificateFacts {
    readonly certificate: X509Certificate;
    readonly weakHash: string | undefined;
}

export interface RevocationList {
    readonly nextUpdate: number | undefined;
}

export interface TlsFiles {
    readonly chain: readonly CertificateFacts[];
    readonly authorities: readonly CertificateFacts[] | undefined;
    readonly revocationLists: readonly RevocationList[];
}

export declare function readTlsFiles({ keyStore, trustStore, revocationList }: TlsOptions): Promise<TlsFiles>;

// node/tls.d.ts

export declare class NodeTlsNetwork implements TlsNetwork {
    #private;
    certificate: OwnCertificate | undefined;
    constructor(options: TlsOptions, reads?: FileReads);
    get handshakes(): HandshakeStats;
    listen(at: ListenAt, accepted: (connection: Connection) => void, refused?: (error: Error) => void): Promise<Listener>;
    withPlaintext(): Network;
    listenForSockets(at: ListenAt, accepted: (socket: TLSSocket, peer: PeerIdentity | undefined) => void, refused?: (error: Error) => void, plain?: (socket: Socket) => void): Promise<Listener>;
    connect(to: Address, { signal }?: {
        signal?: AbortSignalLike;
    }): Promise<Connection>;
    clientOptions(): Promise<SecureContextOptions & {
        checkServerIdentity?: () => undefined;
    }>;
    reload(): Promise<boolean>;
}

export declare function tlsNetwork(options: TlsOptions, reads?: FileReads): NodeTlsNetwork;

// platform.d.ts

export interface NetworkFactories {
    readonly tls?: ((options: TlsOptions, reads?: FileReads) => TlsNetwork) | undefined;
    readonly http?: (options: {
        readonly tls?: TlsNetwork | undefined;
        readonly isMixed?: boolean | undefined;
    }) => HttpServer;
    readonly webSocket?: (limits: WebSocketListenOptions, tls?: TlsNetwork) => Network;
}

export interface Platform {
    readonly clock: Clock;
    readonly random: Random;
    readonly network: Network;
    readonly networkFactories?: NetworkFactories | undefined;
    readonly disk: Disk;
    readonly compression: Compression;
    readonly cryptography?: Cryptography;
    readonly logger: Logger;
    readonly system: System;
}

// random.d.ts

export interface Random {
    below(limit: number): number;
    bytes(length: number): Uint8Array;
}

// seeded-random.d.ts

export declare class SeededRandom implements Random {
    #private;
    constructor(seed: number);
    below(limit: number): number;
    bytes(length: number): Uint8Array;
}

export declare class Sfc32 {
    #private;
    constructor(a: number, b: number, skipped: number);
    next(): number;
}

// system.d.ts

export interface Pauses {
    readonly count: number;
    readonly sum: number;
    countUpTo(ms: number): number;
}

export interface System {
    environment(): readonly (readonly [name: string, value: string])[];
    residentMemory(): number;
    maxEventLoopDelay?(): number;
    maxGcPause?(): number;
    longHolds?(): {
        readonly count: number;
        readonly last: readonly number[];
    };
    eventLoopDelays?(): Pauses;
    cpuTime?(): number;
    eventLoopActive?(): number;
    gcPauses?(): ReadonlyMap<string, Pauses>;
    resetPauses?(): void;
    heap?(): {
        readonly used: number;
        readonly external: number;
    };
    memoryLimits?(): {
        readonly heap: number;
        readonly process: number;
    };
    fileDescriptors(): {
        readonly open: number;
        readonly max: number;
    };
    readonly pid: number;
    processIdentity(pid: number): string | undefined;
}

// tls-faults.d.ts

export interface TlsFailure {
    readonly code: string;
    readonly fault: TlsFault;
    readonly reason: string;
}

export type TlsFault = 'expired' | 'notYetValid' | 'untrusted' | 'wrongHost' | 'wrongPurpose' | 'revoked' | 'noRevocationList' | 'damaged' | 'clientCertificate' | 'handshakeFailure' | 'noCommonVersion' | 'plaintext' | 'refused';

export declare function tlsFailureOf(error: Error): TlsFailure | undefined;

// tls.d.ts

export declare class CertificateError extends Error {
    readonly name = "CertificateError";
    readonly path: string;
    constructor(message: string, path: string, options?: ErrorOptions);
}

export interface CertificateStore {
    readonly path: string;
    readonly type?: CertificateStoreType | undefined;
    readonly password?: string | undefined;
    readonly passwordPath?: string | undefined;
    readonly keyPath?: string | undefined;
}

export type CertificateStoreType = 'PEM' | 'PKCS12' | 'JKS' | 'BCFKS';

export interface FileReads {
    run<T>(read: () => Promise<T>): Promise<T>;
}

export interface HandshakeStats {
    readonly active: number;
    readonly rejected: number;
    readonly failed: number;
}

export interface OwnCertificate {
    readonly validUntil: number;
    readonly subjectHash: string;
}

export interface TlsNetwork extends Network {
    reload(): Promise<boolean>;
    withPlaintext(): Network;
    readonly handshakes: HandshakeStats;
    readonly certificate: OwnCertificate | undefined;
}

export declare class TlsOptionError extends RangeError {
    readonly name = "TlsOptionError";
}

export interface TlsOptions {
    readonly keyStore?: CertificateStore | undefined;
    readonly trustStore?: CertificateStore | undefined;
    readonly revocationList?: string | undefined;
    readonly versions?: readonly TlsVersion[] | undefined;
    readonly ciphers?: readonly string[] | undefined;
    readonly clientAuth?: 'none' | 'want' | 'need' | undefined;
    readonly verifyHostName?: boolean | undefined;
    readonly identifiesServer?: boolean | undefined;
    readonly handshakeLimit?: number | undefined;
    readonly replacesHandshakes?: boolean | undefined;
    readonly handshakeTimeoutMs?: number | undefined;
}

export type TlsVersion = 'TLSv1.2' | 'TLSv1.3';

export interface WebSocketListenOptions {
    readonly path?: string | undefined;
    readonly origins?: readonly string[] | undefined;
    readonly hostName?: string | undefined;
    readonly maxMessageBytes?: number | undefined;
    readonly pingIntervalMs?: number | undefined;
}

// web/network.d.ts

export type WebSocketConstructor = new (url: string) => WebSocketLike;

export interface WebSocketLike {
    binaryType: string;
    readonly bufferedAmount: number;
    readonly readyState: number;
    send(data: Uint8Array): void;
    close(code?: number, reason?: string): void;
    addEventListener(type: 'open' | 'message' | 'error' | 'close', listener: (event: {
        readonly data?: unknown;
        readonly code?: number;
        readonly wasClean?: boolean;
    }) => void): void;
}

export declare function webSocketClientNetwork({ WebSocket, }?: {
    WebSocket?: WebSocketConstructor | undefined;
}): Network;

// ws/network.d.ts

export interface WebSocketNetworkOptions extends WebSocketListenOptions {
    readonly clock: Clock;
    readonly upgrades?: UpgradeListener | undefined;
    readonly client?: (object | (() => Promise<object>)) | undefined;
}

export declare function webSocketNetwork(options: WebSocketNetworkOptions): Network;
