// @zabra/protocol
//   ACL
//   ANYONE
//   AUTHENTICATED
//   AddWatchRequest
//   AuthPacket
//   BufferPool
//   CONTAINER_OWNER
//   CREATOR_ALL_ACL
//   CheckVersionRequest
//   CheckVersionTxn
//   CheckWatchesRequest
//   ClientInfo
//   CloseSessionTxn
//   ConnectRequest
//   ConnectRequestBase
//   ConnectResponse
//   ConnectResponseBase
//   Create2Response
//   CreateContainerTxn
//   CreateMode
//   CreateRequest
//   CreateResponse
//   CreateSessionTxn
//   CreateTTLRequest
//   CreateTTLTxn
//   CreateTxn
//   CreateTxnV0
//   DeleteContainerRequest
//   DeleteRequest
//   DeleteTxn
//   DigestMd5Client
//   DigestMd5ClientOptions
//   DigestMd5FailureReason
//   DigestMd5Result
//   DigestMd5Server
//   DigestMd5ServerOptions
//   ErrorCode
//   ErrorInfo
//   ErrorName
//   ErrorResponse
//   ErrorTxn
//   EventType
//   ExistsRequest
//   ExistsResponse
//   FileHeader
//   FrameSplitter
//   FrameSplitterOptions
//   GetACLRequest
//   GetACLResponse
//   GetAllChildrenNumberRequest
//   GetAllChildrenNumberResponse
//   GetChildren2Request
//   GetChildren2Response
//   GetChildrenRequest
//   GetChildrenResponse
//   GetDataRequest
//   GetDataResponse
//   GetEphemeralsRequest
//   GetEphemeralsResponse
//   GetSASLRequest
//   Id
//   KeeperState
//   LearnerInfo
//   MAX_EPOCH
//   MAX_TTL
//   MultiHeader
//   MultiOperation
//   MultiResult
//   MultiTxn
//   NonceSource
//   OPEN_ACL_BYTES
//   OPEN_ACL_UNSAFE
//   OpCode
//   OwnerKind
//   OwnerRules
//   Perms
//   PooledBuffer
//   ProtocolError
//   QuorumAuthPacket
//   QuorumPacket
//   READ_ACL_UNSAFE
//   Reader
//   ReconfigRequest
//   RemoveWatchesRequest
//   ReplyHeader
//   RequestHeader
//   SaslClient
//   SaslError
//   SetACLRequest
//   SetACLResponse
//   SetACLTxn
//   SetDataRequest
//   SetDataResponse
//   SetDataTxn
//   SetSASLResponse
//   SetWatches
//   SetWatches2
//   Stat
//   StatPersisted
//   SyncRequest
//   SyncResponse
//   Txn
//   TxnDigest
//   TxnHeader
//   WatchMode
//   WatcherEvent
//   WatcherType
//   WhoAmIResponse
//   Writer
//   Xid
//   aclEquals
//   adler32
//   allocateBuffer
//   childPath
//   concatBytes
//   copyRange
//   counterOf
//   crc32
//   crc32Text
//   digestId
//   epochOf
//   errorName
//   errors
//   formatPerms
//   formatZxid
//   hmacSha256
//   isCreateMode
//   isEphemeral
//   isSequential
//   isTtl
//   makeZxid
//   md5
//   nameOf
//   nonceSource
//   ownerKind
//   parentOf
//   readACL
//   readACLList
//   readAddWatchRequest
//   readAuthPacket
//   readCheckVersionRequest
//   readCheckVersionTxn
//   readCheckWatchesRequest
//   readClientInfo
//   readClientInfoList
//   readCloseSessionTxn
//   readConnectRequest
//   readConnectRequestBase
//   readConnectResponse
//   readConnectResponseBase
//   readCreate2Response
//   readCreateContainerTxn
//   readCreateRequest
//   readCreateResponse
//   readCreateSessionTxn
//   readCreateTTLRequest
//   readCreateTTLTxn
//   readCreateTxn
//   readCreateTxnV0
//   readDeleteContainerRequest
//   readDeleteRequest
//   readDeleteTxn
//   readErrorResponse
//   readErrorTxn
//   readExistsRequest
//   readExistsResponse
//   readFileHeader
//   readGetACLRequest
//   readGetACLResponse
//   readGetAllChildrenNumberRequest
//   readGetAllChildrenNumberResponse
//   readGetChildren2Request
//   readGetChildren2Response
//   readGetChildrenRequest
//   readGetChildrenResponse
//   readGetDataRequest
//   readGetDataResponse
//   readGetEphemeralsRequest
//   readGetEphemeralsResponse
//   readGetSASLRequest
//   readId
//   readIdList
//   readLearnerInfo
//   readMultiHeader
//   readMultiRequest
//   readMultiResponse
//   readMultiTxn
//   readQuorumAuthPacket
//   readQuorumPacket
//   readReconfigRequest
//   readRemoveWatchesRequest
//   readReplyHeader
//   readRequestHeader
//   readSetACLRequest
//   readSetACLResponse
//   readSetACLTxn
//   readSetDataRequest
//   readSetDataResponse
//   readSetDataTxn
//   readSetSASLResponse
//   readSetWatches
//   readSetWatches2
//   readStat
//   readStatPersisted
//   readStringList
//   readSyncRequest
//   readSyncResponse
//   readText
//   readTxn
//   readTxnDigest
//   readTxnHeader
//   readTxnList
//   readWatcherEvent
//   readWhoAmIResponse
//   sha1
//   sha256
//   textByteLength
//   ttlOf
//   ttlOwner
//   validatePath
//   writeACL
//   writeACLList
//   writeAddWatchRequest
//   writeAuthPacket
//   writeCheckVersionRequest
//   writeCheckVersionTxn
//   writeCheckWatchesRequest
//   writeClientInfo
//   writeClientInfoList
//   writeCloseSessionTxn
//   writeConnectRequest
//   writeConnectRequestBase
//   writeConnectResponse
//   writeConnectResponseBase
//   writeCreate2Response
//   writeCreateContainerTxn
//   writeCreateRequest
//   writeCreateResponse
//   writeCreateSessionTxn
//   writeCreateTTLRequest
//   writeCreateTTLTxn
//   writeCreateTxn
//   writeCreateTxnV0
//   writeDeleteContainerRequest
//   writeDeleteRequest
//   writeDeleteTxn
//   writeErrorResponse
//   writeErrorTxn
//   writeExistsRequest
//   writeExistsResponse
//   writeFileHeader
//   writeGetACLRequest
//   writeGetACLResponse
//   writeGetAllChildrenNumberRequest
//   writeGetAllChildrenNumberResponse
//   writeGetChildren2Request
//   writeGetChildren2Response
//   writeGetChildrenRequest
//   writeGetChildrenResponse
//   writeGetDataRequest
//   writeGetDataResponse
//   writeGetEphemeralsRequest
//   writeGetEphemeralsResponse
//   writeGetSASLRequest
//   writeId
//   writeIdList
//   writeLearnerInfo
//   writeMultiHeader
//   writeMultiRequest
//   writeMultiResponse
//   writeMultiTxn
//   writeQuorumAuthPacket
//   writeQuorumPacket
//   writeReconfigRequest
//   writeRemoveWatchesRequest
//   writeReplyHeader
//   writeRequestHeader
//   writeSetACLRequest
//   writeSetACLResponse
//   writeSetACLTxn
//   writeSetDataRequest
//   writeSetDataResponse
//   writeSetDataTxn
//   writeSetSASLResponse
//   writeSetWatches
//   writeSetWatches2
//   writeStat
//   writeStatPersisted
//   writeStringList
//   writeSyncRequest
//   writeSyncResponse
//   writeText
//   writeTxn
//   writeTxnDigest
//   writeTxnHeader
//   writeTxnList
//   writeWatcherEvent
//   writeWhoAmIResponse

// gen/records.gen.d.ts

export declare const readACL: (r: Reader) => ACL;

export declare function readACLList(r: Reader): readonly (ACL)[] | null;

export declare const readAddWatchRequest: (r: Reader) => AddWatchRequest;

export declare const readAuthPacket: (r: Reader) => AuthPacket;

export declare const readCheckVersionRequest: (r: Reader) => CheckVersionRequest;

export declare const readCheckVersionTxn: (r: Reader) => CheckVersionTxn;

export declare const readCheckWatchesRequest: (r: Reader) => CheckWatchesRequest;

export declare const readClientInfo: (r: Reader) => ClientInfo;

export declare function readClientInfoList(r: Reader): readonly (ClientInfo)[] | null;

export declare const readCloseSessionTxn: (r: Reader) => CloseSessionTxn;

export declare const readConnectRequestBase: (r: Reader) => ConnectRequestBase;

export declare const readConnectResponseBase: (r: Reader) => ConnectResponseBase;

export declare const readCreate2Response: (r: Reader) => Create2Response;

export declare const readCreateContainerTxn: (r: Reader) => CreateContainerTxn;

export declare const readCreateRequest: (r: Reader) => CreateRequest;

export declare const readCreateResponse: (r: Reader) => CreateResponse;

export declare const readCreateSessionTxn: (r: Reader) => CreateSessionTxn;

export declare const readCreateTTLRequest: (r: Reader) => CreateTTLRequest;

export declare const readCreateTTLTxn: (r: Reader) => CreateTTLTxn;

export declare const readCreateTxn: (r: Reader) => CreateTxn;

export declare const readCreateTxnV0: (r: Reader) => CreateTxnV0;

export declare const readDeleteContainerRequest: (r: Reader) => DeleteContainerRequest;

export declare const readDeleteRequest: (r: Reader) => DeleteRequest;

export declare const readDeleteTxn: (r: Reader) => DeleteTxn;

export declare const readErrorResponse: (r: Reader) => ErrorResponse;

export declare const readErrorTxn: (r: Reader) => ErrorTxn;

export declare const readExistsRequest: (r: Reader) => ExistsRequest;

export declare const readExistsResponse: (r: Reader) => ExistsResponse;

export declare const readFileHeader: (r: Reader) => FileHeader;

export declare const readGetACLRequest: (r: Reader) => GetACLRequest;

export declare const readGetACLResponse: (r: Reader) => GetACLResponse;

export declare const readGetAllChildrenNumberRequest: (r: Reader) => GetAllChildrenNumberRequest;

export declare const readGetAllChildrenNumberResponse: (r: Reader) => GetAllChildrenNumberResponse;

export declare const readGetChildren2Request: (r: Reader) => GetChildren2Request;

export declare const readGetChildren2Response: (r: Reader) => GetChildren2Response;

export declare const readGetChildrenRequest: (r: Reader) => GetChildrenRequest;

export declare const readGetChildrenResponse: (r: Reader) => GetChildrenResponse;

export declare const readGetDataRequest: (r: Reader) => GetDataRequest;

export declare const readGetDataResponse: (r: Reader) => GetDataResponse;

export declare const readGetEphemeralsRequest: (r: Reader) => GetEphemeralsRequest;

export declare const readGetEphemeralsResponse: (r: Reader) => GetEphemeralsResponse;

export declare const readGetSASLRequest: (r: Reader) => GetSASLRequest;

export declare const readId: (r: Reader) => Id;

export declare function readIdList(r: Reader): readonly (Id)[] | null;

export declare const readLearnerInfo: (r: Reader) => LearnerInfo;

export declare const readMultiHeader: (r: Reader) => MultiHeader;

export declare const readMultiTxn: (r: Reader) => MultiTxn;

export declare const readQuorumAuthPacket: (r: Reader) => QuorumAuthPacket;

export declare const readQuorumPacket: (r: Reader) => QuorumPacket;

export declare const readReconfigRequest: (r: Reader) => ReconfigRequest;

export declare const readRemoveWatchesRequest: (r: Reader) => RemoveWatchesRequest;

export declare const readReplyHeader: (r: Reader) => ReplyHeader;

export declare const readRequestHeader: (r: Reader) => RequestHeader;

export declare const readSetACLRequest: (r: Reader) => SetACLRequest;

export declare const readSetACLResponse: (r: Reader) => SetACLResponse;

export declare const readSetACLTxn: (r: Reader) => SetACLTxn;

export declare const readSetDataRequest: (r: Reader) => SetDataRequest;

export declare const readSetDataResponse: (r: Reader) => SetDataResponse;

export declare const readSetDataTxn: (r: Reader) => SetDataTxn;

export declare const readSetSASLResponse: (r: Reader) => SetSASLResponse;

export declare const readSetWatches: (r: Reader) => SetWatches;

export declare const readSetWatches2: (r: Reader) => SetWatches2;

export declare const readStat: (r: Reader) => Stat;

export declare const readStatPersisted: (r: Reader) => StatPersisted;

export declare function readStringList(r: Reader): readonly (string | null)[] | null;

export declare const readSyncRequest: (r: Reader) => SyncRequest;

export declare const readSyncResponse: (r: Reader) => SyncResponse;

export declare const readTxn: (r: Reader) => Txn;

export declare const readTxnDigest: (r: Reader) => TxnDigest;

export declare const readTxnHeader: (r: Reader) => TxnHeader;

export declare function readTxnList(r: Reader): readonly (Txn)[] | null;

export declare const readWatcherEvent: (r: Reader) => WatcherEvent;

export declare const readWhoAmIResponse: (r: Reader) => WhoAmIResponse;

export declare const writeACL: (w: Writer, v: ACL) => void;

export declare function writeACLList(w: Writer, list: readonly (ACL)[] | null): void;

export declare const writeAddWatchRequest: (w: Writer, v: AddWatchRequest) => void;

export declare const writeAuthPacket: (w: Writer, v: AuthPacket) => void;

export declare const writeCheckVersionRequest: (w: Writer, v: CheckVersionRequest) => void;

export declare const writeCheckVersionTxn: (w: Writer, v: CheckVersionTxn) => void;

export declare const writeCheckWatchesRequest: (w: Writer, v: CheckWatchesRequest) => void;

export declare const writeClientInfo: (w: Writer, v: ClientInfo) => void;

export declare function writeClientInfoList(w: Writer, list: readonly (ClientInfo)[] | null): void;

export declare const writeCloseSessionTxn: (w: Writer, v: CloseSessionTxn) => void;

export declare const writeConnectRequestBase: (w: Writer, v: ConnectRequestBase) => void;

export declare const writeConnectResponseBase: (w: Writer, v: ConnectResponseBase) => void;

export declare const writeCreate2Response: (w: Writer, v: Create2Response) => void;

export declare const writeCreateContainerTxn: (w: Writer, v: CreateContainerTxn) => void;

export declare const writeCreateRequest: (w: Writer, v: CreateRequest) => void;

export declare const writeCreateResponse: (w: Writer, v: CreateResponse) => void;

export declare const writeCreateSessionTxn: (w: Writer, v: CreateSessionTxn) => void;

export declare const writeCreateTTLRequest: (w: Writer, v: CreateTTLRequest) => void;

export declare const writeCreateTTLTxn: (w: Writer, v: CreateTTLTxn) => void;

export declare const writeCreateTxn: (w: Writer, v: CreateTxn) => void;

export declare const writeCreateTxnV0: (w: Writer, v: CreateTxnV0) => void;

export declare const writeDeleteContainerRequest: (w: Writer, v: DeleteContainerRequest) => void;

export declare const writeDeleteRequest: (w: Writer, v: DeleteRequest) => void;

export declare const writeDeleteTxn: (w: Writer, v: DeleteTxn) => void;

export declare const writeErrorResponse: (w: Writer, v: ErrorResponse) => void;

export declare const writeErrorTxn: (w: Writer, v: ErrorTxn) => void;

export declare const writeExistsRequest: (w: Writer, v: ExistsRequest) => void;

export declare const writeExistsResponse: (w: Writer, v: ExistsResponse) => void;

export declare const writeFileHeader: (w: Writer, v: FileHeader) => void;

export declare const writeGetACLRequest: (w: Writer, v: GetACLRequest) => void;

export declare const writeGetACLResponse: (w: Writer, v: GetACLResponse) => void;

export declare const writeGetAllChildrenNumberRequest: (w: Writer, v: GetAllChildrenNumberRequest) => void;

export declare const writeGetAllChildrenNumberResponse: (w: Writer, v: GetAllChildrenNumberResponse) => void;

export declare const writeGetChildren2Request: (w: Writer, v: GetChildren2Request) => void;

export declare const writeGetChildren2Response: (w: Writer, v: GetChildren2Response) => void;

export declare const writeGetChildrenRequest: (w: Writer, v: GetChildrenRequest) => void;

export declare const writeGetChildrenResponse: (w: Writer, v: GetChildrenResponse) => void;

export declare const writeGetDataRequest: (w: Writer, v: GetDataRequest) => void;

export declare const writeGetDataResponse: (w: Writer, v: GetDataResponse) => void;

export declare const writeGetEphemeralsRequest: (w: Writer, v: GetEphemeralsRequest) => void;

export declare const writeGetEphemeralsResponse: (w: Writer, v: GetEphemeralsResponse) => void;

export declare const writeGetSASLRequest: (w: Writer, v: GetSASLRequest) => void;

export declare const writeId: (w: Writer, v: Id) => void;

export declare function writeIdList(w: Writer, list: readonly (Id)[] | null): void;

export declare const writeLearnerInfo: (w: Writer, v: LearnerInfo) => void;

export declare const writeMultiHeader: (w: Writer, v: MultiHeader) => void;

export declare const writeMultiTxn: (w: Writer, v: MultiTxn) => void;

export declare const writeQuorumAuthPacket: (w: Writer, v: QuorumAuthPacket) => void;

export declare const writeQuorumPacket: (w: Writer, v: QuorumPacket) => void;

export declare const writeReconfigRequest: (w: Writer, v: ReconfigRequest) => void;

export declare const writeRemoveWatchesRequest: (w: Writer, v: RemoveWatchesRequest) => void;

export declare const writeReplyHeader: (w: Writer, v: ReplyHeader) => void;

export declare const writeRequestHeader: (w: Writer, v: RequestHeader) => void;

export declare const writeSetACLRequest: (w: Writer, v: SetACLRequest) => void;

export declare const writeSetACLResponse: (w: Writer, v: SetACLResponse) => void;

export declare const writeSetACLTxn: (w: Writer, v: SetACLTxn) => void;

export declare const writeSetDataRequest: (w: Writer, v: SetDataRequest) => void;

export declare const writeSetDataResponse: (w: Writer, v: SetDataResponse) => void;

export declare const writeSetDataTxn: (w: Writer, v: SetDataTxn) => void;

export declare const writeSetSASLResponse: (w: Writer, v: SetSASLResponse) => void;

export declare const writeSetWatches: (w: Writer, v: SetWatches) => void;

export declare const writeSetWatches2: (w: Writer, v: SetWatches2) => void;

export declare const writeStat: (w: Writer, v: Stat) => void;

export declare const writeStatPersisted: (w: Writer, v: StatPersisted) => void;

export declare function writeStringList(w: Writer, list: readonly (string | null)[] | null): void;

export declare const writeSyncRequest: (w: Writer, v: SyncRequest) => void;

export declare const writeSyncResponse: (w: Writer, v: SyncResponse) => void;

export declare const writeTxn: (w: Writer, v: Txn) => void;

export declare const writeTxnDigest: (w: Writer, v: TxnDigest) => void;

export declare const writeTxnHeader: (w: Writer, v: TxnHeader) => void;

export declare function writeTxnList(w: Writer, list: readonly (Txn)[] | null): void;

export declare const writeWatcherEvent: (w: Writer, v: WatcherEvent) => void;

export declare const writeWhoAmIResponse: (w: Writer, v: WhoAmIResponse) => void;

// handshake.d.ts

export interface ConnectRequest extends ConnectRequestBase {
    readonly readOnly?: boolean | undefined;
}

export interface ConnectResponse extends ConnectResponseBase {
    readonly readOnly?: boolean | undefined;
}

export declare function readConnectRequest(r: Reader): ConnectRequest;

export declare function readConnectResponse(r: Reader): ConnectResponse;

export declare function writeConnectRequest(w: Writer, v: ConnectRequest): void;

export declare function writeConnectResponse(w: Writer, v: ConnectResponse): void;

// multi.d.ts

export type MultiOperation = ({
    readonly type: typeof OpCode.create | typeof OpCode.create2 | typeof OpCode.createContainer;
} & schema.CreateRequest) | ({
    readonly type: typeof OpCode.createTTL;
} & schema.CreateTTLRequest) | ({
    readonly type: typeof OpCode.delete;
} & schema.DeleteRequest) | ({
    readonly type: typeof OpCode.setData;
} & schema.SetDataRequest) | ({
    readonly type: typeof OpCode.check;
} & schema.CheckVersionRequest) | ({
    readonly type: typeof OpCode.getData;
} & schema.GetDataRequest) | ({
    readonly type: typeof OpCode.getChildren;
} & schema.GetChildrenRequest);

export type MultiResult = ({
    readonly type: typeof OpCode.create;
} & schema.CreateResponse) | ({
    readonly type: typeof OpCode.create2;
} & schema.Create2Response) | {
    readonly type: typeof OpCode.delete | typeof OpCode.check;
} | ({
    readonly type: typeof OpCode.setData;
} & schema.SetDataResponse) | ({
    readonly type: typeof OpCode.getData;
} & schema.GetDataResponse) | ({
    readonly type: typeof OpCode.getChildren;
} & schema.GetChildrenResponse) | ({
    readonly type: typeof OpCode.error;
} & schema.ErrorResponse);

export declare function readMultiRequest(r: Reader, limit?: number): MultiOperation[];

export declare function readMultiResponse(r: Reader): MultiResult[];

export declare function writeMultiRequest(w: Writer, operations: readonly MultiOperation[]): void;

export declare function writeMultiResponse(w: Writer, results: readonly MultiResult[]): void;

// sasl/digest-md5.d.ts

export declare class DigestMd5Client implements SaslClient {
    #private;
    readonly name = "DIGEST-MD5";
    constructor(options: DigestMd5ClientOptions);
    step(challenge?: Uint8Array | null): Promise<Uint8Array | undefined>;
}

export interface DigestMd5ClientOptions {
    readonly username: string;
    readonly password: string;
    readonly service?: string | undefined;
    readonly host?: string | undefined;
    readonly realm?: string | undefined;
    readonly cnonce: NonceSource;
}

export type DigestMd5FailureReason = 'out of order' | 'malformed' | 'charset' | 'realm' | 'nonce' | 'nonce count' | 'qop' | 'digest-uri' | 'unknown user' | 'wrong password';

export type DigestMd5Result = {
    readonly ok: true;
    readonly user: string; /** The server's own proof. */
    readonly rspauth: Uint8Array;
} | {
    readonly ok: false;
    readonly reason: DigestMd5FailureReason;
 readonly user?: string;
};

export declare class DigestMd5Server {
    #private;
    constructor({ users, nonce, service, host, realm }: DigestMd5ServerOptions);
    challenge(): Uint8Array;
    evaluate(response: Uint8Array): DigestMd5Result;
}

export interface DigestMd5ServerOptions {
    readonly users: ReadonlyMap<string, string>;
    readonly nonce: NonceSource;
    readonly service?: string | undefined;
    readonly host?: string | undefined;
    readonly realm?: string | undefined;
}

export type NonceSource = () => string;

export interface SaslClient {
    readonly name: string;
    step(challenge?: Uint8Array | null): Promise<Uint8Array | undefined>;
}

export declare class SaslError extends Error {
    readonly name = "SaslError";
}

export declare const nonceSource: (random: (length: number) => Uint8Array) => NonceSource;

// schema/records.d.ts

export declare const ACL: import("./types.ts").Rec<{
    readonly perms: import("./types.ts").Wire<number>;
    readonly id: import("./types.ts").Rec<{
        readonly scheme: import("./types.ts").Wire<string | null>;
        readonly id: import("./types.ts").Wire<string | null>;
    }>;
}>;
export type ACL = TypeOf<typeof ACL>;

export declare const AddWatchRequest: import("./types.ts").Rec<{
    readonly path: import("./types.ts").Wire<string | null>;
    readonly mode: import("./types.ts").Wire<number>;
}>;
export type AddWatchRequest = TypeOf<typeof AddWatchRequest>;

export declare const AuthPacket: import("./types.ts").Rec<{
    readonly type: import("./types.ts").Wire<number>;
    readonly scheme: import("./types.ts").Wire<string | null>;
    readonly auth: import("./types.ts").Wire<Uint8Array<ArrayBufferLike> | null>;
}>;
export type AuthPacket = TypeOf<typeof AuthPacket>;

export declare const CheckVersionRequest: import("./types.ts").Rec<{
    readonly path: import("./types.ts").Wire<string | null>;
    readonly version: import("./types.ts").Wire<number>;
}>;
export type CheckVersionRequest = TypeOf<typeof CheckVersionRequest>;

export declare const CheckVersionTxn: import("./types.ts").Rec<{
    readonly path: import("./types.ts").Wire<string | null>;
    readonly version: import("./types.ts").Wire<number>;
}>;
export type CheckVersionTxn = TypeOf<typeof CheckVersionTxn>;

export declare const CheckWatchesRequest: import("./types.ts").Rec<{
    readonly path: import("./types.ts").Wire<string | null>;
    readonly type: import("./types.ts").Wire<number>;
}>;
export type CheckWatchesRequest = TypeOf<typeof CheckWatchesRequest>;

export declare const ClientInfo: import("./types.ts").Rec<{
    readonly authScheme: import("./types.ts").Wire<string | null>;
    readonly user: import("./types.ts").Wire<string | null>;
}>;
export type ClientInfo = TypeOf<typeof ClientInfo>;

export declare const CloseSessionTxn: import("./types.ts").Rec<{
    readonly paths2Delete: import("./types.ts").Wire<readonly (string | null)[] | null>;
}>;
export type CloseSessionTxn = TypeOf<typeof CloseSessionTxn>;

export declare const ConnectRequestBase: import("./types.ts").Rec<{
    readonly protocolVersion: import("./types.ts").Wire<number>;
    readonly lastZxidSeen: import("./types.ts").Wire<bigint>;
    readonly timeOut: import("./types.ts").Wire<number>;
    readonly sessionId: import("./types.ts").Wire<bigint>;
    readonly passwd: import("./types.ts").Wire<Uint8Array<ArrayBufferLike> | null>;
}>;
export type ConnectRequestBase = TypeOf<typeof ConnectRequestBase>;

export declare const ConnectResponseBase: import("./types.ts").Rec<{
    readonly protocolVersion: import("./types.ts").Wire<number>;
    readonly timeOut: import("./types.ts").Wire<number>;
    readonly sessionId: import("./types.ts").Wire<bigint>;
    readonly passwd: import("./types.ts").Wire<Uint8Array<ArrayBufferLike> | null>;
}>;
export type ConnectResponseBase = TypeOf<typeof ConnectResponseBase>;

export declare const Create2Response: import("./types.ts").Rec<{
    readonly path: import("./types.ts").Wire<string | null>;
    readonly stat: import("./types.ts").Rec<{
        readonly czxid: import("./types.ts").Wire<bigint>;
        readonly mzxid: import("./types.ts").Wire<bigint>;
        readonly ctime: import("./types.ts").Wire<bigint>;
        readonly mtime: import("./types.ts").Wire<bigint>;
        readonly version: import("./types.ts").Wire<number>;
        readonly cversion: import("./types.ts").Wire<number>;
        readonly aversion: import("./types.ts").Wire<number>;
        readonly ephemeralOwner: import("./types.ts").Wire<bigint>;
        readonly dataLength: import("./types.ts").Wire<number>;
        readonly numChildren: import("./types.ts").Wire<number>;
        readonly pzxid: import("./types.ts").Wire<bigint>;
    }>;
}>;
export type Create2Response = TypeOf<typeof Create2Response>;

export declare const CreateContainerTxn: import("./types.ts").Rec<{
    readonly path: import("./types.ts").Wire<string | null>;
    readonly data: import("./types.ts").Wire<Uint8Array<ArrayBufferLike> | null>;
    readonly acl: import("./types.ts").Wire<readonly {
        readonly perms: number;
        readonly id: {
            readonly scheme: string | null;
            readonly id: string | null;
        };
    }[] | null>;
    readonly parentCVersion: import("./types.ts").Wire<number>;
}>;
export type CreateContainerTxn = TypeOf<typeof CreateContainerTxn>;

export declare const CreateRequest: import("./types.ts").Rec<{
    readonly path: import("./types.ts").Wire<string | null>;
    readonly data: import("./types.ts").Wire<Uint8Array<ArrayBufferLike> | null>;
    readonly acl: import("./types.ts").Wire<readonly {
        readonly perms: number;
        readonly id: {
            readonly scheme: string | null;
            readonly id: string | null;
        };
    }[] | null>;
    readonly flags: import("./types.ts").Wire<number>;
}>;
export type CreateRequest = TypeOf<typeof CreateRequest>;

export declare const CreateResponse: import("./types.ts").Rec<{
    readonly path: import("./types.ts").Wire<string | null>;
}>;
export type CreateResponse = TypeOf<typeof CreateResponse>;

export declare const CreateSessionTxn: import("./types.ts").Rec<{
    readonly timeOut: import("./types.ts").Wire<number>;
}>;
export type CreateSessionTxn = TypeOf<typeof CreateSessionTxn>;

export declare const CreateTTLRequest: import("./types.ts").Rec<{
    readonly path: import("./types.ts").Wire<string | null>;
    readonly data: import("./types.ts").Wire<Uint8Array<ArrayBufferLike> | null>;
    readonly acl: import("./types.ts").Wire<readonly {
        readonly perms: number;
        readonly id: {
            readonly scheme: string | null;
            readonly id: string | null;
        };
    }[] | null>;
    readonly flags: import("./types.ts").Wire<number>;
    readonly ttl: import("./types.ts").Wire<bigint>;
}>;
export type CreateTTLRequest = TypeOf<typeof CreateTTLRequest>;

export declare const CreateTTLTxn: import("./types.ts").Rec<{
    readonly path: import("./types.ts").Wire<string | null>;
    readonly data: import("./types.ts").Wire<Uint8Array<ArrayBufferLike> | null>;
    readonly acl: import("./types.ts").Wire<readonly {
        readonly perms: number;
        readonly id: {
            readonly scheme: string | null;
            readonly id: string | null;
        };
    }[] | null>;
    readonly parentCVersion: import("./types.ts").Wire<number>;
    readonly ttl: import("./types.ts").Wire<bigint>;
}>;
export type CreateTTLTxn = TypeOf<typeof CreateTTLTxn>;

export declare const CreateTxn: import("./types.ts").Rec<{
    readonly path: import("./types.ts").Wire<string | null>;
    readonly data: import("./types.ts").Wire<Uint8Array<ArrayBufferLike> | null>;
    readonly acl: import("./types.ts").Wire<readonly {
        readonly perms: number;
        readonly id: {
            readonly scheme: string | null;
            readonly id: string | null;
        };
    }[] | null>;
    readonly ephemeral: import("./types.ts").Wire<boolean>;
    readonly parentCVersion: import("./types.ts").Wire<number>;
}>;
export type CreateTxn = TypeOf<typeof CreateTxn>;

export declare const CreateTxnV0: import("./types.ts").Rec<{
    readonly path: import("./types.ts").Wire<string | null>;
    readonly data: import("./types.ts").Wire<Uint8Array<ArrayBufferLike> | null>;
    readonly acl: import("./types.ts").Wire<readonly {
        readonly perms: number;
        readonly id: {
            readonly scheme: string | null;
            readonly id: string | null;
        };
    }[] | null>;
    readonly ephemeral: import("./types.ts").Wire<boolean>;
}>;
export type CreateTxnV0 = TypeOf<typeof CreateTxnV0>;

export declare const DeleteContainerRequest: import("./types.ts").Rec<{
    readonly path: import("./types.ts").Wire<Uint8Array<ArrayBufferLike> | null>;
}>;
export type DeleteContainerRequest = TypeOf<typeof DeleteContainerRequest>;

export declare const DeleteRequest: import("./types.ts").Rec<{
    readonly path: import("./types.ts").Wire<string | null>;
    readonly version: import("./types.ts").Wire<number>;
}>;
export type DeleteRequest = TypeOf<typeof DeleteRequest>;

export declare const DeleteTxn: import("./types.ts").Rec<{
    readonly path: import("./types.ts").Wire<string | null>;
}>;
export type DeleteTxn = TypeOf<typeof DeleteTxn>;

export declare const ErrorResponse: import("./types.ts").Rec<{
    readonly err: import("./types.ts").Wire<number>;
}>;
export type ErrorResponse = TypeOf<typeof ErrorResponse>;

export declare const ErrorTxn: import("./types.ts").Rec<{
    readonly err: import("./types.ts").Wire<number>;
}>;
export type ErrorTxn = TypeOf<typeof ErrorTxn>;

export declare const ExistsRequest: import("./types.ts").Rec<{
    readonly path: import("./types.ts").Wire<string | null>;
    readonly watch: import("./types.ts").Wire<boolean>;
}>;
export type ExistsRequest = TypeOf<typeof ExistsRequest>;

export declare const ExistsResponse: import("./types.ts").Rec<{
    readonly stat: import("./types.ts").Rec<{
        readonly czxid: import("./types.ts").Wire<bigint>;
        readonly mzxid: import("./types.ts").Wire<bigint>;
        readonly ctime: import("./types.ts").Wire<bigint>;
        readonly mtime: import("./types.ts").Wire<bigint>;
        readonly version: import("./types.ts").Wire<number>;
        readonly cversion: import("./types.ts").Wire<number>;
        readonly aversion: import("./types.ts").Wire<number>;
        readonly ephemeralOwner: import("./types.ts").Wire<bigint>;
        readonly dataLength: import("./types.ts").Wire<number>;
        readonly numChildren: import("./types.ts").Wire<number>;
        readonly pzxid: import("./types.ts").Wire<bigint>;
    }>;
}>;
export type ExistsResponse = TypeOf<typeof ExistsResponse>;

export declare const FileHeader: import("./types.ts").Rec<{
    readonly magic: import("./types.ts").Wire<number>;
    readonly version: import("./types.ts").Wire<number>;
    readonly dbid: import("./types.ts").Wire<bigint>;
}>;
export type FileHeader = TypeOf<typeof FileHeader>;

export declare const GetACLRequest: import("./types.ts").Rec<{
    readonly path: import("./types.ts").Wire<string | null>;
}>;
export type GetACLRequest = TypeOf<typeof GetACLRequest>;

export declare const GetACLResponse: import("./types.ts").Rec<{
    readonly acl: import("./types.ts").Wire<readonly {
        readonly perms: number;
        readonly id: {
            readonly scheme: string | null;
            readonly id: string | null;
        };
    }[] | null>;
    readonly stat: import("./types.ts").Rec<{
        readonly czxid: import("./types.ts").Wire<bigint>;
        readonly mzxid: import("./types.ts").Wire<bigint>;
        readonly ctime: import("./types.ts").Wire<bigint>;
        readonly mtime: import("./types.ts").Wire<bigint>;
        readonly version: import("./types.ts").Wire<number>;
        readonly cversion: import("./types.ts").Wire<number>;
        readonly aversion: import("./types.ts").Wire<number>;
        readonly ephemeralOwner: import("./types.ts").Wire<bigint>;
        readonly dataLength: import("./types.ts").Wire<number>;
        readonly numChildren: import("./types.ts").Wire<number>;
        readonly pzxid: import("./types.ts").Wire<bigint>;
    }>;
}>;
export type GetACLResponse = TypeOf<typeof GetACLResponse>;

export declare const GetAllChildrenNumberRequest: import("./types.ts").Rec<{
    readonly path: import("./types.ts").Wire<string | null>;
}>;
export type GetAllChildrenNumberRequest = TypeOf<typeof GetAllChildrenNumberRequest>;

export declare const GetAllChildrenNumberResponse: import("./types.ts").Rec<{
    readonly totalNumber: import("./types.ts").Wire<number>;
}>;
export type GetAllChildrenNumberResponse = TypeOf<typeof GetAllChildrenNumberResponse>;

export declare const GetChildren2Request: import("./types.ts").Rec<{
    readonly path: import("./types.ts").Wire<string | null>;
    readonly watch: import("./types.ts").Wire<boolean>;
}>;
export type GetChildren2Request = TypeOf<typeof GetChildren2Request>;

export declare const GetChildren2Response: import("./types.ts").Rec<{
    readonly children: import("./types.ts").Wire<readonly (string | null)[] | null>;
    readonly stat: import("./types.ts").Rec<{
        readonly czxid: import("./types.ts").Wire<bigint>;
        readonly mzxid: import("./types.ts").Wire<bigint>;
        readonly ctime: import("./types.ts").Wire<bigint>;
        readonly mtime: import("./types.ts").Wire<bigint>;
        readonly version: import("./types.ts").Wire<number>;
        readonly cversion: import("./types.ts").Wire<number>;
        readonly aversion: import("./types.ts").Wire<number>;
        readonly ephemeralOwner: import("./types.ts").Wire<bigint>;
        readonly dataLength: import("./types.ts").Wire<number>;
        readonly numChildren: import("./types.ts").Wire<number>;
        readonly pzxid: import("./types.ts").Wire<bigint>;
    }>;
}>;
export type GetChildren2Response = TypeOf<typeof GetChildren2Response>;

export declare const GetChildrenRequest: import("./types.ts").Rec<{
    readonly path: import("./types.ts").Wire<string | null>;
    readonly watch: import("./types.ts").Wire<boolean>;
}>;
export type GetChildrenRequest = TypeOf<typeof GetChildrenRequest>;

export declare const GetChildrenResponse: import("./types.ts").Rec<{
    readonly children: import("./types.ts").Wire<readonly (string | null)[] | null>;
}>;
export type GetChildrenResponse = TypeOf<typeof GetChildrenResponse>;

export declare const GetDataRequest: import("./types.ts").Rec<{
    readonly path: import("./types.ts").Wire<string | null>;
    readonly watch: import("./types.ts").Wire<boolean>;
}>;
export type GetDataRequest = TypeOf<typeof GetDataRequest>;

export declare const GetDataResponse: import("./types.ts").Rec<{
    readonly data: import("./types.ts").Wire<Uint8Array<ArrayBufferLike> | null>;
    readonly stat: import("./types.ts").Rec<{
        readonly czxid: import("./types.ts").Wire<bigint>;
        readonly mzxid: import("./types.ts").Wire<bigint>;
        readonly ctime: import("./types.ts").Wire<bigint>;
        readonly mtime: import("./types.ts").Wire<bigint>;
        readonly version: import("./types.ts").Wire<number>;
        readonly cversion: import("./types.ts").Wire<number>;
        readonly aversion: import("./types.ts").Wire<number>;
        readonly ephemeralOwner: import("./types.ts").Wire<bigint>;
        readonly dataLength: import("./types.ts").Wire<number>;
        readonly numChildren: import("./types.ts").Wire<number>;
        readonly pzxid: import("./types.ts").Wire<bigint>;
    }>;
}>;
export type GetDataResponse = TypeOf<typeof GetDataResponse>;

export declare const GetEphemeralsRequest: import("./types.ts").Rec<{
    readonly prefixPath: import("./types.ts").Wire<string | null>;
}>;
export type GetEphemeralsRequest = TypeOf<typeof GetEphemeralsRequest>;

export declare const GetEphemeralsResponse: import("./types.ts").Rec<{
    readonly ephemerals: import("./types.ts").Wire<readonly (string | null)[] | null>;
}>;
export type GetEphemeralsResponse = TypeOf<typeof GetEphemeralsResponse>;

export declare const GetSASLRequest: import("./types.ts").Rec<{
    readonly token: import("./types.ts").Wire<Uint8Array<ArrayBufferLike> | null>;
}>;
export type GetSASLRequest = TypeOf<typeof GetSASLRequest>;

export declare const Id: import("./types.ts").Rec<{
    readonly scheme: import("./types.ts").Wire<string | null>;
    readonly id: import("./types.ts").Wire<string | null>;
}>;
export type Id = TypeOf<typeof Id>;

export declare const LearnerInfo: import("./types.ts").Rec<{
    readonly serverid: import("./types.ts").Wire<bigint>;
    readonly protocolVersion: import("./types.ts").Wire<number>;
    readonly configVersion: import("./types.ts").Wire<bigint>;
}>;
export type LearnerInfo = TypeOf<typeof LearnerInfo>;

export declare const MultiHeader: import("./types.ts").Rec<{
    readonly type: import("./types.ts").Wire<number>;
    readonly done: import("./types.ts").Wire<boolean>;
    readonly err: import("./types.ts").Wire<number>;
}>;
export type MultiHeader = TypeOf<typeof MultiHeader>;

export declare const MultiTxn: import("./types.ts").Rec<{
    readonly txns: import("./types.ts").Wire<readonly {
        readonly type: number;
        readonly data: Uint8Array<ArrayBufferLike> | null;
    }[] | null>;
}>;
export type MultiTxn = TypeOf<typeof MultiTxn>;

export declare const QuorumAuthPacket: import("./types.ts").Rec<{
    readonly magic: import("./types.ts").Wire<bigint>;
    readonly status: import("./types.ts").Wire<number>;
    readonly token: import("./types.ts").Wire<Uint8Array<ArrayBufferLike> | null>;
}>;
export type QuorumAuthPacket = TypeOf<typeof QuorumAuthPacket>;

export declare const QuorumPacket: import("./types.ts").Rec<{
    readonly type: import("./types.ts").Wire<number>;
    readonly zxid: import("./types.ts").Wire<bigint>;
    readonly data: import("./types.ts").Wire<Uint8Array<ArrayBufferLike> | null>;
    readonly authinfo: import("./types.ts").Wire<readonly {
        readonly scheme: string | null;
        readonly id: string | null;
    }[] | null>;
}>;
export type QuorumPacket = TypeOf<typeof QuorumPacket>;

export declare const ReconfigRequest: import("./types.ts").Rec<{
    readonly joiningServers: import("./types.ts").Wire<string | null>;
    readonly leavingServers: import("./types.ts").Wire<string | null>;
    readonly newMembers: import("./types.ts").Wire<string | null>;
    readonly curConfigId: import("./types.ts").Wire<bigint>;
}>;
export type ReconfigRequest = TypeOf<typeof ReconfigRequest>;

export declare const RemoveWatchesRequest: import("./types.ts").Rec<{
    readonly path: import("./types.ts").Wire<string | null>;
    readonly type: import("./types.ts").Wire<number>;
}>;
export type RemoveWatchesRequest = TypeOf<typeof RemoveWatchesRequest>;

export declare const ReplyHeader: import("./types.ts").Rec<{
    readonly xid: import("./types.ts").Wire<number>;
    readonly zxid: import("./types.ts").Wire<bigint>;
    readonly err: import("./types.ts").Wire<number>;
}>;
export type ReplyHeader = TypeOf<typeof ReplyHeader>;

export declare const RequestHeader: import("./types.ts").Rec<{
    readonly xid: import("./types.ts").Wire<number>;
    readonly type: import("./types.ts").Wire<number>;
}>;
export type RequestHeader = TypeOf<typeof RequestHeader>;

export declare const SetACLRequest: import("./types.ts").Rec<{
    readonly path: import("./types.ts").Wire<string | null>;
    readonly acl: import("./types.ts").Wire<readonly {
        readonly perms: number;
        readonly id: {
            readonly scheme: string | null;
            readonly id: string | null;
        };
    }[] | null>;
    readonly version: import("./types.ts").Wire<number>;
}>;
export type SetACLRequest = TypeOf<typeof SetACLRequest>;

export declare const SetACLResponse: import("./types.ts").Rec<{
    readonly stat: import("./types.ts").Rec<{
        readonly czxid: import("./types.ts").Wire<bigint>;
        readonly mzxid: import("./types.ts").Wire<bigint>;
        readonly ctime: import("./types.ts").Wire<bigint>;
        readonly mtime: import("./types.ts").Wire<bigint>;
        readonly version: import("./types.ts").Wire<number>;
        readonly cversion: import("./types.ts").Wire<number>;
        readonly aversion: import("./types.ts").Wire<number>;
        readonly ephemeralOwner: import("./types.ts").Wire<bigint>;
        readonly dataLength: import("./types.ts").Wire<number>;
        readonly numChildren: import("./types.ts").Wire<number>;
        readonly pzxid: import("./types.ts").Wire<bigint>;
    }>;
}>;
export type SetACLResponse = TypeOf<typeof SetACLResponse>;

export declare const SetACLTxn: import("./types.ts").Rec<{
    readonly path: import("./types.ts").Wire<string | null>;
    readonly acl: import("./types.ts").Wire<readonly {
        readonly perms: number;
        readonly id: {
            readonly scheme: string | null;
            readonly id: string | null;
        };
    }[] | null>;
    readonly version: import("./types.ts").Wire<number>;
}>;
export type SetACLTxn = TypeOf<typeof SetACLTxn>;

export declare const SetDataRequest: import("./types.ts").Rec<{
    readonly path: import("./types.ts").Wire<string | null>;
    readonly data: import("./types.ts").Wire<Uint8Array<ArrayBufferLike> | null>;
    readonly version: import("./types.ts").Wire<number>;
}>;
export type SetDataRequest = TypeOf<typeof SetDataRequest>;

export declare const SetDataResponse: import("./types.ts").Rec<{
    readonly stat: import("./types.ts").Rec<{
        readonly czxid: import("./types.ts").Wire<bigint>;
        readonly mzxid: import("./types.ts").Wire<bigint>;
        readonly ctime: import("./types.ts").Wire<bigint>;
        readonly mtime: import("./types.ts").Wire<bigint>;
        readonly version: import("./types.ts").Wire<number>;
        readonly cversion: import("./types.ts").Wire<number>;
        readonly aversion: import("./types.ts").Wire<number>;
        readonly ephemeralOwner: import("./types.ts").Wire<bigint>;
        readonly dataLength: import("./types.ts").Wire<number>;
        readonly numChildren: import("./types.ts").Wire<number>;
        readonly pzxid: import("./types.ts").Wire<bigint>;
    }>;
}>;
export type SetDataResponse = TypeOf<typeof SetDataResponse>;

export declare const SetDataTxn: import("./types.ts").Rec<{
    readonly path: import("./types.ts").Wire<string | null>;
    readonly data: import("./types.ts").Wire<Uint8Array<ArrayBufferLike> | null>;
    readonly version: import("./types.ts").Wire<number>;
}>;
export type SetDataTxn = TypeOf<typeof SetDataTxn>;

export declare const SetSASLResponse: import("./types.ts").Rec<{
    readonly token: import("./types.ts").Wire<Uint8Array<ArrayBufferLike> | null>;
}>;
export type SetSASLResponse = TypeOf<typeof SetSASLResponse>;

export declare const SetWatches: import("./types.ts").Rec<{
    readonly relativeZxid: import("./types.ts").Wire<bigint>;
    readonly dataWatches: import("./types.ts").Wire<readonly (string | null)[] | null>;
    readonly existWatches: import("./types.ts").Wire<readonly (string | null)[] | null>;
    readonly childWatches: import("./types.ts").Wire<readonly (string | null)[] | null>;
}>;
export type SetWatches = TypeOf<typeof SetWatches>;

export declare const SetWatches2: import("./types.ts").Rec<{
    readonly relativeZxid: import("./types.ts").Wire<bigint>;
    readonly dataWatches: import("./types.ts").Wire<readonly (string | null)[] | null>;
    readonly existWatches: import("./types.ts").Wire<readonly (string | null)[] | null>;
    readonly childWatches: import("./types.ts").Wire<readonly (string | null)[] | null>;
    readonly persistentWatches: import("./types.ts").Wire<readonly (string | null)[] | null>;
    readonly persistentRecursiveWatches: import("./types.ts").Wire<readonly (string | null)[] | null>;
}>;
export type SetWatches2 = TypeOf<typeof SetWatches2>;

export declare const Stat: import("./types.ts").Rec<{
    readonly czxid: import("./types.ts").Wire<bigint>;
    readonly mzxid: import("./types.ts").Wire<bigint>;
    readonly ctime: import("./types.ts").Wire<bigint>;
    readonly mtime: import("./types.ts").Wire<bigint>;
    readonly version: import("./types.ts").Wire<number>;
    readonly cversion: import("./types.ts").Wire<number>;
    readonly aversion: import("./types.ts").Wire<number>;
    readonly ephemeralOwner: import("./types.ts").Wire<bigint>;
    readonly dataLength: import("./types.ts").Wire<number>;
    readonly numChildren: import("./types.ts").Wire<number>;
    readonly pzxid: import("./types.ts").Wire<bigint>;
}>;
export type Stat = TypeOf<typeof Stat>;

export declare const StatPersisted: import("./types.ts").Rec<{
    readonly czxid: import("./types.ts").Wire<bigint>;
    readonly mzxid: import("./types.ts").Wire<bigint>;
    readonly ctime: import("./types.ts").Wire<bigint>;
    readonly mtime: import("./types.ts").Wire<bigint>;
    readonly version: import("./types.ts").Wire<number>;
    readonly cversion: import("./types.ts").Wire<number>;
    readonly aversion: import("./types.ts").Wire<number>;
    readonly ephemeralOwner: import("./types.ts").Wire<bigint>;
    readonly pzxid: import("./types.ts").Wire<bigint>;
}>;
export type StatPersisted = TypeOf<typeof StatPersisted>;

export declare const SyncRequest: import("./types.ts").Rec<{
    readonly path: import("./types.ts").Wire<string | null>;
}>;
export type SyncRequest = TypeOf<typeof SyncRequest>;

export declare const SyncResponse: import("./types.ts").Rec<{
    readonly path: import("./types.ts").Wire<string | null>;
}>;
export type SyncResponse = TypeOf<typeof SyncResponse>;

export declare const Txn: import("./types.ts").Rec<{
    readonly type: import("./types.ts").Wire<number>;
    readonly data: import("./types.ts").Wire<Uint8Array<ArrayBufferLike> | null>;
}>;
export type Txn = TypeOf<typeof Txn>;

export declare const TxnDigest: import("./types.ts").Rec<{
    readonly version: import("./types.ts").Wire<number>;
    readonly treeDigest: import("./types.ts").Wire<bigint>;
}>;
export type TxnDigest = TypeOf<typeof TxnDigest>;

export declare const TxnHeader: import("./types.ts").Rec<{
    readonly clientId: import("./types.ts").Wire<bigint>;
    readonly cxid: import("./types.ts").Wire<number>;
    readonly zxid: import("./types.ts").Wire<bigint>;
    readonly time: import("./types.ts").Wire<bigint>;
    readonly type: import("./types.ts").Wire<number>;
}>;
export type TxnHeader = TypeOf<typeof TxnHeader>;

export declare const WatcherEvent: import("./types.ts").Rec<{
    readonly type: import("./types.ts").Wire<number>;
    readonly state: import("./types.ts").Wire<number>;
    readonly path: import("./types.ts").Wire<string | null>;
}>;
export type WatcherEvent = TypeOf<typeof WatcherEvent>;

export declare const WhoAmIResponse: import("./types.ts").Rec<{
    readonly clientInfo: import("./types.ts").Wire<readonly {
        readonly authScheme: string | null;
        readonly user: string | null;
    }[] | null>;
}>;
export type WhoAmIResponse = TypeOf<typeof WhoAmIResponse>;

// schema/types.d.ts

type Fields = {
    readonly [field: string]: Wire<unknown>;
};

export interface Rec<F extends Fields> extends Wire<{
    readonly [K in keyof F]: TypeOf<F[K]>;
}> {
    readonly fields: F;
}

export type TypeOf<W> = W extends Wire<infer T> ? T : never;

export interface Wire<T> {
    readonly as: string;
    readonly of?: Wire<unknown>;
    readonly [value]?: T;
}

declare const value: unique symbol;

// tables/acl.d.ts

export declare const ANYONE: Id;

export declare const AUTHENTICATED: Id;

export declare const CREATOR_ALL_ACL: readonly ACL[];

export declare const OPEN_ACL_UNSAFE: readonly ACL[];

export declare const Perms: {
    readonly READ: 1;
    readonly WRITE: 2;
    readonly CREATE: 4;
    readonly DELETE: 8;
    readonly ADMIN: 16;
    readonly ALL: 31;
};

export declare const READ_ACL_UNSAFE: readonly ACL[];

export declare function aclEquals(a: readonly ACL[], b: readonly ACL[]): boolean;

export declare function digestId(credentials: string | Uint8Array): string;

export declare function formatPerms(perms: number): string;

// tables/adler32.d.ts

export declare function adler32(bytes: Uint8Array, start?: number, end?: number, previous?: number, view?: DataView<ArrayBufferLike>): number;

// tables/crc32.d.ts

export declare const crc32: (bytes: Uint8Array, start?: number, end?: number, previous?: number) => number, crc32Text: (text: string, start?: number, previous?: number) => number;

// tables/create-modes.d.ts

export declare const CONTAINER_OWNER: bigint;

export declare const CreateMode: {
    readonly PERSISTENT: 0;
    readonly EPHEMERAL: 1;
    readonly PERSISTENT_SEQUENTIAL: 2;
    readonly EPHEMERAL_SEQUENTIAL: 3;
    readonly CONTAINER: 4;
    readonly PERSISTENT_WITH_TTL: 5;
    readonly PERSISTENT_SEQUENTIAL_WITH_TTL: 6;
};
export type CreateMode = (typeof CreateMode)[keyof typeof CreateMode];

export declare const MAX_TTL = 1099511627775;

export type OwnerKind = 'persistent' | 'ephemeral' | 'container' | 'ttl';

export interface OwnerRules {
    readonly extendedTypes: boolean;
    readonly emulate353?: boolean | undefined;
}

export declare const isCreateMode: (flags: number) => flags is CreateMode;

export declare const isEphemeral: (flags: number) => boolean;

export declare const isSequential: (flags: number) => boolean;

export declare const isTtl: (flags: number) => boolean;

export declare function ownerKind(owner: bigint, { extendedTypes, emulate353 }: OwnerRules): OwnerKind;

export declare const ttlOf: (owner: bigint) => number;

export declare function ttlOwner(ms: number): bigint;

// tables/errors.d.ts

export declare const ErrorCode: {
    readonly OK: 0;
    readonly SYSTEMERROR: -1;
    readonly RUNTIMEINCONSISTENCY: -2;
    readonly DATAINCONSISTENCY: -3;
    readonly CONNECTIONLOSS: -4;
    readonly MARSHALLINGERROR: -5;
    readonly UNIMPLEMENTED: -6;
    readonly OPERATIONTIMEOUT: -7;
    readonly BADARGUMENTS: -8;
    readonly UNKNOWNSESSION: -12;
    readonly NEWCONFIGNOQUORUM: -13;
    readonly RECONFIGINPROGRESS: -14;
    readonly APIERROR: -100;
    readonly NONODE: -101;
    readonly NOAUTH: -102;
    readonly BADVERSION: -103;
    readonly NOCHILDRENFOREPHEMERALS: -108;
    readonly NODEEXISTS: -110;
    readonly NOTEMPTY: -111;
    readonly SESSIONEXPIRED: -112;
    readonly INVALIDCALLBACK: -113;
    readonly INVALIDACL: -114;
    readonly AUTHFAILED: -115;
    readonly SESSIONMOVED: -118;
    readonly NOTREADONLY: -119;
    readonly EPHEMERALONLOCALSESSION: -120;
    readonly NOWATCHER: -121;
    readonly REQUESTTIMEOUT: -122;
    readonly RECONFIGDISABLED: -123;
    readonly SESSIONCLOSEDREQUIRESASLAUTH: -124;
    readonly QUOTAEXCEEDED: -125;
    readonly THROTTLEDOP: -127;
};
export type ErrorCode = (typeof ErrorCode)[ErrorName];

export interface ErrorInfo {
    readonly code: number;
    readonly name: ErrorName;
    readonly meaning: string;
}

export type ErrorName = keyof typeof ErrorCode;

export declare const errorName: (code: number) => string;

export declare const errors: ReadonlyMap<number, ErrorInfo>;

// tables/events.d.ts

export declare const EventType: {
    readonly None: -1;
    readonly NodeCreated: 1;
    readonly NodeDeleted: 2;
    readonly NodeDataChanged: 3;
    readonly NodeChildrenChanged: 4;
    readonly DataWatchRemoved: 5;
    readonly ChildWatchRemoved: 6;
    readonly PersistentWatchRemoved: 7;
};
export type EventType = (typeof EventType)[keyof typeof EventType];

export declare const KeeperState: {
    readonly Expired: -112;
    readonly Unknown: -1;
    readonly Disconnected: 0;
    readonly NoSyncConnected: 1;
    readonly SyncConnected: 3;
    readonly AuthFailed: 4;
    readonly ConnectedReadOnly: 5;
    readonly SaslAuthenticated: 6;
    readonly Closed: 7;
};
export type KeeperState = (typeof KeeperState)[keyof typeof KeeperState];

export declare const WatchMode: {
    readonly PERSISTENT: 0;
    readonly PERSISTENT_RECURSIVE: 1;
};
export type WatchMode = (typeof WatchMode)[keyof typeof WatchMode];

export declare const WatcherType: {
    readonly Children: 1;
    readonly Data: 2;
    readonly Any: 3;
    readonly Persistent: 4;
    readonly PersistentRecursive: 5;
};
export type WatcherType = (typeof WatcherType)[keyof typeof WatcherType];

// tables/md5.d.ts

export declare const md5: (message: Uint8Array) => Uint8Array;

// tables/op-codes.d.ts

export declare const OpCode: {
    readonly notification: 0;
    readonly create: 1;
    readonly delete: 2;
    readonly exists: 3;
    readonly getData: 4;
    readonly setData: 5;
    readonly getACL: 6;
    readonly setACL: 7;
    readonly getChildren: 8;
    readonly sync: 9;
    readonly ping: 11;
    readonly getChildren2: 12;
    readonly check: 13;
    readonly multi: 14;
    readonly create2: 15;
    readonly reconfig: 16;
    readonly checkWatches: 17;
    readonly removeWatches: 18;
    readonly createContainer: 19;
    readonly deleteContainer: 20;
    readonly createTTL: 21;
    readonly multiRead: 22;
    readonly auth: 100;
    readonly setWatches: 101;
    readonly sasl: 102;
    readonly getEphemerals: 103;
    readonly getAllChildrenNumber: 104;
    readonly setWatches2: 105;
    readonly addWatch: 106;
    readonly whoAmI: 107;
    readonly createSession: -10;
    readonly closeSession: -11;
    readonly error: -1;
};
export type OpCode = (typeof OpCode)[keyof typeof OpCode];

export declare const Xid: {
    readonly notification: -1;
    readonly ping: -2;
    readonly auth: -4;
    readonly setWatches: -8;
};

// tables/open-acl.d.ts

export declare const OPEN_ACL_BYTES: Uint8Array;

// tables/paths.d.ts

export declare const childPath: (parent: string, name: string) => string;

export declare const nameOf: (path: string) => string;

export declare function parentOf(path: string): string;

export declare function validatePath(path: string | null, sequential?: boolean): string | undefined;

// tables/sha1.d.ts

export declare const sha1: (message: Uint8Array) => Uint8Array;

// tables/sha256.d.ts

export declare function hmacSha256(key: Uint8Array, message: Uint8Array): Uint8Array;

export declare function sha256(message: Uint8Array): Uint8Array;

// tables/zxid.d.ts

export declare const MAX_EPOCH = 2097151;

export declare const counterOf: (zxid: number) => number;

export declare const epochOf: (zxid: number) => number;

export declare const formatZxid: (zxid: number | bigint) => string;

export declare function makeZxid(epoch: number, counter: number): number;

// wire/buffers.d.ts

export declare class BufferPool {
    #private;
    get freeBytes(): number;
    acquire(bytes: number): PooledBuffer;
    release(buffer: PooledBuffer): void;
}

export interface PooledBuffer {
    readonly bytes: Uint8Array<ArrayBuffer>;
    readonly view: DataView<ArrayBuffer>;
}

export declare function allocateBuffer(bytes: number): PooledBuffer;

export declare function concatBytes(parts: readonly Uint8Array[]): Uint8Array<ArrayBuffer>;

export declare function copyRange(from: DataView, start: number, end: number, into: DataView, at: number): void;

// wire/error.d.ts

export declare class ProtocolError extends Error {
    readonly name = "ProtocolError";
    readonly offset: number;
    readonly field: string;
    constructor(message: string, offset: number, field: string);
}

// wire/frames.d.ts

export declare class FrameSplitter {
    #private;
    constructor(options: FrameSplitterOptions);
    get pending(): number;
    get byteSize(): number;
    stop(): void;
    pause(): void;
    resume(): void;
    push(chunk: Uint8Array): void;
}

export interface FrameSplitterOptions {
    readonly maxLength: number;
    readonly minLength?: number | undefined;
    frame(bytes: Uint8Array, start: number, end: number): void;
}

// wire/reader.d.ts

export declare class Reader {
    #private;
    offset: number;
    readonly maxElement: number;
    constructor(bytes?: Uint8Array, start?: number, end?: number, maxElement?: number);
    reset(bytes: Uint8Array, start?: number, end?: number): this;
    resetToView(bytes: Uint8Array): this;
    get bytes(): Uint8Array;
    get view(): DataView;
    get start(): number;
    get end(): number;
    get remaining(): number;
    bool(): boolean;
    byte(): number;
    int(): number;
    long(): bigint;
    longNumber(): number;
    buffer(): Uint8Array | null;
    bufferCopy(): Uint8Array<ArrayBuffer> | null;
    string(): string | null;
    skipBuffer(): number;
    vectorLength(): number;
    skipIfEqual(expected: Uint8Array): boolean;
    raw(length: number): Uint8Array;
    fail(message: string, field: string): never;
}

// wire/text.d.ts

export declare function readText(bytes: Uint8Array, start: number, end: number, view?: DataView<ArrayBufferLike>): string;

export declare function textByteLength(text: string): number;

export declare function writeText(text: string, into: Uint8Array, at: number): number;

// wire/writer.d.ts

export declare class Writer {
    #private;
    constructor(initialCapacity?: number, pool?: BufferPool);
    get length(): number;
    bool(value: boolean): void;
    byte(value: number): void;
    int(value: number): void;
    long(value: bigint): void;
    longNumber(value: number): void;
    buffer(value: Uint8Array | null): void;
    string(value: string | null): void;
    raw(value: Uint8Array): void;
    range(bytes: DataView, start: number, end: number): void;
    intAt(position: number, value: number): void;
    longNumberAt(position: number, value: number): void;
    beginFrame(): number;
    endFrame(mark: number): void;
    truncate(length: number): void;
    bytes(): Uint8Array;
    bytesFrom(start: number): Uint8Array;
    checksum(sum: typeof adler32, start: number, previous?: number): number;
    take(): Uint8Array;
    release(): void;
    reset(): void;
    reserve(bytes: number): void;
    claim(bytes: number): number;
    get view(): DataView;
}
