import { ErrorCode, OpCode, ProtocolError, readMultiHeader, WatchMode, type Reader } from '@zabra/protocol'
import type { ClientWrite, WriteCallback } from '../pipeline/index.ts'
import type { AuditCategory, AuditResult } from './audit-event.ts'
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

/** Parts of a multiRead whose paths are looked at: the most that one may have. */
const MAX_PARTS = 16_384

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
  const record = (category: AuditCategory, operation: string, path: string, result: AuditResult): void =>
    audit.record({
      ...clientOf(read.sessionId, read.identities, origin),
      xid: read.xid,
      category,
      operation,
      path,
      result,
      error: result === 'failure' ? err : undefined,
    })
  try {
    if (read.type === OpCode.multiRead) {
      // What has become of one part is in the reply only.
      for (const { operation, path } of partsOf(body))
        if (readPaths.covers(path))
          record('reads', operation, path, result === 'success' ? 'invoked' : result)
      return
    }
    const operation = OPERATIONS.get(read.type)
    const path = operation === undefined ? null : body.string()
    if (operation === undefined || path === null) return
    if (readPaths.covers(path) || (readPaths.isAbove(path) && isRecursive(read.type, body)))
      record('reads', operation, path, result)
    else if (err === ErrorCode.NOAUTH) record('auth', operation, path, result)
  } catch (error) {
    // The client was told that its request cannot be decoded, and has got nothing.
    if (!(error instanceof ProtocolError)) throw error
  }
}

/** Whether a request, whose path is read, asks for a watch of all nodes below too. */
const isRecursive = (type: number, body: Reader): boolean =>
  type === OpCode.addWatch && body.int() === WatchMode.PERSISTENT_RECURSIVE

function* partsOf(body: Reader): Generator<{ readonly operation: string; readonly path: string }> {
  for (let count = 0; count < MAX_PARTS; count++) {
    const { type, done } = readMultiHeader(body)
    if (done) return
    const path = body.string()
    body.bool()
    const operation = OPERATIONS.get(type)
    if (path !== null && operation !== undefined) yield { operation, path }
  }
}
