/**
 * Every record of the protocols and files. Records and fields have the names of ZooKeeper's record definitions.
 */
import { bool, buffer, int, long, record, ustring, vector, type TypeOf } from './types.ts'

// Shared by all

export const Id = record('Id', { scheme: ustring, id: ustring })
export type Id = TypeOf<typeof Id>
export const ACL = record('ACL', { perms: int, id: Id })
export type ACL = TypeOf<typeof ACL>
/** The stat of a znode that clients see. */
export const Stat = record('Stat', {
  czxid: long,
  mzxid: long,
  ctime: long,
  mtime: long,
  version: int,
  cversion: int,
  aversion: int,
  ephemeralOwner: long,
  dataLength: int,
  numChildren: int,
  pzxid: long,
})
export type Stat = TypeOf<typeof Stat>
/** The stat of a znode in a snapshot; `cversion` counts created children only. */
export const StatPersisted = record('StatPersisted', {
  czxid: long,
  mzxid: long,
  ctime: long,
  mtime: long,
  version: int,
  cversion: int,
  aversion: int,
  ephemeralOwner: long,
  pzxid: long,
})
export type StatPersisted = TypeOf<typeof StatPersisted>

// Client protocol: headers and sessions

export const RequestHeader = record('RequestHeader', { xid: int, type: int })
export type RequestHeader = TypeOf<typeof RequestHeader>
export const ReplyHeader = record('ReplyHeader', { xid: int, zxid: long, err: int })
export type ReplyHeader = TypeOf<typeof ReplyHeader>
export const MultiHeader = record('MultiHeader', { type: int, done: bool, err: int })
export type MultiHeader = TypeOf<typeof MultiHeader>
/** Without the `readOnly` byte that may follow; see `readConnectRequest` in `../handshake.ts`. */
export const ConnectRequestBase = record('ConnectRequestBase', {
  protocolVersion: int,
  lastZxidSeen: long,
  timeOut: int,
  sessionId: long,
  passwd: buffer,
})
export type ConnectRequestBase = TypeOf<typeof ConnectRequestBase>
/** Without the `readOnly` byte that may follow; see `readConnectResponse` in `../handshake.ts`. */
export const ConnectResponseBase = record('ConnectResponseBase', {
  protocolVersion: int,
  timeOut: int,
  sessionId: long,
  passwd: buffer,
})
export type ConnectResponseBase = TypeOf<typeof ConnectResponseBase>
export const AuthPacket = record('AuthPacket', { type: int, scheme: ustring, auth: buffer })
export type AuthPacket = TypeOf<typeof AuthPacket>
export const WatcherEvent = record('WatcherEvent', { type: int, state: int, path: ustring })
export type WatcherEvent = TypeOf<typeof WatcherEvent>
export const ErrorResponse = record('ErrorResponse', { err: int })
export type ErrorResponse = TypeOf<typeof ErrorResponse>
export const GetSASLRequest = record('GetSASLRequest', { token: buffer })
export type GetSASLRequest = TypeOf<typeof GetSASLRequest>
export const SetSASLResponse = record('SetSASLResponse', { token: buffer })
export type SetSASLResponse = TypeOf<typeof SetSASLResponse>

// Client protocol: operations

export const CreateRequest = record('CreateRequest', {
  path: ustring,
  data: buffer,
  acl: vector(ACL),
  flags: int,
})
export type CreateRequest = TypeOf<typeof CreateRequest>
export const CreateTTLRequest = record('CreateTTLRequest', {
  path: ustring,
  data: buffer,
  acl: vector(ACL),
  flags: int,
  ttl: long,
})
export type CreateTTLRequest = TypeOf<typeof CreateTTLRequest>
export const CreateResponse = record('CreateResponse', { path: ustring })
export type CreateResponse = TypeOf<typeof CreateResponse>
export const Create2Response = record('Create2Response', { path: ustring, stat: Stat })
export type Create2Response = TypeOf<typeof Create2Response>
export const DeleteRequest = record('DeleteRequest', { path: ustring, version: int })
export type DeleteRequest = TypeOf<typeof DeleteRequest>
export const DeleteContainerRequest = record('DeleteContainerRequest', { path: buffer })
export type DeleteContainerRequest = TypeOf<typeof DeleteContainerRequest>
export const ExistsRequest = record('ExistsRequest', { path: ustring, watch: bool })
export type ExistsRequest = TypeOf<typeof ExistsRequest>
export const ExistsResponse = record('ExistsResponse', { stat: Stat })
export type ExistsResponse = TypeOf<typeof ExistsResponse>
export const GetDataRequest = record('GetDataRequest', { path: ustring, watch: bool })
export type GetDataRequest = TypeOf<typeof GetDataRequest>
export const GetDataResponse = record('GetDataResponse', { data: buffer, stat: Stat })
export type GetDataResponse = TypeOf<typeof GetDataResponse>
export const SetDataRequest = record('SetDataRequest', { path: ustring, data: buffer, version: int })
export type SetDataRequest = TypeOf<typeof SetDataRequest>
export const SetDataResponse = record('SetDataResponse', { stat: Stat })
export type SetDataResponse = TypeOf<typeof SetDataResponse>
export const GetACLRequest = record('GetACLRequest', { path: ustring })
export type GetACLRequest = TypeOf<typeof GetACLRequest>
export const GetACLResponse = record('GetACLResponse', { acl: vector(ACL), stat: Stat })
export type GetACLResponse = TypeOf<typeof GetACLResponse>
export const SetACLRequest = record('SetACLRequest', { path: ustring, acl: vector(ACL), version: int })
export type SetACLRequest = TypeOf<typeof SetACLRequest>
export const SetACLResponse = record('SetACLResponse', { stat: Stat })
export type SetACLResponse = TypeOf<typeof SetACLResponse>
export const GetChildrenRequest = record('GetChildrenRequest', { path: ustring, watch: bool })
export type GetChildrenRequest = TypeOf<typeof GetChildrenRequest>
export const GetChildrenResponse = record('GetChildrenResponse', { children: vector(ustring) })
export type GetChildrenResponse = TypeOf<typeof GetChildrenResponse>
export const GetChildren2Request = record('GetChildren2Request', { path: ustring, watch: bool })
export type GetChildren2Request = TypeOf<typeof GetChildren2Request>
export const GetChildren2Response = record('GetChildren2Response', { children: vector(ustring), stat: Stat })
export type GetChildren2Response = TypeOf<typeof GetChildren2Response>
export const SyncRequest = record('SyncRequest', { path: ustring })
export type SyncRequest = TypeOf<typeof SyncRequest>
export const SyncResponse = record('SyncResponse', { path: ustring })
export type SyncResponse = TypeOf<typeof SyncResponse>
export const CheckVersionRequest = record('CheckVersionRequest', { path: ustring, version: int })
export type CheckVersionRequest = TypeOf<typeof CheckVersionRequest>
export const ReconfigRequest = record('ReconfigRequest', {
  joiningServers: ustring,
  leavingServers: ustring,
  newMembers: ustring,
  curConfigId: long,
})
export type ReconfigRequest = TypeOf<typeof ReconfigRequest>
export const SetWatches = record('SetWatches', {
  relativeZxid: long,
  dataWatches: vector(ustring),
  existWatches: vector(ustring),
  childWatches: vector(ustring),
})
export type SetWatches = TypeOf<typeof SetWatches>
export const SetWatches2 = record('SetWatches2', {
  relativeZxid: long,
  dataWatches: vector(ustring),
  existWatches: vector(ustring),
  childWatches: vector(ustring),
  persistentWatches: vector(ustring),
  persistentRecursiveWatches: vector(ustring),
})
export type SetWatches2 = TypeOf<typeof SetWatches2>
export const AddWatchRequest = record('AddWatchRequest', { path: ustring, mode: int })
export type AddWatchRequest = TypeOf<typeof AddWatchRequest>
export const CheckWatchesRequest = record('CheckWatchesRequest', { path: ustring, type: int })
export type CheckWatchesRequest = TypeOf<typeof CheckWatchesRequest>
export const RemoveWatchesRequest = record('RemoveWatchesRequest', { path: ustring, type: int })
export type RemoveWatchesRequest = TypeOf<typeof RemoveWatchesRequest>
export const GetEphemeralsRequest = record('GetEphemeralsRequest', { prefixPath: ustring })
export type GetEphemeralsRequest = TypeOf<typeof GetEphemeralsRequest>
export const GetEphemeralsResponse = record('GetEphemeralsResponse', { ephemerals: vector(ustring) })
export type GetEphemeralsResponse = TypeOf<typeof GetEphemeralsResponse>
export const GetAllChildrenNumberRequest = record('GetAllChildrenNumberRequest', { path: ustring })
export type GetAllChildrenNumberRequest = TypeOf<typeof GetAllChildrenNumberRequest>
export const GetAllChildrenNumberResponse = record('GetAllChildrenNumberResponse', { totalNumber: int })
export type GetAllChildrenNumberResponse = TypeOf<typeof GetAllChildrenNumberResponse>
export const ClientInfo = record('ClientInfo', { authScheme: ustring, user: ustring })
export type ClientInfo = TypeOf<typeof ClientInfo>
export const WhoAmIResponse = record('WhoAmIResponse', { clientInfo: vector(ClientInfo) })
export type WhoAmIResponse = TypeOf<typeof WhoAmIResponse>

// Transactions, as the log and the quorum protocol carry them

export const TxnHeader = record('TxnHeader', { clientId: long, cxid: int, zxid: long, time: long, type: int })
export type TxnHeader = TypeOf<typeof TxnHeader>
export const TxnDigest = record('TxnDigest', { version: int, treeDigest: long })
export type TxnDigest = TypeOf<typeof TxnDigest>
/** The record of ZooKeeper before 3.4: without the parent's cversion. Only read. */
export const CreateTxnV0 = record('CreateTxnV0', {
  path: ustring,
  data: buffer,
  acl: vector(ACL),
  ephemeral: bool,
})
export type CreateTxnV0 = TypeOf<typeof CreateTxnV0>
export const CreateTxn = record('CreateTxn', {
  path: ustring,
  data: buffer,
  acl: vector(ACL),
  ephemeral: bool,
  parentCVersion: int,
})
export type CreateTxn = TypeOf<typeof CreateTxn>
export const CreateTTLTxn = record('CreateTTLTxn', {
  path: ustring,
  data: buffer,
  acl: vector(ACL),
  parentCVersion: int,
  ttl: long,
})
export type CreateTTLTxn = TypeOf<typeof CreateTTLTxn>
export const CreateContainerTxn = record('CreateContainerTxn', {
  path: ustring,
  data: buffer,
  acl: vector(ACL),
  parentCVersion: int,
})
export type CreateContainerTxn = TypeOf<typeof CreateContainerTxn>
export const DeleteTxn = record('DeleteTxn', { path: ustring })
export type DeleteTxn = TypeOf<typeof DeleteTxn>
export const SetDataTxn = record('SetDataTxn', { path: ustring, data: buffer, version: int })
export type SetDataTxn = TypeOf<typeof SetDataTxn>
export const CheckVersionTxn = record('CheckVersionTxn', { path: ustring, version: int })
export type CheckVersionTxn = TypeOf<typeof CheckVersionTxn>
export const SetACLTxn = record('SetACLTxn', { path: ustring, acl: vector(ACL), version: int })
export type SetACLTxn = TypeOf<typeof SetACLTxn>
export const CreateSessionTxn = record('CreateSessionTxn', { timeOut: int })
export type CreateSessionTxn = TypeOf<typeof CreateSessionTxn>
export const CloseSessionTxn = record('CloseSessionTxn', { paths2Delete: vector(ustring) })
export type CloseSessionTxn = TypeOf<typeof CloseSessionTxn>
export const ErrorTxn = record('ErrorTxn', { err: int })
export type ErrorTxn = TypeOf<typeof ErrorTxn>
/** One part of a multi: `data` is the serialised record of `type`. */
export const Txn = record('Txn', { type: int, data: buffer })
export type Txn = TypeOf<typeof Txn>
export const MultiTxn = record('MultiTxn', { txns: vector(Txn) })
export type MultiTxn = TypeOf<typeof MultiTxn>

// Files

export const FileHeader = record('FileHeader', { magic: int, version: int, dbid: long })
export type FileHeader = TypeOf<typeof FileHeader>

// Between servers

export const LearnerInfo = record('LearnerInfo', {
  serverid: long,
  protocolVersion: int,
  configVersion: long,
})
export type LearnerInfo = TypeOf<typeof LearnerInfo>
export const QuorumPacket = record('QuorumPacket', {
  type: int,
  zxid: long,
  data: buffer,
  authinfo: vector(Id),
})
export type QuorumPacket = TypeOf<typeof QuorumPacket>
export const QuorumAuthPacket = record('QuorumAuthPacket', { magic: long, status: int, token: buffer })
export type QuorumAuthPacket = TypeOf<typeof QuorumAuthPacket>
