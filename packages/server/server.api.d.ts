// @zabra/server
//   ConfigurationError
//   DamageError
//   EnsembleConfiguration
//   FileProblem
//   FolderLockedError
//   GivenServerSettings
//   LogFullError
//   MemberAddress
//   MemberConfiguration
//   RecoveryError
//   ServedPort
//   Server
//   ServerMetrics
//   ServerOptions
//   ServerSettings
//   SettingFileError
//   checkFiles
//   createServer
//   parseConfiguration
//   printConfiguration

// @zabra/server/core
//   ConfigurationError
//   DamageError
//   EnsembleConfiguration
//   FileProblem
//   FolderLockedError
//   LogFullError
//   MemberAddress
//   MemberConfiguration
//   OpenSecretFile
//   RecoveryError
//   ServedPort
//   Server
//   ServerMetrics
//   ServerSettings
//   TlsUse
//   TreeFindings
//   checkFiles
//   createServer
//   defaults
//   openSecretFiles
//   parseConfiguration
//   printConfiguration
//   tlsUses

// @zabra/server/settings
//   ConfigurationError
//   EnsembleConfiguration
//   Environment
//   Finding
//   GivenServerSettings
//   Group
//   LATE_INTERVALS
//   LoadedSettings
//   MAX_DISK_USED
//   MIN_CERTIFICATE_DAYS
//   PROMETHEUS_PROVIDER
//   ReconfigRequest
//   ReconfigurationError
//   Row
//   Schedule
//   ServerSettings
//   SettingEntry
//   SettingFileError
//   SettingName
//   SettingsFiles
//   SettingsSources
//   applyReconfig
//   defaults
//   formatFinding
//   loadSettings
//   nextTime
//   parseConfiguration
//   parseProperties
//   parseZooCfg
//   printConfiguration
//   rowOf
//   rows
//   settingNames
//   settingsFromEnvironment
//   sharesSessionSecret
//   useSettingFile
//   usesAdminTls
//   usesQuorumTls

// @zabra/server/files
//   AuditPlace
//   AuditVerification
//   ChainFault
//   ChainState
//   ChoppedLog
//   ConfigurationError
//   DamageError
//   DatabaseContents
//   DatabaseLocation
//   EnsembleConfiguration
//   FeatureState
//   FolderLockedError
//   ForcedMembers
//   LogRecord
//   LogRepair
//   LogReport
//   LogState
//   LoggedTxn
//   MemberState
//   NO_LINE
//   RecoveryError
//   RenumberOptions
//   Renumbering
//   RepairOptions
//   SET_ASIDE
//   SnapshotContents
//   SnapshotNode
//   StoredStat
//   SubTxn
//   Txn
//   VERSION_FOLDER
//   abandonData
//   chopLog
//   compareStates
//   dataFoldersOf
//   forceMembers
//   initializeData
//   lockFolder
//   logsIn
//   parseConfiguration
//   purge
//   readDatabase
//   readEpochs
//   readFeatureState
//   readLog
//   readMemberState
//   readSnapshot
//   renumber
//   repairLog
//   snapshotsIn
//   verifierOf
//   verifyAudit

// @zabra/server/backup
//   BackupChain
//   BackupDefect
//   BackupDuty
//   BackupError
//   BackupGap
//   BackupKey
//   BackupOptions
//   BackupSource
//   BackupStore
//   BackupTarget
//   BackupUsageError
//   Catalog
//   FolderTarget
//   LoadedBackup
//   LogManifest
//   Manifest
//   Prunable
//   RestoredFolder
//   RetentionRule
//   S3Access
//   S3Credentials
//   SnapshotFile
//   SnapshotManifest
//   SnapshotNode
//   SourceLog
//   SourceRequest
//   SourceResponse
//   SourceSnapshot
//   TargetError
//   TargetPlatform
//   VerificationRecord
//   WrittenBackup
//   ZXID_FIELDS
//   chunksOf
//   closeSessions
//   digestText
//   encodeLog
//   endChunks
//   endable
//   findPrunable
//   httpSource
//   isRemoteTarget
//   lastBefore
//   lastBeforeChange
//   loadBackup
//   logFilesOf
//   manifestName
//   memoryCheck
//   nodesOf
//   openFile
//   openPiece
//   openTarget
//   parseChange
//   parseCredentials
//   parseKey
//   parseKeyBytes
//   parseRetention
//   parseTarget
//   pauseAfter
//   prune
//   readVerification
//   removeBackups
//   restoreFolder
//   verifyChain
//   verifyDeep
//   verifyPieces
//   writeBackup
//   writeSnapshotFile
//   writeVerification

// admin/http/api/tree-findings.d.ts

export interface Examples<T> {
    readonly count: number;
    readonly first: readonly T[];
}

export interface TreeFindings {
    readonly nodes: number;
    readonly largestNode: {
        readonly path: string;
        readonly bytes: number;
    };
    readonly mostChildren: {
        readonly path: string;
        readonly children: number;
    };
    readonly sequences: Examples<{
        readonly path: string;
        readonly counter: number;
    }>;
    readonly quotas: Examples<{
        readonly path: string;
        readonly what: 'nodes' | 'bytes';
        readonly limit: number;
        readonly use: number;
    }>;
    readonly openSecrets: Examples<{
        readonly path: string;
        readonly anyone: 'reads' | 'changes';
    }>;
    readonly rootPermissions: string;
    readonly ephemerals: readonly {
        readonly session: string;
        readonly nodes: number;
        readonly bytes: number;
    }[];
}

// backup/backup-writer.d.ts

export interface BackupOptions {
    readonly clock: Pick<Clock, 'wall'>;
    readonly compression: Compression;
    readonly snapshot: 'always' | 'if-needed' | 'never';
    readonly catalog?: Catalog | undefined;
    readonly snapshotSent?: () => Promise<Catalog>;
    readonly merges?: boolean;
}

export interface BackupSource {
    readonly name: string;
    readonly cluster?: string | undefined;
    readonly level?: number | undefined;
    takeSnapshot(): Promise<SourceSnapshot>;
    openBaseSnapshot?(after: Zxid): Promise<SourceBaseSnapshot | undefined>;
    readLog(after: Zxid): Promise<SourceLog | undefined>;
}

export interface SourceBaseSnapshot extends SourceSnapshot {
    readonly nodes: number;
    readonly digest: string | null;
}

export interface SourceLog {
    readonly upTo: Zxid;
    readonly nodes: number;
    readonly digest: string | null;
    readonly chunks: AsyncIterable<Uint8Array>;
}

export interface SourceSnapshot {
    readonly file: string;
    readonly zxid: Zxid;
    readonly chunks: AsyncIterable<Uint8Array>;
}

export interface WrittenBackup {
    readonly snapshot: SnapshotManifest | undefined;
    readonly log: LogManifest | undefined;
    readonly hasGap: boolean;
}

export declare function writeBackup(store: BackupStore, source: BackupSource, options: BackupOptions): Promise<WrittenBackup>;

// backup/catalog.d.ts

export interface BackupChain {
    readonly snapshot: SnapshotManifest;
    readonly logs: readonly LogManifest[];
    readonly upTo: Zxid;
}

export interface BackupGap {
    readonly after: Zxid;
    readonly before: Zxid | undefined;
}

export interface BackupStore {
    readonly target: BackupTarget;
    readonly cryptography: Cryptography;
    readonly random: Random;
    readonly key: BackupKey | undefined;
}

export interface BadManifest {
    readonly name: string;
    readonly error: BackupError;
}

export declare class Catalog {
    #private;
    readonly lineage: string | undefined;
    readonly snapshots: readonly SnapshotManifest[];
    readonly logs: readonly LogManifest[];
    readonly bad: readonly BadManifest[];
    private constructor();
    static read(store: BackupStore, known?: Catalog): Promise<Catalog>;
    static readNewest(store: BackupStore): Promise<Catalog>;
    with(added: readonly Manifest[], removed?: readonly Manifest[]): Catalog;
    get unmerged(): readonly LogManifest[];
    replaced(now: number): readonly LogManifest[];
    get end(): CatalogEnd | undefined;
    get gaps(): readonly BackupGap[];
    chainOf(snapshot: SnapshotManifest): BackupChain;
    chainTo(zxid: Zxid): BackupChain;
    newestChain(): BackupChain;
}

export interface CatalogEnd {
    readonly upTo: Zxid;
    readonly beforeLast: Zxid;
    readonly lastChecksum: number | undefined;
}

export declare function openPiece({ target, key, cryptography }: BackupStore, { piece, key: keyId }: Manifest): Promise<DiskReader>;

// backup/duty.d.ts

export declare class BackupDuty {
    #private;
    constructor({ target }: Pick<BackupStore, 'target'>, member: string, { clock, random }: {
        readonly clock: Pick<Clock, 'monotonic'>;
        readonly random: Random;
    });
    get isHeld(): boolean;
    get holder(): string | undefined;
    get lastBackupAt(): number;
    get savedUpTo(): Zxid | undefined;
    get isRefused(): boolean;
    get isSubstitute(): boolean;
    claim(options: ClaimOptions, lastBackupAt: number): Promise<boolean>;
    release(): Promise<void>;
}

export interface ClaimOptions {
    readonly ifFreeMs: number;
    readonly ifSilentMs: number;
    readonly isSubstitute?: boolean;
    readonly savedUpTo?: Zxid | undefined;
    readonly applied?: Zxid;
    readonly delayMs?: () => Promise<number>;
}

// backup/errors.d.ts

export declare class BackupError extends Error {
    readonly name: string;
}

export declare class BackupUsageError extends BackupError {
    readonly name = "BackupUsageError";
}

export declare class TargetError extends BackupError {
}

// backup/find-transaction.d.ts

export interface FoundChange {
    readonly before: Zxid;
    readonly change: Zxid;
    readonly time: number;
}

export interface SoughtChange {
    readonly operation: 'create' | 'set' | 'delete';
    readonly path: string;
}

export declare function lastBefore(store: BackupStore, catalog: Catalog, time: number): Promise<Zxid>;

export declare function lastBeforeChange(store: BackupStore, catalog: Catalog, change: SoughtChange): Promise<FoundChange>;

export declare function parseChange(text: string): SoughtChange;

// backup/http-source.d.ts

export type SourceRequest = (method: 'GET' | 'POST', path: string, options: {
    readonly accepts: readonly number[];
}) => Promise<SourceResponse>;

export interface SourceResponse {
    readonly status: number;
    readonly headers: Readonly<Record<string, string | undefined>>;
    readonly chunks: AsyncIterable<Uint8Array>;
}

export declare function httpSource(name: string, request: SourceRequest): BackupSource;

// backup/load-backup.d.ts

export interface BackupFile {
    readonly manifest: Manifest;
    readonly skipped?: number;
    readonly limit?: number;
}

export interface LoadOptions {
    readonly compression: Compression;
    readonly logger?: Logger;
    readonly pause?: Pause | undefined;
}

export interface LoadedBackup extends Pick<Recovery, 'tree' | 'sessions' | 'lastZxid' | 'replayed' | 'canCompareDigests'> {
    readonly level: number;
}

export declare function loadBackup(store: BackupStore, chain: BackupChain, upTo: Zxid, { compression, logger, pause }: LoadOptions): Promise<LoadedBackup>;

export declare function logFilesOf(store: BackupStore, { logs }: BackupChain, upTo: Zxid): Promise<readonly (BackupFile & {
    readonly name: string;
})[]>;

export declare function openFile(store: BackupStore, { manifest, skipped, limit }: BackupFile): Promise<DiskReader>;

// backup/log-stream.d.ts

export declare function encodeLog(txns: AsyncIterable<RawTxn>): AsyncGenerator<Uint8Array>;

// backup/manifest.d.ts

export type LogManifest = z.infer<typeof logManifest>;

export type Manifest = SnapshotManifest | LogManifest;

export type SnapshotManifest = z.infer<typeof snapshotManifest>;

export declare const ZXID_FIELDS: ReadonlySet<string>;

declare const logManifest: z.ZodMiniObject<{
    format: z.ZodMiniLiteral<1>;
    lineage: z.ZodMiniString<string>;
    cluster: z.ZodMiniOptional<z.ZodMiniString<string>>;
    level: z.ZodMiniOptional<z.ZodMiniInt>;
    time: z.ZodMiniInt;
    server: z.ZodMiniString<string>;
    key: z.ZodMiniNullable<z.ZodMiniString<string>>;
    piece: z.ZodMiniObject<{
        name: z.ZodMiniString<string>;
        bytes: z.ZodMiniInt;
        sha256: z.ZodMiniString<string>;
    }, z.core.$strip>;
    kind: z.ZodMiniLiteral<"log">;
    after: z.ZodMiniPipe<z.ZodMiniString<string>, z.ZodMiniTransform<number, string>>;
    first: z.ZodMiniPipe<z.ZodMiniString<string>, z.ZodMiniTransform<number, string>>;
    beforeLast: z.ZodMiniPipe<z.ZodMiniString<string>, z.ZodMiniTransform<number, string>>;
    upTo: z.ZodMiniPipe<z.ZodMiniString<string>, z.ZodMiniTransform<number, string>>;
    lastChecksum: z.ZodMiniInt;
    firstTime: z.ZodMiniInt;
    lastTime: z.ZodMiniInt;
    transactions: z.ZodMiniInt;
    merged: z.ZodMiniOptional<z.ZodMiniLiteral<true>>;
}, z.core.$strip>;

export declare function manifestName(manifest: Manifest): string;

declare const snapshotManifest: z.ZodMiniObject<{
    format: z.ZodMiniLiteral<1>;
    lineage: z.ZodMiniString<string>;
    cluster: z.ZodMiniOptional<z.ZodMiniString<string>>;
    level: z.ZodMiniOptional<z.ZodMiniInt>;
    time: z.ZodMiniInt;
    server: z.ZodMiniString<string>;
    key: z.ZodMiniNullable<z.ZodMiniString<string>>;
    piece: z.ZodMiniObject<{
        name: z.ZodMiniString<string>;
        bytes: z.ZodMiniInt;
        sha256: z.ZodMiniString<string>;
    }, z.core.$strip>;
    kind: z.ZodMiniLiteral<"snapshot">;
    file: z.ZodMiniString<string>;
    zxid: z.ZodMiniPipe<z.ZodMiniString<string>, z.ZodMiniTransform<number, string>>;
    exactAt: z.ZodMiniPipe<z.ZodMiniString<string>, z.ZodMiniTransform<number, string>>;
    nodes: z.ZodMiniInt;
    digest: z.ZodMiniNullable<z.ZodMiniString<string>>;
    gapAfter: z.ZodMiniOptional<z.ZodMiniPipe<z.ZodMiniString<string>, z.ZodMiniTransform<number, string>>>;
}, z.core.$strip>;

// backup/open-target.d.ts

export interface S3Access {
    readonly endpoint: string | undefined;
    readonly region: string;
    readonly credentials: () => Promise<S3Credentials>;
}

type TargetName = {
    readonly path: string;
} | {
    readonly bucket: string;
    readonly prefix: string;
};

export interface TargetPlatform {
    readonly disk: Disk;
    readonly random: Random;
    readonly cryptography: Cryptography;
    readonly clock: Pick<Clock, 'after' | 'wall'>;
}

export declare const isRemoteTarget: (text: string) => boolean;

export declare function openTarget(text: string, { disk, random, cryptography, clock }: TargetPlatform, s3: S3Access): Promise<BackupTarget>;

export declare function parseCredentials(text: string, file: string): S3Credentials;

export declare function parseTarget(text: string): TargetName;

// backup/prune.d.ts

export interface Prunable {
    readonly manifests: readonly string[];
    readonly pieces: readonly string[];
    readonly unfinished: readonly string[];
}

export declare function findPrunable(store: BackupStore, catalog: Catalog, rules: readonly RetentionRule[], now: number): Promise<Prunable>;

export declare function prune({ target }: BackupStore, { manifests, pieces, unfinished }: Prunable): Promise<void>;

export declare const removeBackups: (store: BackupStore, gone: readonly Manifest[]) => Promise<void>;

// backup/restore-folder.d.ts

export interface RestoreOptions {
    readonly disk: Disk;
    readonly compression: Compression;
    readonly dataDir: string;
    readonly dataLogDir: string;
    readonly keepSessions: boolean;
    readonly lastSeen: Zxid;
    readonly now: number;
}

export interface RestoredFolder {
    readonly snapshot: string;
    readonly zxid: Zxid;
    readonly nodes: number;
    readonly closedSessions: number;
}

export declare function closeSessions(tree: Tree, ids: Iterable<bigint>, epochStart: Zxid, time: number): Generator<void>;

export declare function restoreFolder({ tree, sessions, level }: LoadedBackup, options: RestoreOptions): Promise<RestoredFolder>;

// backup/retention.d.ts

export interface RetentionRule {
    readonly maxAgeMs: number;
    readonly everyMs: number;
}

export declare function parseRetention(text: string): readonly RetentionRule[];

// backup/s3-target.d.ts

export interface S3Credentials {
    readonly accessKeyId: string;
    readonly secretAccessKey: string;
    readonly sessionToken?: string | undefined;
}

// backup/sealing.d.ts

export interface BackupKey {
    readonly id: string;
    readonly bytes: Uint8Array;
    readonly earlier?: readonly BackupKey[];
}

export declare function parseKey(text: string, cryptography: Cryptography, file: string): BackupKey;

export declare function parseKeyBytes(text: string, file: string): Uint8Array;

// backup/snapshot-file.d.ts

export interface SnapshotFile {
    readonly path: string;
    readonly bytes: number;
}

export declare function writeSnapshotFile({ tree, sessions }: LoadedBackup, folder: string, { disk, compression: compressor }: {
    readonly disk: Disk;
    readonly compression: Compression;
}): Promise<SnapshotFile>;

// backup/target.d.ts

export interface BackupTarget {
    readonly url: string;
    list(folder: string): Promise<readonly string[]>;
    open(name: string): Promise<DiskReader>;
    write(name: string, chunks: AsyncIterable<Uint8Array>): Promise<number>;
    create(name: string, bytes: Uint8Array): Promise<boolean>;
    remove(name: string): Promise<void>;
    listUnfinished(before: number): Promise<readonly string[]>;
    removeUnfinished(name: string): Promise<void>;
}

export declare class FolderTarget implements BackupTarget {
    #private;
    readonly url: string;
    constructor(root: string, { disk, random }: {
        readonly disk: Disk;
        readonly random: Random;
    });
    list(folder: string): Promise<readonly string[]>;
    open(name: string): Promise<DiskReader>;
    write(name: string, chunks: AsyncIterable<Uint8Array>): Promise<number>;
    create(name: string, bytes: Uint8Array): Promise<boolean>;
    remove(name: string): Promise<void>;
    listUnfinished(before: number): Promise<readonly string[]>;
    removeUnfinished(name: string): Promise<void>;
}

export declare function chunksOf(reader: DiskReader): AsyncGenerator<Uint8Array>;

export declare function endChunks(chunks: AsyncIterable<Uint8Array>): Promise<void>;

export declare function endable(chunks: AsyncIterable<Uint8Array>, release: () => Promise<unknown>): AsyncIterable<Uint8Array>;

// backup/verification-record.d.ts

export type VerificationRecord = z.infer<typeof record>;

export declare function readVerification({ target }: BackupStore): Promise<VerificationRecord | undefined>;

declare const record: z.ZodMiniObject<{
    time: z.ZodMiniInt;
    snapshot: z.ZodMiniString<string>;
    problem: z.ZodMiniNullable<z.ZodMiniString<string>>;
}, z.core.$strip>;

export declare function writeVerification({ target }: BackupStore, { problem, ...rest }: VerificationRecord): Promise<void>;

// backup/verify.d.ts

export interface BackupDefect {
    readonly name: string;
    readonly problem: string;
}

export declare function digestText({ digest }: Pick<Tree, 'digest'>): string | null;

export declare function verifyChain(catalog: Catalog): Generator<BackupDefect>;

export declare function verifyDeep(store: BackupStore, chain: BackupChain, { toEnd, ...options }: LoadOptions & {
    readonly toEnd: boolean;
}): Promise<{
    readonly upTo: Zxid;
    readonly defect: BackupDefect | undefined;
}>;

export declare function verifyPieces(store: BackupStore, manifests: Iterable<Manifest>): AsyncGenerator<{
    readonly name: string;
    readonly defect: BackupDefect | undefined;
}>;

// check-files.d.ts

export interface FileProblem {
    readonly name: SettingName;
    readonly text: string;
}

export interface TlsUse {
    readonly port: 'clients' | 'members' | 'admin';
    readonly options: TlsOptions;
}

export declare function checkFiles(settings: ServerSettings, platform: Pick<Platform, 'disk' | 'networkFactories'>): Promise<readonly FileProblem[]>;

export declare function tlsUses(settings: ServerSettings): readonly TlsUse[];

// connections/listeners.d.ts

export interface ServedPort {
    readonly key: 'clientPort' | 'secureClientPort' | 'webSocketPort';
    readonly address: Address;
    readonly secure: boolean;
}

// core/audit-chain.d.ts

export interface AuditPlace {
    readonly file: string;
    readonly line: number;
}

export interface ChainFault extends AuditPlace {
    readonly kind: 'changed' | 'missing' | 'broken' | 'inserted' | 'unlinked' | 'restarted';
}

export interface ChainState {
    readonly lines: number;
    readonly unlinkedLines: number;
    readonly first: string | undefined;
    readonly head: string | undefined;
    readonly torn: string | undefined;
    readonly tornAt: readonly AuditPlace[];
    readonly fault: ChainFault | undefined;
    readonly wantedAt: AuditPlace | undefined;
}

export declare const NO_LINE: string;

// core/histogram.d.ts

export declare class Histogram implements Summary {
    #private;
    totalCount: number;
    totalSum: number;
    max: number;
    add(value: number): void;
    get count(): number;
    get sum(): number;
    get min(): number;
    get mean(): number;
    percentile(share: number): number;
    recentPercentile(share: number): number;
    rotate(): void;
    cumulative(first: number, step: number, end: number): Generator<readonly [bound: number, count: number]>;
    reset(): void;
}

export interface Summary {
    readonly count: number;
    readonly sum: number;
    readonly min: number;
    readonly max: number;
    readonly mean: number;
}

// core/number-map.d.ts

export declare class NumberSet implements Iterable<number> {
    #private;
    get size(): number;
    has(number: number): boolean;
    add(number: number): void;
    delete(number: number): boolean;
    [Symbol.iterator](): Generator<number, void>;
}

// core/properties.d.ts

export interface Property {
    readonly key: string;
    readonly value: string;
    readonly line: number;
    readonly hasLostBackslash: boolean;
}

export interface PropertyError {
    readonly line: number;
    readonly reason: string;
}

export declare function parseProperties(text: string): {
    properties: Property[];
    unreadable: PropertyError[];
};

// core/quorum/configuration.d.ts

export interface EnsembleConfiguration {
    readonly version: number;
    readonly members: ReadonlyMap<ServerId, MemberConfiguration>;
    readonly hierarchy?: Hierarchy;
}

export interface MemberAddress {
    readonly host: string;
    readonly quorumPort: number;
    readonly electionPort: number;
}

export interface MemberConfiguration {
    readonly id: ServerId;
    readonly addresses: readonly MemberAddress[];
    readonly role: MemberRole;
    readonly client?: {
        readonly host: string;
        readonly port: number;
    };
}

export type MemberRole = 'participant' | 'observer';

export declare function printConfiguration(configuration: EnsembleConfiguration): string;

export declare function verifierOf(configuration: EnsembleConfiguration, { oracle }?: {
    oracle?: boolean;
}): QuorumVerifier;

// core/quorum/feature-state.d.ts

export interface FeatureState {
    readonly finalized: number;
    readonly proposed: number;
}

// core/quorum/parse-configuration.d.ts

export declare class ConfigurationError extends Error {
    readonly name = "ConfigurationError";
    readonly line: number;
    constructor(line: number, message: string, options?: ErrorOptions);
}

export declare function parseConfiguration(text: string, version?: number): EnsembleConfiguration;

// core/quorum/reconfig.d.ts

export interface ReconfigRequest {
    readonly joiningServers: string | null;
    readonly leavingServers: string | null;
    readonly newMembers: string | null;
}

export declare class ReconfigurationError extends Error {
    readonly name = "ReconfigurationError";
    readonly code: number;
    constructor(message: string, code?: number);
}

export declare function applyReconfig(current: EnsembleConfiguration, change: ReconfigRequest, { version, minVoters }: {
    version: number;
    minVoters: number;
}): EnsembleConfiguration;

// core/quorum/verifier.d.ts

export interface Hierarchy {
    readonly groups: ReadonlyMap<number, readonly ServerId[]>;
    readonly weights: ReadonlyMap<ServerId, number>;
}

export interface QuorumVerifier {
    readonly voters: ReadonlySet<ServerId>;
    weightOf(id: ServerId): number;
    isQuorum(ids: ReadonlySet<ServerId>): boolean;
    readonly quorumSize?: number;
    readonly canAskOracle: boolean;
}

export type ServerId = number;

// core/session-map.d.ts

export declare class SessionMap<V> implements Iterable<[id: SessionId, value: V]> {
    #private;
    size: number;
    constructor(entries?: Iterable<readonly [SessionId, V]>);
    get longestShard(): number;
    get(id: SessionId): V | undefined;
    has(id: SessionId): boolean;
    set(id: SessionId, value: V): this;
    delete(id: SessionId): boolean;
    clear(): void;
    [Symbol.iterator](): Generator<[id: SessionId, value: V], void>;
    keys(): Generator<SessionId, void>;
    values(): Generator<V, void>;
    view(): SessionMapView<V>;
}

export interface SessionMapView<V> {
    readonly size: number;
    readonly entries: Iterable<readonly [SessionId, V]>;
    close(): void;
}

// core/setting-file-error.d.ts

export declare class SettingFileError extends Error {
    readonly name = "SettingFileError";
    constructor(key: string, cause: unknown);
}

export declare function useSettingFile<T>(key: string, use: () => Promise<T>): Promise<T>;

// core/tree/acl-table.d.ts

export declare class AclTable {
    #private;
    longest: number;
    bytes: number;
    constructor(hashKey?: number);
    retain(list: readonly ACL[]): number;
    idOf(list: readonly ACL[]): number | undefined;
    retainId(id: number, times?: number): boolean;
    release(id: number): void;
    releaseDuringLoad(id: number): void;
    get(id: number): readonly ACL[];
    load(id: number, list: readonly ACL[]): void;
    purgeUnused(): void;
    get size(): number;
    view(): AclView;
    entries(): [number, readonly ACL[]][];
}

export interface AclView {
    readonly count: number;
    readonly lists: Iterable<readonly [id: number, list: readonly ACL[]]>;
    close(): void;
}

// core/tree/bulk-load.d.ts

export declare class BulkLoader {
    #private;
    constructor(store: NodeStore, owners: OwnerIndex, acls: AclTable, digest: TreeDigest | undefined);
    tryLoad(path: string, bytes: Uint8Array, view: DataView, at: number, length: number): boolean;
    flushAclUses(): void;
}

// core/tree/cursor.d.ts

export declare class TreeCursor implements Traversal {
    #private;
    lastZxid: Zxid;
    constructor(tree: Traversable, top: number);
    get isFinished(): boolean;
    next(limit: number, visit: (node: number) => void): boolean;
    added(): void;
    removing(node: number): void;
    applied(zxid: Zxid): void;
    close(): void;
}

// core/tree/digest.d.ts

export declare class TreeDigest {
    #private;
    constructor(store: NodeStore, owners: OwnerIndex);
    value(): Digest;
    matches({ hi, lo }: Digest): boolean;
    clear(): void;
    hash(node: number, path: string, data: Uint8Array | null, known?: number): void;
    hashData(node: number, data: Uint8Array | null, known?: number): void;
    add(counted: number): void;
    subtract(node: number): void;
    beforeChange(node: number): void;
    afterChange(node: number, path: string): void;
}

// core/tree/namespace-traffic.d.ts

export interface MeasuredNamespace {
    readonly name: string;
    readonly read: Histogram;
    readonly written: Histogram;
    refused: number;
}

export declare class NamespaceTraffic {
    #private;
    constructor();
    get measured(): readonly MeasuredNamespace[];
    read(store: NodeStore, node: number, bytes: number): void;
    written(store: NodeStore, node: number, bytes: number): void;
    refused(path: string): void;
    rotate(): void;
    of(store: NodeStore, node: number): MeasuredNamespace | undefined;
}

// core/tree/namespaces.d.ts

export interface CountedNamespace extends NamespaceSize {
    readonly top: number;
}

export interface NamespaceSize {
    readonly nodes: number;
    readonly bytes: number;
}

export declare class Namespaces {
    #private;
    labels: Uint8Array<ArrayBuffer>;
    open(top: number, length: number): number;
    close(number: number): void;
    add(number: number, nodes: number, bytes: number): void;
    topOf(number: number): number;
    largest(count: number): {
        readonly largest: readonly CountedNamespace[];
        readonly rest: NamespaceSize;
    };
}

// core/tree/node-store.d.ts

declare class NodeColumns {
    #private;
    czxid: Float64Array<ArrayBuffer>;
    mzxid: Float64Array<ArrayBuffer>;
    pzxid: Float64Array<ArrayBuffer>;
    ctime: Float64Array<ArrayBuffer>;
    mtime: Float64Array<ArrayBuffer>;
    version: Int32Array<ArrayBuffer>;
    cversion: Int32Array<ArrayBuffer>;
    aversion: Int32Array<ArrayBuffer>;
    acl: Int32Array<ArrayBuffer>;
    pathCrc: Uint32Array<ArrayBuffer>;
    crc: Uint32Array<ArrayBuffer>;
    nodeDigest: Uint32Array<ArrayBuffer>;
    parent: Int32Array<ArrayBuffer>;
    childCount: Int32Array<ArrayBuffer>;
    firstChild: Int32Array<ArrayBuffer>;
    next: Int32Array<ArrayBuffer>;
    previous: Int32Array<ArrayBuffer>;
    slab: Int32Array<ArrayBuffer>;
    offset: Int32Array<ArrayBuffer>;
    length: Int32Array<ArrayBuffer>;
    namespace: Uint16Array<ArrayBuffer>;
    get size(): number;
    grow(size: number): void;
}

export declare class NodeStore {
    #private;
    isAbsent: boolean;
    count: number;
    dataBytes: number;
    largestData: number;
    mostChildren: number;
    pathChars: number;
    readonly namespaces: Namespaces;
    constructor(hashKey?: number);
    find(path: string, hash?: number): number;
    hash(path: string): number;
    findFromReader(body: Reader): number;
    resolve({ path, hash, index: at, }: {
        readonly path: string;
        readonly hash: number;
        readonly index: number;
    }): number;
    columns(node: number): NodeColumns;
    slot(node: number): number;
    pathOf(node: number): string;
    get used(): number;
    get freeBytes(): number;
    pathAt(node: number): string | undefined;
    add(path: string, parent: number, hash?: number): number;
    namespaceOf(node: number): number;
    remove(node: number, hash?: number): void;
    setData(node: number, data: Uint8Array | null): void;
    setInitialData(node: number, bytes: DataView, start: number, end: number): void;
    writeStat(node: number, owner: bigint, writer: Writer): void;
    writeStored(node: number, owner: bigint, writer: Writer): void;
    data(node: number): Uint8Array | null;
    ownArrayOf(node: number): Uint8Array | undefined;
    dataViewOf(node: number): DataView;
    parentOf(node: number): number;
    firstChildOf(node: number): number;
    nextOf(node: number): number;
    successor(node: number, top: number): number;
    successorBehind(node: number, top: number): number;
}

// core/tree/owners.d.ts

export type NodeSet = Pick<NumberSet, 'size' | 'has'> & Iterable<number>;

export declare class OwnerIndex {
    #private;
    readonly containers: NodeSet;
    readonly ttl: NodeSet;
    constructor(rules: OwnerRules);
    get ephemeralCount(): number;
    of(node: number): bigint;
    set(node: number, owner: bigint): void;
    delete(node: number): void;
    ofSession(session: SessionId): NodeSet;
    get sessionCount(): number;
    sessions(): Generator<SessionId, void>;
}

// core/tree/quotas.d.ts

export declare class QuotaIndex {
    #private;
    constructor(hashKey?: number);
    get size(): number;
    subjects(): Iterable<string>;
    add(subject: string): void;
    delete(subject: string): void;
    deepest(path: string): string | undefined;
}

// core/tree/tree.d.ts

export declare class Tree {
    #private;
    readonly acls: AclTable;
    readonly store: NodeStore;
    readonly owners: OwnerIndex;
    readonly quotas: QuotaIndex;
    lastZxid: Zxid;
    deletedVersion: number;
    constructor(options: TreeOptions);
    get options(): TreeOptions;
    matches(digest: Digest): boolean;
    get nodeCount(): number;
    get approximateDataSize(): number;
    get digest(): Digest | undefined;
    find(path: string): number;
    findWritten(path: string): number;
    has(path: string): boolean;
    statOf(node: number): StoredStat;
    writeStat(node: number, writer: Writer): void;
    writeStored(node: number, writer: Writer): void;
    writeData(node: number, writer: Writer): void;
    dataOf(node: number): Uint8Array | null;
    aclOf(node: number): readonly ACL[];
    aclIdOf(node: number): number;
    pathOf(node: number): string;
    childCount(node: number): number;
    apply(header: TxnHeader, txn: Txn, sink?: ChangeSink, part?: PartCallback, hint?: ApplyHint): number;
    applyPart(header: TxnHeader, txn: Txn, sink?: ChangeSink, part?: PartCallback, hint?: ApplyHint): number;
    beginApply(): void;
    recountQuotasInSteps(nodes: number): Generator<void>;
    endApply(zxid: Zxid): void;
    get isApplying(): boolean;
    whenConsistent(action: () => void): void;
    remove(zxid: Zxid, path: string, sink?: ChangeSink, ref?: NodeRef): number;
    scan(top?: number): TreeCursor;
    addTraversal(traversal: Traversal): () => void;
    clear(): void;
    loadNode(path: string, data: Uint8Array | null, aclId: number, stat: StoredStat): boolean;
    bulkLoader(): BulkLoader;
    endLoad(zxid: Zxid): void;
}

// core/tree/types.d.ts

export interface ApplyHint {
    readonly node: NodeRef | undefined;
    readonly crc: number;
}

export interface ChangeSink {
    readonly aclEntriesVisited?: number;
    created(path: string, acl: readonly ACL[], parent: string, parentAcl: readonly ACL[]): void;
    deleted(path: string, acl: readonly ACL[], parent: string, parentAcl: readonly ACL[]): void;
    dataChanged(path: string, acl: readonly ACL[]): void;
    readonly hasCrowds?: boolean;
    hasCrowd?(path: string): boolean;
    readonly hasWaiting?: boolean;
    notifyInSteps?(): Generator<void>;
}

export interface NodeRef {
    readonly path: string;
    readonly hash: number;
    index: number;
    readonly parent: NodeRef | undefined;
}

export type PartCallback = (txn: SubTxn, isApplied: boolean) => void;

export interface Traversable {
    readonly store: NodeStore;
    readonly lastZxid: Zxid;
    addTraversal(traversal: Traversal): () => void;
}

export interface Traversal {
    added(node: number, path: string): void;
    removing(node: number): void;
    applied(zxid: Zxid): void;
}

export interface TreeOptions extends OwnerRules {
    readonly digest: boolean;
    readonly hashKey?: number;
    readonly traffic?: NamespaceTraffic;
}

// core/types.d.ts

export interface CheckTxn {
    readonly type: typeof OpCode.check;
    readonly path: string;
    readonly version: number;
}

export interface CloseSessionTxn {
    readonly type: typeof OpCode.closeSession;
    readonly paths2Delete: readonly string[];
}

export interface CreateContainerTxn {
    readonly type: typeof OpCode.createContainer;
    readonly path: string;
    readonly data: Uint8Array | null;
    readonly acl: readonly ACL[];
    readonly parentCVersion: number;
}

export interface CreateSessionTxn {
    readonly type: typeof OpCode.createSession;
    readonly timeOut: number;
}

export interface CreateTTLTxn {
    readonly type: typeof OpCode.createTTL;
    readonly path: string;
    readonly data: Uint8Array | null;
    readonly acl: readonly ACL[];
    readonly parentCVersion: number;
    readonly ttl: number;
}

export interface CreateTxn {
    readonly type: typeof OpCode.create | typeof OpCode.create2;
    readonly path: string;
    readonly data: Uint8Array | null;
    readonly acl: readonly ACL[];
    readonly ephemeral: boolean;
    readonly parentCVersion: number;
}

export interface DeleteTxn {
    readonly type: typeof OpCode.delete | typeof OpCode.deleteContainer;
    readonly path: string;
}

export interface Digest {
    readonly hi: number;
    readonly lo: number;
}

export interface ErrorTxn {
    readonly type: typeof OpCode.error;
    readonly err: number;
}

export interface LoggedTxn {
    readonly header: TxnHeader;
    readonly txn: Txn;
    readonly digest: Digest | undefined;
}

export type MultiParts = readonly SubTxn[] | Packed;

export interface MultiTxn {
    readonly type: typeof OpCode.multi;
    readonly txns: MultiParts;
}

export interface Packed extends Iterable<SubTxn> {
    readonly length: number;
    readonly failure: ErrorTxn | undefined;
}

export type SessionId = bigint;

export interface SetACLTxn {
    readonly type: typeof OpCode.setACL;
    readonly path: string;
    readonly acl: readonly ACL[];
    readonly version: number;
}

export interface SetDataTxn {
    readonly type: typeof OpCode.setData | typeof OpCode.reconfig;
    readonly path: string;
    readonly data: Uint8Array | null;
    readonly version: number;
}

export interface StoredStat {
    readonly czxid: Zxid;
    readonly mzxid: Zxid;
    readonly pzxid: Zxid;
    readonly ctime: number;
    readonly mtime: number;
    readonly version: number;
    readonly cversion: number;
    readonly aversion: number;
    readonly owner: bigint;
}

export type SubTxn = CreateTxn | CreateContainerTxn | CreateTTLTxn | DeleteTxn | SetDataTxn | SetACLTxn | CheckTxn | ErrorTxn;

export type Txn = SubTxn | MultiTxn | CreateSessionTxn | CloseSessionTxn;

export interface TxnHeader {
    readonly sessionId: SessionId;
    readonly cxid: number;
    readonly zxid: Zxid;
    readonly time: number;
}

export type Zxid = number;

// node-server.d.ts

export interface ServerOptions {
    readonly logger?: Logger | undefined;
    readonly signal?: AbortSignal | undefined;
}

export declare function checkFiles(settings: GivenServerSettings): Promise<readonly FileProblem[]>;

export declare function createServer(settings: GivenServerSettings, { logger, signal }?: ServerOptions): Promise<Server>;

// persistence/data-folders.d.ts

export interface DataFolderSettings {
    readonly dataDir: string;
    readonly dataLogDir: string;
}

export interface DataFolders {
    readonly snapshots: string;
    readonly logs: string;
}

export declare const dataFoldersOf: ({ dataDir, dataLogDir }: DataFolderSettings) => DataFolders;

// persistence/epoch-files.d.ts

export declare function readEpochs(disk: Disk, folder: string): Promise<{
    readonly accepted: number | undefined;
    readonly current: number | undefined;
}>;

// persistence/epoch-starts.d.ts

export type EpochStarts = ReadonlyMap<number, Zxid>;

// persistence/errors.d.ts

export declare class DamageError extends Error {
    readonly name = "DamageError";
    readonly file: string;
    readonly offset: number;
    readonly action: string;
    constructor(what: string, file: string, offset: number, action: string, options?: ErrorOptions);
}

export declare class FolderLockedError extends Error {
    readonly name = "FolderLockedError";
    readonly code = "ELOCKED";
    constructor(folder: string, owner: string);
}

export declare class LogFullError extends Error {
    readonly name = "LogFullError";
    readonly code: string;
    constructor(folder: string, code: string, options?: ErrorOptions);
}

export declare class RecoveryError extends Error {
    readonly name = "RecoveryError";
    readonly folder: string;
    readonly action: string;
    constructor(what: string, folder: string, action: string, options?: ErrorOptions);
}

// persistence/feature-file.d.ts

export declare function readFeatureState(disk: Disk, folder: string): Promise<FeatureState>;

// persistence/file-names.d.ts

export interface NamedFile {
    readonly name: string;
    readonly zxid: Zxid;
}

export declare const VERSION_FOLDER = "version-2";

export declare const logsIn: (names: readonly string[]) => NamedFile[];

export declare const snapshotsIn: (names: readonly string[]) => NamedFile[];

// persistence/folder-lock.d.ts

export interface LockOwner {
    readonly pid: number;
    processIdentity(pid: number): string | undefined;
}

export declare function lockFolder(disk: Disk, folder: string, owner: LockOwner, token: string): Promise<() => Promise<void>>;

// persistence/heap-use.d.ts

export declare function memoryCheck({ clock, system, }: {
    readonly clock: Pick<Clock, 'monotonic'>;
    readonly system: Pick<System, 'heap' | 'memoryLimits'>;
}, tooLarge: () => Error): () => void;

// persistence/history.d.ts

export interface RawTxn {
    readonly zxid: Zxid;
    readonly payload: Uint8Array;
}

// persistence/log-range.d.ts

export declare class LogRange {
    #private;
    constructor(after: Zxid);
    get after(): Zxid;
    get upTo(): Zxid;
    get epochEnds(): readonly Zxid[];
    get epochStarts(): EpochStarts;
    add(zxid: Zxid, bytes: number): void;
    truncate(zxid: Zxid): void;
    dropBefore(first: Zxid): void;
    hasBetween(first: Zxid, second: Zxid): boolean;
    bytesAfter(zxid: Zxid): number;
}

// persistence/pause.d.ts

export type Pause = () => Promise<void> | undefined;

export declare function pauseAfter(clock: Pick<Clock, 'monotonic' | 'immediate'>, ms: number, check?: () => void): Pause;

// persistence/purge.d.ts

export interface PurgeOptions {
    readonly compression: Compression;
    readonly keepFrom?: Zxid;
    readonly unsavedAfter?: Zxid;
    readonly droppedUnsaved?: (bytes: number) => void;
}

export declare function purge(disk: Disk, folders: DataFolders, retain: number, options: PurgeOptions): Promise<string[]>;

// persistence/recover.d.ts

export interface ExactSnapshot {
    readonly file: string;
    readonly zxid: Zxid;
    readonly nodes: number;
    readonly digest: Digest | undefined;
}

export interface Recovery {
    readonly tree: Tree;
    readonly sessions: SessionMap<number>;
    readonly lastZxid: Zxid;
    readonly wasEmpty: boolean;
    readonly snapshot: string | undefined;
    readonly exactSnapshot: ExactSnapshot | undefined;
    readonly nodes: number;
    readonly snapshotMs: number;
    readonly logMs: number;
    readonly replayed: number;
    readonly logs: readonly string[];
    readonly skipped: readonly SkippedSnapshot[];
    readonly tornWrites: readonly TornWrite[];
    readonly logRange: LogRange;
    readonly canCompareDigests: boolean;
    readonly firstAboveLimit: TxnLocation | undefined;
}

export interface SkippedSnapshot {
    readonly file: string;
    readonly reason: string;
}

// persistence/replay.d.ts

export interface TornWrite {
    readonly file: string;
    readonly offset: number;
    readonly bytes: number;
}

export interface TxnLocation {
    readonly file: string;
    readonly offset: number;
    readonly zxid: Zxid;
}

// persistence/set-aside.d.ts

export declare const SET_ASIDE = "set-aside";

// persistence/tools/abandon-data.d.ts

export declare function abandonData(location: DatabaseLocation, { disk, logger }: {
    readonly disk: Disk;
    readonly logger: Logger;
}): Promise<{
    readonly folder: string;
}>;

// persistence/tools/chop-log.d.ts

export interface ChoppedLog {
    readonly kept: number;
    readonly last: Zxid;
}

export declare function chopLog(disk: Disk, file: string, zxid: Zxid, output: string): Promise<ChoppedLog>;

// persistence/tools/force-members.d.ts

export interface ForcedMembers {
    readonly from: Zxid;
    readonly to: Zxid;
    readonly epoch: number;
    readonly snapshot: string;
    readonly configuration: EnsembleConfiguration;
}

export interface MemberState extends DatabaseLocation {
    readonly lastZxid: Zxid;
    readonly acceptedEpoch: number | undefined;
    readonly currentEpoch: number | undefined;
    readonly nodes: number;
    readonly configuration: EnsembleConfiguration | undefined;
}

interface Tools {
    readonly disk: Disk;
    readonly compression: Compression;
    readonly logger: Logger;
}

export declare const compareStates: (a: MemberState, b: MemberState) => number;

export declare function forceMembers(location: DatabaseLocation, ids: readonly ServerId[], { known, random, ...tools }: Tools & {
    readonly random: Random;
    readonly known?: EnsembleConfiguration | undefined;
}): Promise<ForcedMembers>;

export declare function readMemberState(location: DatabaseLocation, tools: Tools): Promise<MemberState>;

// persistence/tools/initialize-data.d.ts

export declare function initializeData(disk: Disk, { dataDir, dataLogDir }: DatabaseLocation, serverId?: number): Promise<void>;

// persistence/tools/read-database.d.ts

export interface DatabaseContents {
    readonly snapshot: string | undefined;
    readonly replayed: number;
    readonly lastZxid: Zxid;
    readonly nodes: () => Generator<SnapshotNode>;
}

export interface DatabaseLocation {
    readonly dataDir: string;
    readonly dataLogDir: string;
}

export declare function readDatabase(disk: Disk, location: DatabaseLocation, compression: Compression, logger: Logger): Promise<DatabaseContents>;

// persistence/tools/read-log.d.ts

export interface LogRecord {
    readonly offset: number;
    readonly size: number;
    readonly bytes: Uint8Array;
    readonly logged: LoggedTxn;
}

export interface LogReport {
    readonly file: string;
    readonly state: LogState;
    readonly size: number;
    readonly transactions: number;
    readonly first: Zxid | undefined;
    readonly last: Zxid | undefined;
    readonly end: number;
    readonly problem: {
        readonly offset: number;
        readonly what: string;
        readonly action: string;
    } | undefined;
}

export type LogState = 'sound' | 'torn' | 'unmarked' | 'damaged';

export declare function readLog(disk: Disk, path: string, visit?: (record: LogRecord) => boolean | void): Promise<LogReport>;

// persistence/tools/read-snapshot.d.ts

export interface SnapshotContents {
    readonly file: string;
    readonly size: number;
    readonly zxid: Zxid;
    readonly lastZxid: Zxid | undefined;
    readonly nodeCount: number;
    readonly sessions: Iterable<readonly [SessionId, number]> & {
        readonly size: number;
    };
    readonly digest: {
        readonly value: string;
        readonly matches: boolean | undefined;
    } | undefined;
    readonly nodes: () => Generator<SnapshotNode>;
}

export interface SnapshotNode {
    readonly path: string;
    readonly data: Uint8Array | null;
    readonly acl: readonly ACL[];
    readonly stat: StoredStat;
    readonly children: number;
}

export declare function nodesOf(tree: Tree): Generator<SnapshotNode>;

export declare function readSnapshot(disk: Disk, path: string, compression: Compression): Promise<SnapshotContents>;

// persistence/tools/renumber.d.ts

export interface RenumberOptions {
    readonly disk: Disk;
    readonly logger: Logger;
    readonly compression: Compression;
    readonly dataDir: string;
    readonly dataLogDir: string;
}

export interface Renumbering {
    readonly from: Zxid;
    readonly to: Zxid;
    readonly snapshot: string;
}

export declare function renumber(options: RenumberOptions): Promise<Renumbering>;

// persistence/tools/repair-log.d.ts

export interface LogRepair {
    readonly written: string | undefined;
    readonly backup: string | undefined;
    readonly kept: number;
    readonly last: Zxid | undefined;
    readonly bytesCut: number;
}

export interface RepairOptions {
    readonly output?: string;
    readonly force?: boolean;
}

export declare function repairLog(disk: Disk, report: LogReport, { output, force }?: RepairOptions): Promise<LogRepair | undefined>;

// persistence/tools/verify-audit.d.ts

export interface AuditVerification {
    readonly disk: Disk;
    readonly sha256: () => Hash;
    readonly wanted?: string | undefined;
    readonly onProgress?: (bytes: number) => boolean;
}

export declare function verifyAudit(files: readonly string[], { disk, sha256, wanted, onProgress }: AuditVerification): Promise<ChainState>;

// secret-files.d.ts

export interface OpenSecretFile {
    readonly key: string;
    readonly isConfiguration: boolean;
    readonly path: string;
    readonly evidence: string;
    readonly command: string;
}

export declare function openSecretFiles(settings: ServerSettings, disk: Disk): Promise<readonly OpenSecretFile[]>;

// server-types.d.ts

export interface Server {
    readonly addresses: {
        readonly client: Address;
    };
    readonly listeners: readonly ServedPort[];
    readonly failed: Promise<unknown>;
    readonly role: 'standalone' | 'looking' | 'leading' | 'following' | 'observing' | 'read-only';
    readonly epoch: number;
    readonly leader: number | undefined;
    readonly serving: boolean;
    readonly ready: boolean;
    readonly logger: Logger;
    stats(): ServerMetrics;
    snapshot(): Promise<void>;
    reload(): Promise<void>;
    yieldLeadership(): boolean;
    close(): Promise<void>;
}

export interface ServerMetrics {
    readonly lastZxid: number;
    readonly nodes: number;
    readonly sessions: number;
    readonly connections: number;
    readonly watches: number;
    readonly outstanding: number;
}

// server.d.ts

interface StartOptions {
    readonly featureLevel?: number;
    readonly signal?: AbortSignal | undefined;
}

export declare function createServer(settings: ServerSettings, platform: Platform, { featureLevel, signal }?: StartOptions): Promise<Server>;

// settings/admin-rows.d.ts

export declare const PROMETHEUS_PROVIDER = "org.apache.zookeeper.metrics.prometheus.PrometheusMetricsProvider";

// settings/admin-security.d.ts

export declare const usesAdminTls: ({ adminForceHttps, adminPortUnification }: ServerSettings) => boolean;

// settings/defaults.d.ts

export type GivenServerSettings = {
    readonly [Name in SettingName | 'ensemble']?: ServerSettings[Name] | undefined;
};

export declare function defaults(given?: GivenServerSettings): ServerSettings;

export declare function rowOf(name: SettingName): Row<unknown>;

export declare const settingNames: SettingName[];

// settings/load.d.ts

export interface LoadedSettings {
    readonly settings: ServerSettings | undefined;
    readonly findings: readonly Finding[];
    readonly origins: Readonly<Record<SettingName, string>>;
}

export interface SettingsSources {
    readonly file?: {
        readonly name: string;
        readonly text: string;
    };
    readonly environment?: Environment;
    readonly flags?: readonly {
        readonly flag: string;
        readonly key: string;
        readonly value: string;
    }[];
    readonly files: SettingsFiles;
}

export declare function loadSettings(sources: SettingsSources): LoadedSettings;

// settings/member-security.d.ts

export declare const sharesSessionSecret: (settings: ServerSettings) => boolean;

export declare const usesQuorumTls: (settings: ServerSettings) => boolean;

// settings/read-file.d.ts

export interface SettingsFiles {
    read(path: string): string | undefined;
    resolve(path: string): string;
}

// settings/row.d.ts

export interface DefaultInputs {
    readonly dataDir: string;
    readonly tickTimeMs: number;
    readonly juteMaxBufferBytes: number;
    readonly flushDelayMs: number;
    readonly slowRequestMs: number;
    readonly saslUsers: Readonly<Record<string, string>>;
    readonly secureClientPort: number | undefined;
    readonly sslProtocol: string;
    readonly quorumTlsProtocol: string;
}

export type Group = 'Storage and listening' | 'TLS and WebSockets' | 'Sessions' | 'Connections and requests' | 'Ensemble' | 'Security between members' | 'Log and snapshots' | 'Data tree' | 'Authentication and authorization' | 'Four-letter words' | 'Log' | 'Admin server' | 'Audit log' | 'Backups';

export interface Row<T> {
    readonly group: Group;
    readonly key: string;
    readonly property?: string;
    readonly type: ValueType<T>;
    readonly defaultValue: NoInfer<T> | ((inputs: DefaultInputs) => NoInfer<T>);
    readonly defaultText?: string;
    readonly apacheDefault?: string;
    readonly description: string;
    readonly isSecret?: true;
    readonly isPath?: true;
    readonly isSecretFile?: true;
    readonly isChangeable?: true;
    readonly isOwn?: true;
    readonly isPropertyOnly?: true;
}

// settings/schedule.d.ts

export type Schedule = number | string;

export declare function nextTime(when: Schedule, after: number): number | undefined;

// settings/sources.d.ts

export type Environment = Readonly<Record<string, string | undefined>>;

export interface Finding {
    readonly severity: 'error' | 'warning';
    readonly where: string;
    readonly key?: string;
    readonly text: string;
}

export interface SettingEntry {
    readonly key: string;
    readonly value: string;
    readonly where: string;
    readonly source: 'file' | 'property' | 'variable' | 'flag';
}

export declare function formatFinding({ where, key, text }: Finding): string;

export declare function parseZooCfg(text: string, name?: string): {
    entries: SettingEntry[];
    findings: Finding[];
};

export declare function settingsFromEnvironment(environment: Environment): {
    entries: SettingEntry[];
    findings: Finding[];
};

// settings/table.d.ts

export type Rows = typeof rows;

export type ServerSettings = {
    readonly [Name in SettingName]: Rows[Name] extends Row<infer T> ? T : never;
} & {
    readonly ensemble?: EnsembleConfiguration;
    readonly secretsInFile?: {
        readonly path: string;
        readonly keys: readonly string[];
    };
};

export type SettingName = keyof Rows;

export declare const rows: {
    readonly adminEnabled: Row<boolean>;
    readonly adminAddress: Row<string>;
    readonly adminPort: Row<number | undefined>;
    readonly adminCommandUrl: Row<string>;
    readonly adminIdleTimeoutMs: Row<number>;
    readonly adminMaxConnections: Row<number>;
    readonly adminTrustedProxies: Row<readonly string[]>;
    readonly adminHosts: Row<readonly string[]>;
    readonly adminAnonymous: Row<readonly ("health" | "local-view" | "metrics" | "view")[]>;
    readonly adminRoleMetrics: Row<readonly string[]>;
    readonly adminRoleView: Row<readonly string[]>;
    readonly adminRoleOperate: Row<readonly string[]>;
    readonly adminRoleBackup: Row<readonly string[]>;
    readonly adminRoleAdmin: Row<readonly string[]>;
    readonly adminTokensFile: Row<string | undefined>;
    readonly adminSnapshotEnabled: Row<boolean>;
    readonly adminRestoreEnabled: Row<boolean>;
    readonly adminRestoreMaxBytes: Row<number>;
    readonly adminRateLimitMs: Row<number>;
    readonly adminLivezStallMs: Row<number>;
    readonly adminForceHttps: Row<boolean>;
    readonly adminHstsMs: Row<number>;
    readonly adminPortUnification: Row<boolean>;
    readonly adminNeedClientAuth: Row<boolean>;
    readonly adminClientAuth: Row<"need" | "none" | "want">;
    readonly adminKeyStoreLocation: Row<string | undefined>;
    readonly adminKeyStorePassword: Row<string | undefined>;
    readonly adminKeyStorePasswordPath: Row<string | undefined>;
    readonly adminKeyStoreType: Row<"BCFKS" | "JKS" | "PEM" | "PKCS12" | undefined>;
    readonly adminTrustStoreLocation: Row<string | undefined>;
    readonly adminTrustStorePassword: Row<string | undefined>;
    readonly adminTrustStorePasswordPath: Row<string | undefined>;
    readonly adminTrustStoreType: Row<"BCFKS" | "JKS" | "PEM" | "PKCS12" | undefined>;
    readonly metricsProvider: Row<"org.apache.zookeeper.metrics.impl.DefaultMetricsProvider" | "org.apache.zookeeper.metrics.impl.NullMetricsProvider" | "org.apache.zookeeper.metrics.prometheus.PrometheusMetricsProvider">;
    readonly metricsHost: Row<string>;
    readonly metricsPort: Row<number>;
    readonly metricsExportRuntime: Row<boolean>;
    readonly metricsNames: Row<"3.10" | "3.9">;
    readonly stopDrainMs: Row<number>;
    readonly stopPermitMs: Row<number>;
    readonly extendedTypesEnabled: Row<boolean>;
    readonly containerCheckIntervalMs: Row<number>;
    readonly containerMaxPerMinute: Row<number>;
    readonly containerMaxNeverUsedMs: Row<number>;
    readonly enforceQuota: Row<boolean>;
    readonly quotaRequiresAdmin: Row<boolean>;
    readonly skipAcl: Row<boolean>;
    readonly eagerAclCheck: Row<boolean>;
    readonly superDigest: Row<string | undefined>;
    readonly digestAuthEnabled: Row<boolean>;
    readonly enforceAuthEnabled: Row<boolean>;
    readonly enforceAuthSchemes: Row<readonly string[]>;
    readonly fourLetterWords: Row<readonly string[]>;
    readonly auditEnabled: Row<boolean>;
    readonly auditFormat: Row<"apache" | "json">;
    readonly auditFile: Row<string | undefined>;
    readonly auditFileMaxBytes: Row<number>;
    readonly auditFileCount: Row<number>;
    readonly auditFsync: Row<boolean>;
    readonly auditChain: Row<boolean>;
    readonly auditOnFailure: Row<"continue" | "refuse">;
    readonly auditEvents: Row<readonly string[]>;
    readonly backupTargets: Row<readonly string[]>;
    readonly backupSchedule: Row<import("./schedule.ts").Schedule>;
    readonly backupVerifyMs: Row<number>;
    readonly backupLogIntervalMs: Row<number>;
    readonly backupRetain: Row<string | undefined>;
    readonly backupKeyFile: Row<string | undefined>;
    readonly backupMember: Row<string>;
    readonly backupRateBytes: Row<number>;
    readonly backupS3Endpoint: Row<string | undefined>;
    readonly backupS3Region: Row<string>;
    readonly backupS3CredentialsFile: Row<string | undefined>;
    readonly tickTimeMs: Row<number>;
    readonly minSessionTimeoutMs: Row<number>;
    readonly maxSessionTimeoutMs: Row<number>;
    readonly sessionSecretFile: Row<string | undefined>;
    readonly sessionSecretEnabled: Row<boolean>;
    readonly sessionlessTimeoutMs: Row<number>;
    readonly maxClientCnxns: Row<number>;
    readonly maxSessions: Row<number>;
    readonly clientMemoryBytes: Row<number>;
    readonly dataMemoryBytes: Row<number>;
    readonly maxCnxns: Row<number>;
    readonly globalOutstandingLimit: Row<number>;
    readonly juteMaxBufferBytes: Row<number>;
    readonly juteMaxBufferExtraBytes: Row<number>;
    readonly slowRequestMs: Row<number>;
    readonly slowRequestReadMs: Row<number>;
    readonly connectionThrottleTokens: Row<number>;
    readonly connectionThrottleFillTimeMs: Row<number>;
    readonly connectionThrottleFillCount: Row<number>;
    readonly logFormat: Row<"apache" | "json" | "text" | undefined>;
    readonly sslQuorum: Row<boolean>;
    readonly quorumPortUnification: Row<boolean>;
    readonly quorumKeyStoreLocation: Row<string | undefined>;
    readonly quorumKeyStorePassword: Row<string | undefined>;
    readonly quorumKeyStorePasswordPath: Row<string | undefined>;
    readonly quorumKeyStoreType: Row<"BCFKS" | "JKS" | "PEM" | "PKCS12" | undefined>;
    readonly quorumTrustStoreLocation: Row<string | undefined>;
    readonly quorumTrustStorePassword: Row<string | undefined>;
    readonly quorumTrustStorePasswordPath: Row<string | undefined>;
    readonly quorumTrustStoreType: Row<"BCFKS" | "JKS" | "PEM" | "PKCS12" | undefined>;
    readonly quorumTlsProtocol: Row<"TLSv1.2" | "TLSv1.3">;
    readonly quorumEnabledProtocols: Row<readonly ("TLSv1.2" | "TLSv1.3")[]>;
    readonly quorumCipherSuites: Row<readonly string[]>;
    readonly quorumClientAuth: Row<"need" | "none" | "want">;
    readonly quorumVerifiesHostNames: Row<boolean>;
    readonly quorumVerifiesClientHostNames: Row<boolean>;
    readonly quorumAllowedSubjects: Row<string | undefined>;
    readonly quorumCertificateUri: Row<string | undefined>;
    readonly quorumCrl: Row<boolean>;
    readonly quorumCrlLocation: Row<string | undefined>;
    readonly quorumHandshakeTimeoutMs: Row<number>;
    readonly quorumCertReload: Row<boolean>;
    readonly quorumSaslEnabled: Row<boolean>;
    readonly quorumLearnerRequiresSasl: Row<boolean>;
    readonly quorumServerRequiresSasl: Row<boolean>;
    readonly quorumLearnerSection: Row<string>;
    readonly quorumServerSection: Row<string>;
    readonly quorumSaslUsers: Row<Readonly<Record<string, string>>>;
    readonly quorumSaslUser: Row<string | undefined>;
    readonly quorumSaslPassword: Row<string | undefined>;
    readonly quorumUserOf: Row<Readonly<Record<string, string>>>;
    readonly quorumSecretFile: Row<string | undefined>;
    readonly quorumSecret: Row<string | undefined>;
    readonly initLimit: Row<number>;
    readonly syncLimit: Row<number>;
    readonly connectToLearnerMasterLimit: Row<number>;
    readonly connectRetryDelayMs: Row<number>;
    readonly electionAlg: Row<number>;
    readonly standaloneEnabled: Row<boolean>;
    readonly reconfigEnabled: Row<boolean>;
    readonly quorumListenOnAllIPs: Row<boolean>;
    readonly quorumAddressCheck: Row<boolean>;
    readonly quorumJoinerHosts: Row<readonly string[]>;
    readonly featureAuto: Row<boolean>;
    readonly observerMasterPort: Row<number>;
    readonly oraclePath: Row<string | undefined>;
    readonly peerType: Row<"observer" | "participant" | undefined>;
    readonly multiAddress: Row<boolean>;
    readonly commitLogCount: Row<number>;
    readonly snapshotSizeFactor: Row<number>;
    readonly truncateFromBytes: Row<number>;
    readonly maxUnsentBytes: Row<number>;
    readonly forceSnapshotSync: Row<boolean>;
    readonly maxConcurrentSnapSyncs: Row<number>;
    readonly leaderServes: Row<boolean>;
    readonly readOnlyModeEnabled: Row<boolean>;
    readonly localSessionsEnabled: Row<boolean>;
    readonly localSessionsUpgradingEnabled: Row<boolean>;
    readonly electionConnectTimeoutMs: Row<number>;
    readonly electionHelloTimeoutMs: Row<number>;
    readonly electionPortBindRetry: Row<number>;
    readonly minNotificationIntervalMs: Row<number>;
    readonly maxNotificationIntervalMs: Row<number>;
    readonly observerElectionDelayMs: Row<number>;
    readonly observerReconnectDelayMs: Row<number>;
    readonly saslUsers: Row<Readonly<Record<string, string>>>;
    readonly saslUsersFile: Row<string | undefined>;
    readonly jaasConfig: Row<string | undefined>;
    readonly saslServerSection: Row<string>;
    readonly saslAclScheme: Row<boolean>;
    readonly saslSuperUsers: Row<readonly string[]>;
    readonly saslSuperPassword: Row<string | undefined>;
    readonly requireSasl: Row<boolean>;
    readonly allowSaslFailedClients: Row<boolean>;
    readonly dataDir: Row<string>;
    readonly dataLogDir: Row<string>;
    readonly autoCreateDataDir: Row<boolean>;
    readonly autoCreateDatabase: Row<boolean>;
    readonly serverId: Row<number>;
    readonly clientPort: Row<number | undefined>;
    readonly clientPortAddress: Row<string | undefined>;
    readonly clientPortListenBacklog: Row<number>;
    readonly clientTcpKeepAlive: Row<boolean>;
    readonly forceSync: Row<boolean>;
    readonly fsyncWarningThresholdMs: Row<number>;
    readonly preAllocSizeBytes: Row<number>;
    readonly snapCount: Row<number>;
    readonly snapTreeShare: Row<number>;
    readonly snapSizeLimitBytes: Row<number>;
    readonly txnLogSizeLimitBytes: Row<number>;
    readonly flushDelayMs: Row<number>;
    readonly maxBatchSize: Row<number>;
    readonly snapshotCompression: Row<"gz" | "none" | "snappy">;
    readonly snapshotTrustEmpty: Row<boolean>;
    readonly digestEnabled: Row<boolean>;
    readonly purgeRetainCount: Row<number>;
    readonly purgeIntervalMs: Row<number>;
    readonly secureClientPort: Row<number | undefined>;
    readonly secureClientPortAddress: Row<string | undefined>;
    readonly sslKeyStoreLocation: Row<string | undefined>;
    readonly sslKeyStorePassword: Row<string | undefined>;
    readonly sslKeyStorePasswordPath: Row<string | undefined>;
    readonly sslKeyStoreType: Row<"BCFKS" | "JKS" | "PEM" | "PKCS12" | undefined>;
    readonly sslTrustStoreLocation: Row<string | undefined>;
    readonly sslTrustStorePassword: Row<string | undefined>;
    readonly sslTrustStorePasswordPath: Row<string | undefined>;
    readonly sslTrustStoreType: Row<"BCFKS" | "JKS" | "PEM" | "PKCS12" | undefined>;
    readonly sslProtocol: Row<"TLSv1.2" | "TLSv1.3">;
    readonly sslEnabledProtocols: Row<readonly ("TLSv1.2" | "TLSv1.3")[]>;
    readonly sslCipherSuites: Row<readonly string[]>;
    readonly sslClientAuth: Row<"need" | "none" | "want">;
    readonly portUnification: Row<boolean>;
    readonly sslCrl: Row<boolean>;
    readonly sslCrlLocation: Row<string | undefined>;
    readonly certReload: Row<boolean>;
    readonly tlsHandshakeLimit: Row<number>;
    readonly sslAuthProvider: Row<"x509">;
    readonly x509SuperUser: Row<string | undefined>;
    readonly x509IdType: Row<"SAN" | "SDN">;
    readonly x509SanType: Row<number>;
    readonly x509SanMatch: Row<string>;
    readonly x509SanExtract: Row<string>;
    readonly x509SanGroup: Row<number>;
    readonly webSocketPort: Row<number | undefined>;
    readonly webSocketPortAddress: Row<string>;
    readonly webSocketSecure: Row<boolean>;
    readonly webSocketPath: Row<string | undefined>;
    readonly webSocketOrigins: Row<readonly string[]>;
    readonly webSocketMaxMessage: Row<number>;
};

// settings/value-types.d.ts

export interface ValueType<T> {
    readonly read: (text: string) => T | undefined;
    readonly accepts: (value: unknown) => boolean;
    readonly expected: string;
    readonly unit: string;
    readonly show: (value: T) => string;
    readonly apacheReading?: (text: string) => string | undefined;
}

export declare function text(expected?: string): ValueType<string>;

// settings/warning-limits.d.ts

export declare const LATE_INTERVALS = 2;

export declare const MAX_DISK_USED = 85;

export declare const MIN_CERTIFICATE_DAYS = 30;
