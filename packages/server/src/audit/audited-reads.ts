import { ErrorCode, OpCode, ProtocolError, readMultiHeader, WatchMode, type Reader } from '@zabra/protocol'
import { MAX_MULTI_READ_PARTS } from '../core/operations/index.ts'
import type { ClientWrite, WriteCallback } from '../pipeline/index.ts'
import type { AuditCategory, AuditEvent, AuditResult } from './audit-event.ts'
import type { AuditLog } from './audit-log.ts'
import { clientOf } from './audited-pipeline.ts'

/** The reads whose body begins with a path. */
const OPERATIONS: ReadonlyMap<number, string> = new Map([
  [OpCode.exists, 'exists'],
  [OpCode.getData, 'getData'],
  [OpCode.getACL, 'getAcl'],
  [OpCode.getChildren, 'getChildren'],
  [OpCode.getChildren2, 'getChildren'],
  [OpCode.getAllChildrenNumber, 'getAllChildrenNumber'],
  [OpCode.getEphemerals, 'getEphemerals'],
  [OpCode.addWatch, 'addWatch'],
])

/**
 * Records a read that has its result, where its path is one of those to be recorded, or its client has no permission. Reads the body from
 * its offset.
 */
export function recordRead(
  audit: AuditLog,
  read: ClientWrite,
  body: Reader,
  err: number,
  origin: WriteCallback['origin'],
): void {
  const { readPaths } = audit
  const result = err === ErrorCode.OK ? 'success' : 'failure'
  const client = { ...clientOf(read.sessionId, read.identities, origin), xid: read.xid }
  const eventOf = (
    category: AuditCategory,
    { operation, path }: PathRead,
    result: AuditResult,
  ): AuditEvent => ({
    ...client,
    category,
    operation,
    path,
    result,
    error: result === 'failure' ? err : undefined,
  })
  try {
    if (read.type === OpCode.multiRead) {
      if (readPaths.isEmpty) return
      // The body is gone in a later turn, in which the lines may be formatted.
      const parts = [...partsOf(body)].filter(({ path }) => readPaths.covers(path))
      // What has become of one part is in the reply only.
      const outcome = result === 'success' ? 'invoked' : result
      audit.recordAll(
        parts.length,
        mapped(parts, (part) => eventOf('reads', part, outcome)),
      )
      return
    }
    const operation = OPERATIONS.get(read.type)
    const path = operation === undefined ? null : body.string()
    if (operation === undefined || path === null) return
    if (readPaths.covers(path) || (readPaths.isAbove(path) && isRecursive(read.type, body)))
      audit.record(eventOf('reads', { operation, path }, result))
    else if (err === ErrorCode.NOAUTH) audit.record(eventOf('auth', { operation, path }, result))
  } catch (error) {
    // The reply is an error for a malformed request: nothing was read.
    if (!(error instanceof ProtocolError)) throw error
  }
}

/** Whether a request, whose path is read, asks for a watch of all nodes below too. */
const isRecursive = (type: number, body: Reader): boolean =>
  type === OpCode.addWatch && body.int() === WatchMode.PERSISTENT_RECURSIVE

interface PathRead {
  readonly operation: string
  readonly path: string
}

/** Yields the reads of a multiRead, up to a part that is none. */
function* partsOf(body: Reader): Generator<PathRead> {
  for (let count = 0; count < MAX_MULTI_READ_PARTS; count++) {
    const { type, done } = readMultiHeader(body)
    const operation = done ? undefined : OPERATIONS.get(type)
    if (operation === undefined) return
    const path = body.string()
    body.bool()
    if (path !== null) yield { operation, path }
  }
}

function* mapped<From, To>(all: readonly From[], to: (one: From) => To): Generator<To> {
  for (const one of all) yield to(one)
}
