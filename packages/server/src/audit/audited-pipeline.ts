import { CreateMode, ErrorCode, isSequential, OpCode, type Reader } from '@zabra/protocol'
import { describeWrite, type WriteDescription } from '../core/prepare/index.ts'
import { userName } from '../core/auth/index.ts'
import { failureOf, type Tree } from '../core/tree/index.ts'
import type {
  CreateTxn,
  DeleteTxn,
  Identity,
  SessionId,
  SetDataTxn,
  SubTxn,
  Txn,
  Zxid,
} from '../core/types.ts'
import type {
  AcceptedWrite,
  ClientOrigin,
  ClientWrite,
  PipelineContext,
  RecordedDigests,
  RequestPipeline,
  RevalidationCallback,
  WriteCallback,
} from '../pipeline/index.ts'
import type { NotifiedWatcher } from '../core/watches/index.ts'
import type { AuditClient, AuditEvent, PlainChange } from './audit-event.ts'
import type { AuditLog } from './audit-log.ts'
import { RequestsInFlight } from './requests-in-flight.ts'

/** The operations that Apache ZooKeeper records, by the op codes of their requests and of the parts of a multi. */
const OPERATIONS: ReadonlyMap<number, string> = new Map([
  [OpCode.create, 'create'],
  [OpCode.create2, 'create'],
  [OpCode.createContainer, 'create'],
  [OpCode.createTTL, 'create'],
  [OpCode.delete, 'delete'],
  [OpCode.setData, 'setData'],
  [OpCode.setACL, 'setAcl'],
  [OpCode.reconfig, 'reconfig'],
])

const MODE_NAMES: ReadonlyMap<number, string> = new Map(
  Object.entries(CreateMode).map(([name, mode]) => [mode, name.toLowerCase()]),
)

/** Records the writes of the clients of this server, once each has its reply, and passes everything on to the pipeline of the role. */
export class AuditedPipeline implements RequestPipeline {
  readonly #pipeline: RequestPipeline
  readonly #audit: AuditLog
  readonly #tree: DeletedVersion
  readonly #callbacks = new WeakMap<WriteCallback, AuditedCallback>()
  /** The callback of the last write and what records its writes: those of a connection come in batches. */
  #lastCallback: WriteCallback | undefined
  #lastAudited: AuditedCallback | undefined
  readonly deleteContainer?: NonNullable<RequestPipeline['deleteContainer']>

  /** `tree` is the one to which the pipeline applies transactions. */
  constructor(pipeline: RequestPipeline, audit: AuditLog, tree: DeletedVersion) {
    this.#pipeline = pipeline
    this.#audit = audit
    this.#tree = tree
    if (pipeline.deleteContainer !== undefined)
      this.deleteContainer = (path, isDue) =>
        pipeline.deleteContainer!(path, () => {
          const isDeleted = isDue()
          // As in Apache ZooKeeper, the session of what the server deletes is 0.
          if (isDeleted)
            audit.record({ category: 'writes', operation: 'delete', session: 0n, path, result: 'invoked' })
          return isDeleted
        })
  }

  get outstanding(): number {
    return this.#pipeline.outstanding
  }

  get transactions(): number {
    return this.#pipeline.transactions
  }

  get unprepared(): number | undefined {
    return this.#pipeline.unprepared
  }

  get unapplied(): number {
    return this.#pipeline.unapplied
  }

  get queues(): Readonly<Record<string, number>> {
    return this.#pipeline.queues
  }

  get isWritable(): boolean {
    return this.#pipeline.isWritable
  }

  get lastVisibleZxid(): Zxid {
    return this.#pipeline.lastVisibleZxid
  }

  get digests(): RecordedDigests {
    return this.#pipeline.digests
  }

  write(write: ClientWrite, body: Reader, callback: WriteCallback): number {
    if (this.#audit.refusesWrites) return ErrorCode.SYSTEMERROR
    if (!this.#audit.recordsWrites) return this.#pipeline.write(write, body, callback)
    const { offset } = body
    const audited = this.#auditedOf(write, callback)
    audited.requests.add(write.xid, write.type, body)
    const err = this.#pipeline.write(write, body, audited)
    if (err === ErrorCode.OK) return err
    audited.requests.dropNewest()
    body.offset = offset
    recordFailure(this.#audit, write, describeWrite(write.type, body), err, callback.origin)
    return err
  }

  createSession(id: SessionId, timeout: number, callback: WriteCallback): boolean {
    return this.#pipeline.createSession(id, timeout, callback)
  }

  closeSession(id: SessionId, xid: number, callback: WriteCallback | undefined): boolean {
    const isAccepted = this.#pipeline.closeSession(id, xid, callback)
    // Without a callback, the server ends the session: who decides that also records it.
    if (isAccepted && callback !== undefined) {
      const { origin } = callback
      this.#audit.record({
        category: 'sessions',
        operation: 'sessionClose',
        session: id,
        ip: origin?.ip,
        origin,
        via: 'zk',
        result: 'invoked',
      })
    }
    return isAccepted
  }

  sync(write: ClientWrite, callback: WriteCallback): number | undefined {
    return this.#pipeline.sync(write, callback)
  }

  revalidate(id: SessionId, timeout: number, callback: RevalidationCallback): void {
    this.#pipeline.revalidate(id, timeout, callback)
  }

  canAnswerPing(timeout: number, now: number): boolean {
    return this.#pipeline.canAnswerPing(timeout, now)
  }

  end(): Generator<void> | undefined {
    return this.#pipeline.end()
  }

  #auditedOf(write: ClientWrite, callback: WriteCallback): AuditedCallback {
    const last = this.#lastAudited
    if (callback === this.#lastCallback && last!.identities === write.identities) return last!
    let audited = this.#callbacks.get(callback)
    // The writes in flight of a client that has logged in keep the callback with its former identities.
    if (audited?.identities !== write.identities) {
      audited = new AuditedCallback(this.#audit, this.#tree, write, callback)
      this.#callbacks.set(callback, audited)
    }
    this.#lastCallback = callback
    return (this.#lastAudited = audited)
  }
}

/** Returns the context of a pipeline that also records the ephemeral nodes that go with their sessions, as each member does. */
export function auditedContext<L extends NotifiedWatcher>(
  context: PipelineContext<L>,
  audit: AuditLog,
): PipelineContext<L> {
  return {
    ...context,
    onSessionClosed(id, callback, txn) {
      context.onSessionClosed(id, callback, txn)
      if (!audit.recordsWrites) return
      const paths = txn.paths2Delete
      audit.recordAll(
        paths.length,
        mapped(paths, (path) => audit.ephemeralDeletion(id, path)),
      )
    },
  }
}

/** Records a write that was refused before the pipeline got it. */
export function recordRefusal(
  audit: AuditLog,
  write: ClientWrite,
  body: Reader,
  err: number,
  origin: ClientOrigin | undefined,
): void {
  if (audit.recordsWrites) recordFailure(audit, write, describeWrite(write.type, body), err, origin)
}

/** What tells the version that a deleted node had. */
type DeletedVersion = Pick<Tree, 'deletedVersion'>

/** Records the writes of one connection, with its identities at the time of their requests, each after its reply. */
class AuditedCallback implements WriteCallback {
  readonly identities: readonly Identity[]
  readonly requests = new RequestsInFlight()
  readonly #audit: AuditLog
  readonly #tree: DeletedVersion
  /** The versions of the nodes that the parts of the multi which is being applied have deleted. */
  #deletedVersions: number[] = []
  readonly #sessionId: SessionId
  readonly #client: AuditClient
  readonly #callback: WriteCallback

  constructor(
    audit: AuditLog,
    tree: DeletedVersion,
    { sessionId, identities }: ClientWrite,
    callback: WriteCallback,
  ) {
    this.#audit = audit
    this.#tree = tree
    this.#sessionId = sessionId
    this.identities = identities
    this.#client = clientOf(sessionId, identities, callback.origin)
    this.#callback = callback
  }

  onPart(txn: SubTxn, isApplied: boolean): void {
    this.#callback.onPart(txn, isApplied)
    if (isApplied) this.#keepVersion(txn)
  }

  onApplied(write: AcceptedWrite, err: number): void {
    const { txn } = write.logged
    this.#keepVersion(txn)
    this.#callback.onApplied(write, err)
    const versions = this.#deletedVersions
    if (versions.length > 0) this.#deletedVersions = []
    const operation = err === ErrorCode.OK ? plainOperation(txn.type) : undefined
    if (operation !== undefined && this.requests.find(write.xid)) {
      const { mode } = this.requests
      const change = this.#changeOf(write, txn as PlainTxn, operation, versions[0])
      // The path of a sequential node has a number that its request does not have.
      const isRecorded = isSequential(mode)
        ? this.#audit.recordChange(this.#client, change, (txn as CreateTxn).path)
        : this.#audit.recordFirst(this.#client, change, this.requests)
      if (isRecorded) return this.requests.removeFirst()
    }
    this.#record(write, failureIn(txn) ?? err, versions)
  }

  onLost(write: Pick<AcceptedWrite, 'xid' | 'type'>): void {
    this.#callback.onLost(write)
    this.#recordFailure(write, ErrorCode.SYSTEMERROR, this.requests.take(write.xid))
  }

  onSynced(): void {
    this.#callback.onSynced()
  }

  /** Returns what the line of the first request in flight says, whose transaction is applied. */
  #changeOf(
    { xid, logged }: AcceptedWrite,
    txn: PlainTxn,
    operation: string,
    deletedVersion: number | undefined,
  ): PlainChange {
    const mode = modeName(this.requests.mode)
    if (!this.#audit.isJson) return { operation, mode }
    const { version, versionBefore } = versionsOf(txn, deletedVersion)
    const bytes = 'data' in txn ? (txn.data?.length ?? 0) : undefined
    return { operation, mode, version, versionBefore, bytes, xid, zxid: logged.header.zxid }
  }

  /** Keeps the version of a node that was deleted just now, which lines of Apache ZooKeeper do not have. */
  #keepVersion({ type }: Txn): void {
    if (type === OpCode.delete && this.#audit.isJson) this.#deletedVersions.push(this.#tree.deletedVersion)
  }

  #record(write: AcceptedWrite, failure: number, deletedVersions: readonly number[]): void {
    const { xid } = write
    const { header, txn } = write.logged
    const description = this.requests.take(xid)
    if (failure !== ErrorCode.OK) return this.#recordFailure(write, failure, description, header.zxid)
    const by = { ...this.#client, xid, zxid: header.zxid }
    if (txn.type === OpCode.multi) {
      const modes = description.modes ?? []
      return this.#audit.recordAll(txn.txns.length, partEvents(by, txn.txns, modes, deletedVersions))
    }
    const event = successOf(by, txn as SubTxn, description.mode, deletedVersions[0])
    if (event !== undefined) this.#audit.record(event)
  }

  #recordFailure(
    { xid, type }: Pick<AcceptedWrite, 'xid' | 'type'>,
    err: number,
    description: Partial<WriteDescription>,
    zxid?: Zxid,
  ): void {
    const write = { sessionId: this.#sessionId, xid, type, identities: this.identities }
    recordFailure(this.#audit, write, description, err, this.#callback.origin, zxid)
  }
}

/** Transactions whose line says nothing but what they hold, and the create mode. */
type PlainTxn = CreateTxn | DeleteTxn | SetDataTxn

/** Returns the name of an operation whose line says nothing but the path and the create mode. */
function plainOperation(type: number): string | undefined {
  switch (type) {
    case OpCode.setData:
      return 'setData'
    case OpCode.delete:
      return 'delete'
    case OpCode.create:
    case OpCode.create2:
    case OpCode.createContainer:
      return 'create'
    default:
      return undefined
  }
}

/** Whose request an event is about. */
type RequestFields = AuditClient & Pick<AuditEvent, 'xid' | 'zxid'>

/** What the identities of a client say in its lines; they stay the same array until it logs in again. */
const namesOf = new WeakMap<readonly Identity[], Pick<AuditClient, 'users' | 'ip'>>()

/** Returns who sent a request. */
export function clientOf(
  session: SessionId,
  identities: readonly Identity[],
  origin: ClientOrigin | undefined,
): AuditClient {
  let names = namesOf.get(identities)
  if (names === undefined) {
    names = { users: userNames(identities), ip: identities.find(({ scheme }) => scheme === 'ip')?.id }
    namesOf.set(identities, names)
  }
  return { session, users: names.users, ip: names.ip ?? origin?.ip, origin, via: origin?.via ?? 'zk' }
}

/** Returns the names of identities, each once. */
export function userNames(identities: readonly Identity[]): readonly string[] {
  const names = identities.map(userName).filter((name) => name !== '')
  return names.length < 2 ? names : [...new Set(names)]
}

function failureIn(txn: Txn): number | undefined {
  if (txn.type === OpCode.error) return txn.err
  return txn.type === OpCode.multi ? failureOf(txn.txns)?.err : undefined
}

function recordFailure(
  audit: AuditLog,
  write: ClientWrite,
  { path, acl, mode }: Partial<WriteDescription>,
  err: number,
  origin: ClientOrigin | undefined,
  zxid?: Zxid,
): void {
  const operation = write.type === OpCode.multi ? 'multiOperation' : OPERATIONS.get(write.type)
  if (operation === undefined) return
  audit.record({
    ...clientOf(write.sessionId, write.identities, origin),
    xid: write.xid,
    category: 'writes',
    operation,
    result: 'failure',
    path,
    mode: modeName(mode),
    acl,
    zxid,
    error: err,
  })
}

const modeName = (flags: number | undefined): string | undefined =>
  flags === undefined || flags < 0 ? undefined : MODE_NAMES.get(flags)

/** Returns the event of an applied transaction; undefined for one that changes nothing, such as a check. */
function successOf(
  { session, users, ip, origin, via, xid, zxid }: RequestFields,
  txn: SubTxn,
  flags: number | undefined,
  deletedVersion: number | undefined,
): AuditEvent | undefined {
  const operation = OPERATIONS.get(txn.type)
  if (operation === undefined || !('path' in txn)) return undefined
  return {
    category: 'writes',
    operation,
    result: 'success',
    session,
    users,
    ip,
    origin,
    via,
    xid,
    zxid,
    path: txn.path,
    mode: modeName(flags),
    acl: 'acl' in txn && txn.type === OpCode.setACL ? txn.acl : undefined,
    ...versionsOf(txn, deletedVersion),
    bytes: 'data' in txn ? (txn.data?.length ?? 0) : undefined,
  }
}

/** Returns the version of what a transaction changes after and before it. A created node has the version 0, and none before. */
function versionsOf(
  txn: SubTxn,
  deletedVersion: number | undefined,
): Pick<AuditEvent, 'version' | 'versionBefore'> {
  if (txn.type === OpCode.delete) return { versionBefore: deletedVersion }
  if (txn.type === OpCode.setData || txn.type === OpCode.setACL)
    return { version: txn.version, versionBefore: (txn.version - 1) | 0 }
  return 'parentCVersion' in txn ? { version: 0 } : {}
}

function* partEvents(
  by: RequestFields,
  parts: Iterable<SubTxn>,
  modes: Iterable<number | undefined>,
  deletedVersions: Iterable<number>,
): Generator<AuditEvent> {
  const left = modes[Symbol.iterator]()
  const versions = deletedVersions[Symbol.iterator]()
  for (const part of parts) {
    const mode = left.next().value as number | undefined
    const version = part.type === OpCode.delete ? (versions.next().value as number | undefined) : undefined
    const event = successOf(by, part, mode, version)
    if (event !== undefined) yield event
  }
}

function* mapped<T>(values: Iterable<T>, toEvent: (value: T) => AuditEvent): Generator<AuditEvent> {
  for (const value of values) yield toEvent(value)
}
