// Written by `pnpm gen` from ../schema/records.ts. Do not edit: change the table and run it again.
import type { ACL, AddWatchRequest, AuthPacket, CheckVersionRequest, CheckVersionTxn, CheckWatchesRequest, ClientInfo, CloseSessionTxn, ConnectRequestBase, ConnectResponseBase, Create2Response, CreateContainerTxn, CreateRequest, CreateResponse, CreateSessionTxn, CreateTTLRequest, CreateTTLTxn, CreateTxn, CreateTxnV0, DeleteContainerRequest, DeleteRequest, DeleteTxn, ErrorResponse, ErrorTxn, ExistsRequest, ExistsResponse, FileHeader, GetACLRequest, GetACLResponse, GetAllChildrenNumberRequest, GetAllChildrenNumberResponse, GetChildren2Request, GetChildren2Response, GetChildrenRequest, GetChildrenResponse, GetDataRequest, GetDataResponse, GetEphemeralsRequest, GetEphemeralsResponse, GetSASLRequest, Id, LearnerInfo, MultiHeader, MultiTxn, QuorumAuthPacket, QuorumPacket, ReconfigRequest, RemoveWatchesRequest, ReplyHeader, RequestHeader, SetACLRequest, SetACLResponse, SetACLTxn, SetDataRequest, SetDataResponse, SetDataTxn, SetSASLResponse, SetWatches, SetWatches2, Stat, StatPersisted, SyncRequest, SyncResponse, Txn, TxnDigest, TxnHeader, WatcherEvent, WhoAmIResponse } from '../schema/records.ts'
import type { Reader } from '../wire/reader.ts'
import type { Writer } from '../wire/writer.ts'

export const readACL = (r: Reader): ACL => ({
  perms: r.int(),
  id: readId(r),
})
export const writeACL = (w: Writer, v: ACL): void => {
  w.int(v.perms)
  writeId(w, v.id)
}

export const readAddWatchRequest = (r: Reader): AddWatchRequest => ({
  path: r.string(),
  mode: r.int(),
})
export const writeAddWatchRequest = (w: Writer, v: AddWatchRequest): void => {
  w.string(v.path)
  w.int(v.mode)
}

export const readAuthPacket = (r: Reader): AuthPacket => ({
  type: r.int(),
  scheme: r.string(),
  auth: r.buffer(),
})
export const writeAuthPacket = (w: Writer, v: AuthPacket): void => {
  w.int(v.type)
  w.string(v.scheme)
  w.buffer(v.auth)
}

export const readCheckVersionRequest = (r: Reader): CheckVersionRequest => ({
  path: r.string(),
  version: r.int(),
})
export const writeCheckVersionRequest = (w: Writer, v: CheckVersionRequest): void => {
  w.string(v.path)
  w.int(v.version)
}

export const readCheckVersionTxn = (r: Reader): CheckVersionTxn => ({
  path: r.string(),
  version: r.int(),
})
export const writeCheckVersionTxn = (w: Writer, v: CheckVersionTxn): void => {
  w.string(v.path)
  w.int(v.version)
}

export const readCheckWatchesRequest = (r: Reader): CheckWatchesRequest => ({
  path: r.string(),
  type: r.int(),
})
export const writeCheckWatchesRequest = (w: Writer, v: CheckWatchesRequest): void => {
  w.string(v.path)
  w.int(v.type)
}

export const readClientInfo = (r: Reader): ClientInfo => ({
  authScheme: r.string(),
  user: r.string(),
})
export const writeClientInfo = (w: Writer, v: ClientInfo): void => {
  w.string(v.authScheme)
  w.string(v.user)
}

export const readCloseSessionTxn = (r: Reader): CloseSessionTxn => ({
  paths2Delete: readStringList(r),
})
export const writeCloseSessionTxn = (w: Writer, v: CloseSessionTxn): void => {
  writeStringList(w, v.paths2Delete)
}

export const readConnectRequestBase = (r: Reader): ConnectRequestBase => ({
  protocolVersion: r.int(),
  lastZxidSeen: r.long(),
  timeOut: r.int(),
  sessionId: r.long(),
  passwd: r.buffer(),
})
export const writeConnectRequestBase = (w: Writer, v: ConnectRequestBase): void => {
  w.int(v.protocolVersion)
  w.long(v.lastZxidSeen)
  w.int(v.timeOut)
  w.long(v.sessionId)
  w.buffer(v.passwd)
}

export const readConnectResponseBase = (r: Reader): ConnectResponseBase => ({
  protocolVersion: r.int(),
  timeOut: r.int(),
  sessionId: r.long(),
  passwd: r.buffer(),
})
export const writeConnectResponseBase = (w: Writer, v: ConnectResponseBase): void => {
  w.int(v.protocolVersion)
  w.int(v.timeOut)
  w.long(v.sessionId)
  w.buffer(v.passwd)
}

export const readCreate2Response = (r: Reader): Create2Response => ({
  path: r.string(),
  stat: readStat(r),
})
export const writeCreate2Response = (w: Writer, v: Create2Response): void => {
  w.string(v.path)
  writeStat(w, v.stat)
}

export const readCreateContainerTxn = (r: Reader): CreateContainerTxn => ({
  path: r.string(),
  data: r.buffer(),
  acl: readACLList(r),
  parentCVersion: r.int(),
})
export const writeCreateContainerTxn = (w: Writer, v: CreateContainerTxn): void => {
  w.string(v.path)
  w.buffer(v.data)
  writeACLList(w, v.acl)
  w.int(v.parentCVersion)
}

export const readCreateRequest = (r: Reader): CreateRequest => ({
  path: r.string(),
  data: r.buffer(),
  acl: readACLList(r),
  flags: r.int(),
})
export const writeCreateRequest = (w: Writer, v: CreateRequest): void => {
  w.string(v.path)
  w.buffer(v.data)
  writeACLList(w, v.acl)
  w.int(v.flags)
}

export const readCreateResponse = (r: Reader): CreateResponse => ({
  path: r.string(),
})
export const writeCreateResponse = (w: Writer, v: CreateResponse): void => {
  w.string(v.path)
}

export const readCreateSessionTxn = (r: Reader): CreateSessionTxn => ({
  timeOut: r.int(),
})
export const writeCreateSessionTxn = (w: Writer, v: CreateSessionTxn): void => {
  w.int(v.timeOut)
}

export const readCreateTTLRequest = (r: Reader): CreateTTLRequest => ({
  path: r.string(),
  data: r.buffer(),
  acl: readACLList(r),
  flags: r.int(),
  ttl: r.long(),
})
export const writeCreateTTLRequest = (w: Writer, v: CreateTTLRequest): void => {
  w.string(v.path)
  w.buffer(v.data)
  writeACLList(w, v.acl)
  w.int(v.flags)
  w.long(v.ttl)
}

export const readCreateTTLTxn = (r: Reader): CreateTTLTxn => ({
  path: r.string(),
  data: r.buffer(),
  acl: readACLList(r),
  parentCVersion: r.int(),
  ttl: r.long(),
})
export const writeCreateTTLTxn = (w: Writer, v: CreateTTLTxn): void => {
  w.string(v.path)
  w.buffer(v.data)
  writeACLList(w, v.acl)
  w.int(v.parentCVersion)
  w.long(v.ttl)
}

export const readCreateTxn = (r: Reader): CreateTxn => ({
  path: r.string(),
  data: r.buffer(),
  acl: readACLList(r),
  ephemeral: r.bool(),
  parentCVersion: r.int(),
})
export const writeCreateTxn = (w: Writer, v: CreateTxn): void => {
  w.string(v.path)
  w.buffer(v.data)
  writeACLList(w, v.acl)
  w.bool(v.ephemeral)
  w.int(v.parentCVersion)
}

export const readCreateTxnV0 = (r: Reader): CreateTxnV0 => ({
  path: r.string(),
  data: r.buffer(),
  acl: readACLList(r),
  ephemeral: r.bool(),
})
export const writeCreateTxnV0 = (w: Writer, v: CreateTxnV0): void => {
  w.string(v.path)
  w.buffer(v.data)
  writeACLList(w, v.acl)
  w.bool(v.ephemeral)
}

export const readDeleteContainerRequest = (r: Reader): DeleteContainerRequest => ({
  path: r.buffer(),
})
export const writeDeleteContainerRequest = (w: Writer, v: DeleteContainerRequest): void => {
  w.buffer(v.path)
}

export const readDeleteRequest = (r: Reader): DeleteRequest => ({
  path: r.string(),
  version: r.int(),
})
export const writeDeleteRequest = (w: Writer, v: DeleteRequest): void => {
  w.string(v.path)
  w.int(v.version)
}

export const readDeleteTxn = (r: Reader): DeleteTxn => ({
  path: r.string(),
})
export const writeDeleteTxn = (w: Writer, v: DeleteTxn): void => {
  w.string(v.path)
}

export const readErrorResponse = (r: Reader): ErrorResponse => ({
  err: r.int(),
})
export const writeErrorResponse = (w: Writer, v: ErrorResponse): void => {
  w.int(v.err)
}

export const readErrorTxn = (r: Reader): ErrorTxn => ({
  err: r.int(),
})
export const writeErrorTxn = (w: Writer, v: ErrorTxn): void => {
  w.int(v.err)
}

export const readExistsRequest = (r: Reader): ExistsRequest => ({
  path: r.string(),
  watch: r.bool(),
})
export const writeExistsRequest = (w: Writer, v: ExistsRequest): void => {
  w.string(v.path)
  w.bool(v.watch)
}

export const readExistsResponse = (r: Reader): ExistsResponse => ({
  stat: readStat(r),
})
export const writeExistsResponse = (w: Writer, v: ExistsResponse): void => {
  writeStat(w, v.stat)
}

export const readFileHeader = (r: Reader): FileHeader => ({
  magic: r.int(),
  version: r.int(),
  dbid: r.long(),
})
export const writeFileHeader = (w: Writer, v: FileHeader): void => {
  w.int(v.magic)
  w.int(v.version)
  w.long(v.dbid)
}

export const readGetACLRequest = (r: Reader): GetACLRequest => ({
  path: r.string(),
})
export const writeGetACLRequest = (w: Writer, v: GetACLRequest): void => {
  w.string(v.path)
}

export const readGetACLResponse = (r: Reader): GetACLResponse => ({
  acl: readACLList(r),
  stat: readStat(r),
})
export const writeGetACLResponse = (w: Writer, v: GetACLResponse): void => {
  writeACLList(w, v.acl)
  writeStat(w, v.stat)
}

export const readGetAllChildrenNumberRequest = (r: Reader): GetAllChildrenNumberRequest => ({
  path: r.string(),
})
export const writeGetAllChildrenNumberRequest = (w: Writer, v: GetAllChildrenNumberRequest): void => {
  w.string(v.path)
}

export const readGetAllChildrenNumberResponse = (r: Reader): GetAllChildrenNumberResponse => ({
  totalNumber: r.int(),
})
export const writeGetAllChildrenNumberResponse = (w: Writer, v: GetAllChildrenNumberResponse): void => {
  w.int(v.totalNumber)
}

export const readGetChildren2Request = (r: Reader): GetChildren2Request => ({
  path: r.string(),
  watch: r.bool(),
})
export const writeGetChildren2Request = (w: Writer, v: GetChildren2Request): void => {
  w.string(v.path)
  w.bool(v.watch)
}

export const readGetChildren2Response = (r: Reader): GetChildren2Response => ({
  children: readStringList(r),
  stat: readStat(r),
})
export const writeGetChildren2Response = (w: Writer, v: GetChildren2Response): void => {
  writeStringList(w, v.children)
  writeStat(w, v.stat)
}

export const readGetChildrenRequest = (r: Reader): GetChildrenRequest => ({
  path: r.string(),
  watch: r.bool(),
})
export const writeGetChildrenRequest = (w: Writer, v: GetChildrenRequest): void => {
  w.string(v.path)
  w.bool(v.watch)
}

export const readGetChildrenResponse = (r: Reader): GetChildrenResponse => ({
  children: readStringList(r),
})
export const writeGetChildrenResponse = (w: Writer, v: GetChildrenResponse): void => {
  writeStringList(w, v.children)
}

export const readGetDataRequest = (r: Reader): GetDataRequest => ({
  path: r.string(),
  watch: r.bool(),
})
export const writeGetDataRequest = (w: Writer, v: GetDataRequest): void => {
  w.string(v.path)
  w.bool(v.watch)
}

export const readGetDataResponse = (r: Reader): GetDataResponse => ({
  data: r.buffer(),
  stat: readStat(r),
})
export const writeGetDataResponse = (w: Writer, v: GetDataResponse): void => {
  w.buffer(v.data)
  writeStat(w, v.stat)
}

export const readGetEphemeralsRequest = (r: Reader): GetEphemeralsRequest => ({
  prefixPath: r.string(),
})
export const writeGetEphemeralsRequest = (w: Writer, v: GetEphemeralsRequest): void => {
  w.string(v.prefixPath)
}

export const readGetEphemeralsResponse = (r: Reader): GetEphemeralsResponse => ({
  ephemerals: readStringList(r),
})
export const writeGetEphemeralsResponse = (w: Writer, v: GetEphemeralsResponse): void => {
  writeStringList(w, v.ephemerals)
}

export const readGetSASLRequest = (r: Reader): GetSASLRequest => ({
  token: r.buffer(),
})
export const writeGetSASLRequest = (w: Writer, v: GetSASLRequest): void => {
  w.buffer(v.token)
}

export const readId = (r: Reader): Id => ({
  scheme: r.string(),
  id: r.string(),
})
export const writeId = (w: Writer, v: Id): void => {
  w.string(v.scheme)
  w.string(v.id)
}

export const readLearnerInfo = (r: Reader): LearnerInfo => ({
  serverid: r.long(),
  protocolVersion: r.int(),
  configVersion: r.long(),
})
export const writeLearnerInfo = (w: Writer, v: LearnerInfo): void => {
  w.long(v.serverid)
  w.int(v.protocolVersion)
  w.long(v.configVersion)
}

export const readMultiHeader = (r: Reader): MultiHeader => ({
  type: r.int(),
  done: r.bool(),
  err: r.int(),
})
export const writeMultiHeader = (w: Writer, v: MultiHeader): void => {
  w.int(v.type)
  w.bool(v.done)
  w.int(v.err)
}

export const readMultiTxn = (r: Reader): MultiTxn => ({
  txns: readTxnList(r),
})
export const writeMultiTxn = (w: Writer, v: MultiTxn): void => {
  writeTxnList(w, v.txns)
}

export const readQuorumAuthPacket = (r: Reader): QuorumAuthPacket => ({
  magic: r.long(),
  status: r.int(),
  token: r.buffer(),
})
export const writeQuorumAuthPacket = (w: Writer, v: QuorumAuthPacket): void => {
  w.long(v.magic)
  w.int(v.status)
  w.buffer(v.token)
}

export const readQuorumPacket = (r: Reader): QuorumPacket => ({
  type: r.int(),
  zxid: r.long(),
  data: r.buffer(),
  authinfo: readIdList(r),
})
export const writeQuorumPacket = (w: Writer, v: QuorumPacket): void => {
  w.int(v.type)
  w.long(v.zxid)
  w.buffer(v.data)
  writeIdList(w, v.authinfo)
}

export const readReconfigRequest = (r: Reader): ReconfigRequest => ({
  joiningServers: r.string(),
  leavingServers: r.string(),
  newMembers: r.string(),
  curConfigId: r.long(),
})
export const writeReconfigRequest = (w: Writer, v: ReconfigRequest): void => {
  w.string(v.joiningServers)
  w.string(v.leavingServers)
  w.string(v.newMembers)
  w.long(v.curConfigId)
}

export const readRemoveWatchesRequest = (r: Reader): RemoveWatchesRequest => ({
  path: r.string(),
  type: r.int(),
})
export const writeRemoveWatchesRequest = (w: Writer, v: RemoveWatchesRequest): void => {
  w.string(v.path)
  w.int(v.type)
}

export const readReplyHeader = (r: Reader): ReplyHeader => ({
  xid: r.int(),
  zxid: r.long(),
  err: r.int(),
})
export const writeReplyHeader = (w: Writer, v: ReplyHeader): void => {
  w.int(v.xid)
  w.long(v.zxid)
  w.int(v.err)
}

export const readRequestHeader = (r: Reader): RequestHeader => ({
  xid: r.int(),
  type: r.int(),
})
export const writeRequestHeader = (w: Writer, v: RequestHeader): void => {
  w.int(v.xid)
  w.int(v.type)
}

export const readSetACLRequest = (r: Reader): SetACLRequest => ({
  path: r.string(),
  acl: readACLList(r),
  version: r.int(),
})
export const writeSetACLRequest = (w: Writer, v: SetACLRequest): void => {
  w.string(v.path)
  writeACLList(w, v.acl)
  w.int(v.version)
}

export const readSetACLResponse = (r: Reader): SetACLResponse => ({
  stat: readStat(r),
})
export const writeSetACLResponse = (w: Writer, v: SetACLResponse): void => {
  writeStat(w, v.stat)
}

export const readSetACLTxn = (r: Reader): SetACLTxn => ({
  path: r.string(),
  acl: readACLList(r),
  version: r.int(),
})
export const writeSetACLTxn = (w: Writer, v: SetACLTxn): void => {
  w.string(v.path)
  writeACLList(w, v.acl)
  w.int(v.version)
}

export const readSetDataRequest = (r: Reader): SetDataRequest => ({
  path: r.string(),
  data: r.buffer(),
  version: r.int(),
})
export const writeSetDataRequest = (w: Writer, v: SetDataRequest): void => {
  w.string(v.path)
  w.buffer(v.data)
  w.int(v.version)
}

export const readSetDataResponse = (r: Reader): SetDataResponse => ({
  stat: readStat(r),
})
export const writeSetDataResponse = (w: Writer, v: SetDataResponse): void => {
  writeStat(w, v.stat)
}

export const readSetDataTxn = (r: Reader): SetDataTxn => ({
  path: r.string(),
  data: r.buffer(),
  version: r.int(),
})
export const writeSetDataTxn = (w: Writer, v: SetDataTxn): void => {
  w.string(v.path)
  w.buffer(v.data)
  w.int(v.version)
}

export const readSetSASLResponse = (r: Reader): SetSASLResponse => ({
  token: r.buffer(),
})
export const writeSetSASLResponse = (w: Writer, v: SetSASLResponse): void => {
  w.buffer(v.token)
}

export const readSetWatches = (r: Reader): SetWatches => ({
  relativeZxid: r.long(),
  dataWatches: readStringList(r),
  existWatches: readStringList(r),
  childWatches: readStringList(r),
})
export const writeSetWatches = (w: Writer, v: SetWatches): void => {
  w.long(v.relativeZxid)
  writeStringList(w, v.dataWatches)
  writeStringList(w, v.existWatches)
  writeStringList(w, v.childWatches)
}

export const readSetWatches2 = (r: Reader): SetWatches2 => ({
  relativeZxid: r.long(),
  dataWatches: readStringList(r),
  existWatches: readStringList(r),
  childWatches: readStringList(r),
  persistentWatches: readStringList(r),
  persistentRecursiveWatches: readStringList(r),
})
export const writeSetWatches2 = (w: Writer, v: SetWatches2): void => {
  w.long(v.relativeZxid)
  writeStringList(w, v.dataWatches)
  writeStringList(w, v.existWatches)
  writeStringList(w, v.childWatches)
  writeStringList(w, v.persistentWatches)
  writeStringList(w, v.persistentRecursiveWatches)
}

export const readStat = (r: Reader): Stat => ({
  czxid: r.long(),
  mzxid: r.long(),
  ctime: r.long(),
  mtime: r.long(),
  version: r.int(),
  cversion: r.int(),
  aversion: r.int(),
  ephemeralOwner: r.long(),
  dataLength: r.int(),
  numChildren: r.int(),
  pzxid: r.long(),
})
export const writeStat = (w: Writer, v: Stat): void => {
  w.long(v.czxid)
  w.long(v.mzxid)
  w.long(v.ctime)
  w.long(v.mtime)
  w.int(v.version)
  w.int(v.cversion)
  w.int(v.aversion)
  w.long(v.ephemeralOwner)
  w.int(v.dataLength)
  w.int(v.numChildren)
  w.long(v.pzxid)
}

export const readStatPersisted = (r: Reader): StatPersisted => ({
  czxid: r.long(),
  mzxid: r.long(),
  ctime: r.long(),
  mtime: r.long(),
  version: r.int(),
  cversion: r.int(),
  aversion: r.int(),
  ephemeralOwner: r.long(),
  pzxid: r.long(),
})
export const writeStatPersisted = (w: Writer, v: StatPersisted): void => {
  w.long(v.czxid)
  w.long(v.mzxid)
  w.long(v.ctime)
  w.long(v.mtime)
  w.int(v.version)
  w.int(v.cversion)
  w.int(v.aversion)
  w.long(v.ephemeralOwner)
  w.long(v.pzxid)
}

export const readSyncRequest = (r: Reader): SyncRequest => ({
  path: r.string(),
})
export const writeSyncRequest = (w: Writer, v: SyncRequest): void => {
  w.string(v.path)
}

export const readSyncResponse = (r: Reader): SyncResponse => ({
  path: r.string(),
})
export const writeSyncResponse = (w: Writer, v: SyncResponse): void => {
  w.string(v.path)
}

export const readTxn = (r: Reader): Txn => ({
  type: r.int(),
  data: r.buffer(),
})
export const writeTxn = (w: Writer, v: Txn): void => {
  w.int(v.type)
  w.buffer(v.data)
}

export const readTxnDigest = (r: Reader): TxnDigest => ({
  version: r.int(),
  treeDigest: r.long(),
})
export const writeTxnDigest = (w: Writer, v: TxnDigest): void => {
  w.int(v.version)
  w.long(v.treeDigest)
}

export const readTxnHeader = (r: Reader): TxnHeader => ({
  clientId: r.long(),
  cxid: r.int(),
  zxid: r.long(),
  time: r.long(),
  type: r.int(),
})
export const writeTxnHeader = (w: Writer, v: TxnHeader): void => {
  w.long(v.clientId)
  w.int(v.cxid)
  w.long(v.zxid)
  w.long(v.time)
  w.int(v.type)
}

export const readWatcherEvent = (r: Reader): WatcherEvent => ({
  type: r.int(),
  state: r.int(),
  path: r.string(),
})
export const writeWatcherEvent = (w: Writer, v: WatcherEvent): void => {
  w.int(v.type)
  w.int(v.state)
  w.string(v.path)
}

export const readWhoAmIResponse = (r: Reader): WhoAmIResponse => ({
  clientInfo: readClientInfoList(r),
})
export const writeWhoAmIResponse = (w: Writer, v: WhoAmIResponse): void => {
  writeClientInfoList(w, v.clientInfo)
}

export function readStringList(r: Reader): readonly (string | null)[] | null {
  const count = r.vectorLength()
  if (count < 0) return null
  const list: (string | null)[] = []
  for (let i = 0; i < count; i++) list.push(r.string())
  return list
}
export function writeStringList(w: Writer, list: readonly (string | null)[] | null): void {
  if (list === null) return w.int(-1)
  w.int(list.length)
  for (const v of list) w.string(v)
}

export function readACLList(r: Reader): readonly (ACL)[] | null {
  const count = r.vectorLength()
  if (count < 0) return null
  const list: (ACL)[] = []
  for (let i = 0; i < count; i++) list.push(readACL(r))
  return list
}
export function writeACLList(w: Writer, list: readonly (ACL)[] | null): void {
  if (list === null) return w.int(-1)
  w.int(list.length)
  for (const v of list) writeACL(w, v)
}

export function readTxnList(r: Reader): readonly (Txn)[] | null {
  const count = r.vectorLength()
  if (count < 0) return null
  const list: (Txn)[] = []
  for (let i = 0; i < count; i++) list.push(readTxn(r))
  return list
}
export function writeTxnList(w: Writer, list: readonly (Txn)[] | null): void {
  if (list === null) return w.int(-1)
  w.int(list.length)
  for (const v of list) writeTxn(w, v)
}

export function readIdList(r: Reader): readonly (Id)[] | null {
  const count = r.vectorLength()
  if (count < 0) return null
  const list: (Id)[] = []
  for (let i = 0; i < count; i++) list.push(readId(r))
  return list
}
export function writeIdList(w: Writer, list: readonly (Id)[] | null): void {
  if (list === null) return w.int(-1)
  w.int(list.length)
  for (const v of list) writeId(w, v)
}

export function readClientInfoList(r: Reader): readonly (ClientInfo)[] | null {
  const count = r.vectorLength()
  if (count < 0) return null
  const list: (ClientInfo)[] = []
  for (let i = 0; i < count; i++) list.push(readClientInfo(r))
  return list
}
export function writeClientInfoList(w: Writer, list: readonly (ClientInfo)[] | null): void {
  if (list === null) return w.int(-1)
  w.int(list.length)
  for (const v of list) writeClientInfo(w, v)
}
