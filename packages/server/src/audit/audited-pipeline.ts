import { CreateMode, ErrorCode, OpCode, type Reader } from '@zabra/protocol'
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
    const description = describeWrite(write.type, body)
    const audited = new AuditedWrite(this.#audit, write, description, callback)
    const err = this.#pipeline.write(write, body, audited, startedAt)
    if (err !== ErrorCode.OK) recordFailure(this.#audit, write, description, err)
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

/** A write of a client that is recorded after its reply. */
class AuditedWrite implements WriteCallback {
  readonly #audit: AuditLog
  readonly #write: ClientWrite
  readonly #description: WriteDescription
  readonly #callback: WriteCallback

  constructor(audit: AuditLog, write: ClientWrite, description: WriteDescription, callback: WriteCallback) {
    this.#audit = audit
    this.#write = write
    this.#description = description
    this.#callback = callback
  }

  onPart(txn: SubTxn, isApplied: boolean): void {
    this.#callback.onPart(txn, isApplied)
  }

  onApplied(write: AcceptedWrite, err: number): void {
    this.#callback.onApplied(write, err)
    const { header, txn } = write.logged
    const failure = failureIn(txn) ?? err
    if (failure !== ErrorCode.OK)
      return recordFailure(this.#audit, this.#write, this.#description, failure, header.zxid)
    const origin = originOf(this.#write)
    const { mode, modes } = this.#description
    if (txn.type === OpCode.multi)
      this.#audit.recordAll(txn.txns.length, partEvents(origin, header.zxid, txn.txns, modes))
    else this.#recordSuccess(origin, header.zxid, txn as SubTxn, mode)
  }

  onLost(write: Pick<AcceptedWrite, 'xid' | 'type' | 'startedAt'>): void {
    this.#callback.onLost(write)
    recordFailure(this.#audit, this.#write, this.#description, ErrorCode.SYSTEMERROR)
  }

  onSynced(): void {
    this.#callback.onSynced()
  }

  #recordSuccess(origin: EventOrigin, zxid: Zxid, txn: SubTxn, mode: number | undefined): void {
    const event = successOf(origin, zxid, txn, mode)
    if (event !== undefined) this.#audit.record(event)
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
  { path, acl, mode }: WriteDescription,
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
