import { CreateMode, ErrorCode, OpCode, readText, type Reader } from '@zabra/protocol'
import { describeWrite, type WriteDescription } from '../core/prepare/index.ts'
import { userName } from '../core/auth/index.ts'
import { failureOf } from '../core/tree/index.ts'
import type { Identity, SessionId, SubTxn, Txn, Zxid } from '../core/types.ts'
import type {
  AcceptedWrite,
  ClientWrite,
  PipelineContext,
  RecordedDigests,
  RequestPipeline,
  RevalidationCallback,
  WriteCallback,
} from '../pipeline/index.ts'
import type { NotifiedWatcher } from '../core/watches/index.ts'
import type { AuditEvent } from './audit-event.ts'
import type { AuditLog } from './audit-log.ts'

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
  readonly #paths = new PathCopies()
  readonly deleteContainer?: NonNullable<RequestPipeline['deleteContainer']>

  constructor(pipeline: RequestPipeline, audit: AuditLog) {
    this.#pipeline = pipeline
    this.#audit = audit
    if (pipeline.deleteContainer !== undefined)
      this.deleteContainer = (path, startedAt, isDue) =>
        pipeline.deleteContainer!(path, startedAt, () => {
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

  write(write: ClientWrite, body: Reader, callback: WriteCallback, startedAt: number): number {
    if (this.#audit.refusesWrites) return ErrorCode.SYSTEMERROR
    if (!this.#audit.records('writes')) return this.#pipeline.write(write, body, callback, startedAt)
    const { offset } = body
    const pathAt = this.#paths.add(write.type, body)
    const description = pathAt === -1 ? describeWrite(write.type, body) : undefined
    const audited = new AuditedWrite(this.#audit, write, callback, description, this.#paths.bytes, pathAt)
    const err = this.#pipeline.write(write, body, audited, startedAt)
    if (err === ErrorCode.OK) return err
    body.offset = offset
    recordFailure(this.#audit, write, describeWrite(write.type, body), err)
    return err
  }

  createSession(id: SessionId, timeout: number, callback: WriteCallback, startedAt: number): boolean {
    return this.#pipeline.createSession(id, timeout, callback, startedAt)
  }

  closeSession(id: SessionId, xid: number, callback: WriteCallback | undefined, startedAt: number): boolean {
    const isAccepted = this.#pipeline.closeSession(id, xid, callback, startedAt)
    // Without a callback, the server ends the session: it has expired, or an operator asked for it.
    const operation = callback === undefined ? 'sessionEnd' : 'sessionClose'
    if (isAccepted) this.#audit.record({ category: 'sessions', operation, session: id, result: 'invoked' })
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

  end(): void {
    this.#pipeline.end()
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
      if (!audit.records('writes')) return
      const paths = txn.paths2Delete
      audit.recordAll(
        paths.length,
        mapped(paths, (path) => audit.ephemeralDeletion(id, path)),
      )
    },
  }
}

/** Records a write that was refused before the pipeline got it. */
export function recordRefusal(audit: AuditLog, write: ClientWrite, body: Reader, err: number): void {
  if (audit.records('writes')) recordFailure(audit, write, describeWrite(write.type, body), err)
}

/** Bytes that the copies of many paths share. */
const SHARED_BYTES = 1 << 16
/** Bytes of the longest path that is copied, and of the number before it. */
const MAX_COPY = 256
const LENGTH_BYTES = 2

/**
 * Copies the paths of requests that have nothing else to describe, as bytes into one array after the other. The bytes of a request are
 * valid during a call only, and only a failure needs its path: decoding each path, and keeping it while the write is in flight,
 * costs more than the rest of recording it.
 */
class PathCopies {
  bytes = new Uint8Array(0)
  #used = 0

  /** Copies the path of a request. Returns where in `bytes` it is; -1 if the request has to be described instead. */
  add(type: number, body: Reader): number {
    if (type !== OpCode.setData && type !== OpCode.delete) return -1
    const { offset, bytes } = body
    if (body.remaining < 4) return -1
    const length = body.int()
    body.offset = offset
    const start = offset + 4
    if (length < 0 || length > MAX_COPY || length > body.end - start) return -1
    if (this.#used + LENGTH_BYTES + length > this.bytes.length) {
      this.bytes = new Uint8Array(SHARED_BYTES)
      this.#used = 0
    }
    const at = this.#used
    const into = this.bytes
    into[at] = length >> 8
    into[at + 1] = length & 0xff
    for (let i = 0; i < length; i++) into[at + LENGTH_BYTES + i] = bytes[start + i]!
    this.#used = at + LENGTH_BYTES + length
    return at
  }
}

function copiedPath(bytes: Uint8Array, at: number): string {
  const length = (bytes[at]! << 8) | bytes[at + 1]!
  return readText(bytes, at + LENGTH_BYTES, at + LENGTH_BYTES + length)
}

/** A write of a client that is recorded after its reply. */
class AuditedWrite implements WriteCallback {
  readonly #audit: AuditLog
  readonly #sessionId: SessionId
  readonly #identities: readonly Identity[]
  readonly #callback: WriteCallback
  readonly #description: WriteDescription | undefined
  /** Where the path is, of a write without description. */
  readonly #paths: Uint8Array
  readonly #pathAt: number

  constructor(
    audit: AuditLog,
    { sessionId, identities }: ClientWrite,
    callback: WriteCallback,
    description: WriteDescription | undefined,
    paths: Uint8Array,
    pathAt: number,
  ) {
    this.#audit = audit
    this.#sessionId = sessionId
    this.#identities = identities
    this.#callback = callback
    this.#description = description
    this.#paths = paths
    this.#pathAt = pathAt
  }

  onPart(txn: SubTxn, isApplied: boolean): void {
    this.#callback.onPart(txn, isApplied)
  }

  onApplied(write: AcceptedWrite, err: number): void {
    this.#callback.onApplied(write, err)
    const { header, txn } = write.logged
    const failure = failureIn(txn) ?? err
    if (failure !== ErrorCode.OK) return this.#recordFailure(write, failure, header.zxid)
    const origin = originOf(this.#requestOf(write))
    if (txn.type === OpCode.multi) {
      const modes = this.#description?.modes ?? []
      return this.#audit.recordAll(txn.txns.length, partEvents(origin, header.zxid, txn.txns, modes))
    }
    const event = successOf(origin, header.zxid, txn as SubTxn, this.#description?.mode)
    if (event !== undefined) this.#audit.record(event)
  }

  onLost(write: Pick<AcceptedWrite, 'xid' | 'type' | 'startedAt'>): void {
    this.#callback.onLost(write)
    this.#recordFailure(write, ErrorCode.SYSTEMERROR)
  }

  onSynced(): void {
    this.#callback.onSynced()
  }

  #recordFailure(write: Pick<AcceptedWrite, 'xid' | 'type'>, err: number, zxid?: Zxid): void {
    const description = this.#description ?? { path: copiedPath(this.#paths, this.#pathAt) }
    recordFailure(this.#audit, this.#requestOf(write), description, err, zxid)
  }

  #requestOf({ xid, type }: Pick<AcceptedWrite, 'xid' | 'type'>): ClientWrite {
    return { sessionId: this.#sessionId, xid, type, identities: this.#identities }
  }
}

type EventOrigin = Pick<AuditEvent, 'session' | 'users' | 'ip' | 'xid'>

/** What the identities of a client say in its lines; they stay the same array until it logs in again. */
const namesOf = new WeakMap<readonly Identity[], Pick<AuditEvent, 'users' | 'ip'>>()

function originOf({ sessionId, xid, identities }: ClientWrite): EventOrigin {
  let names = namesOf.get(identities)
  if (names === undefined) {
    names = { users: userNames(identities), ip: identities.find(({ scheme }) => scheme === 'ip')?.id }
    namesOf.set(identities, names)
  }
  return { session: sessionId, users: names.users, ip: names.ip, xid }
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
  zxid?: Zxid,
): void {
  const operation = write.type === OpCode.multi ? 'multiOperation' : OPERATIONS.get(write.type)
  if (operation === undefined) return
  audit.record({
    ...originOf(write),
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
  flags === undefined ? undefined : MODE_NAMES.get(flags)

/** Returns the event of an applied transaction; undefined for one that changes nothing, such as a check. */
function successOf(
  { session, users, ip, xid }: EventOrigin,
  zxid: Zxid,
  txn: SubTxn,
  flags: number | undefined,
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
    xid,
    zxid,
    path: txn.path,
    mode: modeName(flags),
    acl: 'acl' in txn && txn.type === OpCode.setACL ? txn.acl : undefined,
    version: 'version' in txn ? txn.version : undefined,
    bytes: 'data' in txn ? (txn.data?.length ?? 0) : undefined,
  }
}

function* partEvents(
  origin: EventOrigin,
  zxid: Zxid,
  parts: Iterable<SubTxn>,
  modes: Iterable<number | undefined>,
): Generator<AuditEvent> {
  const left = modes[Symbol.iterator]()
  for (const part of parts) {
    const event = successOf(origin, zxid, part, left.next().value as number | undefined)
    if (event !== undefined) yield event
  }
}

function* mapped<T>(values: Iterable<T>, toEvent: (value: T) => AuditEvent): Generator<AuditEvent> {
  for (const value of values) yield toEvent(value)
}
