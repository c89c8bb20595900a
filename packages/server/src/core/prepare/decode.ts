import {
  CreateMode,
  ErrorCode,
  isCreateMode,
  isEphemeral,
  isTtl,
  OpCode,
  ProtocolError,
  OPEN_ACL_BYTES,
  OPEN_ACL_UNSAFE,
  readACLList,
  readMultiHeader,
  readReconfigRequest,
  readSetACLRequest,
  type MultiOperation,
  type Reader,
} from '@zabra/protocol'
import type { NodeStore } from '../tree/node-store.ts'
import type { Arena } from './arena.ts'

/** How the parts of a request are read that cost most. */
export interface FieldReader {
  /** The path of a node, which is there in most cases. */
  path(body: Reader): string | null
  /** The path of a node that is to be. */
  newPath(body: Reader): string | null
  /** Data, as bytes that stay as they are or as a view. */
  data(body: Reader): Uint8Array | null
}

/** Paths of nodes that are there are the tree's own, and data are copies. */
export const treeFieldReader = (store: NodeStore, copies: Arena): FieldReader => ({
  path: (body) => {
    const node = store.findFromReader(body)
    return node === -1 ? body.string() : store.pathOf(node)
  },
  newPath: (body) => body.string(),
  data: (body) => copies.copyNext(body),
})

/**
 * For whoever wants to know whether a request can be decoded: what it says is passed over. What can be passed over can be taken in
 * every other way as well; a multi is prepared on the strength of that.
 */
export const SKIPPING: FieldReader = {
  path: (body) => (body.skipBuffer() === -1 ? null : ''),
  newPath: (body) => (body.skipBuffer() === -1 ? null : ''),
  data: (body) => (body.skipBuffer(), null),
}

/**
 * Reads the body of a write other than a multi. Throws a `ProtocolError` when it is none. The common ones are read field by
 * field: a record that is taken apart again costs as much as reading it.
 */
export function decodeWrite(
  type: number,
  body: Reader,
  taking: FieldReader,
): MultiOperation | ({ type: typeof OpCode.setACL } & ReturnType<typeof readSetACLRequest>) {
  switch (type) {
    case OpCode.create:
    case OpCode.create2:
    case OpCode.createContainer: {
      const path = taking.newPath(body)
      const data = taking.data(body)
      const acl = body.skipIfEqual(OPEN_ACL_BYTES) ? OPEN_ACL_UNSAFE : readACLList(body)
      return { type, path, data, acl, flags: body.int() }
    }
    case OpCode.createTTL: {
      const path = taking.newPath(body)
      return {
        type,
        path,
        data: taking.data(body),
        acl: readACLList(body),
        flags: body.int(),
        ttl: body.long(),
      }
    }
    case OpCode.delete:
      return { type, path: taking.path(body), version: body.int() }
    case OpCode.setData:
      return { type, path: taking.path(body), data: taking.data(body), version: body.int() }
    case OpCode.setACL:
      return { type, ...readSetACLRequest(body) }
    default:
      return body.fail(`Expected the op code of a write, got ${type}`, 'an op code')
  }
}

/** The operations of a multi, one after the other. Throws a `ProtocolError` at one that cannot be decoded. */
export function* multiOperations(body: Reader, taking: FieldReader): Generator<MultiOperation> {
  for (;;) {
    const { type, done } = readMultiHeader(body)
    if (done) return
    yield decodePart(type, body, taking)
  }
}

function decodePart(type: number, body: Reader, taking: FieldReader): MultiOperation {
  switch (type) {
    case OpCode.check:
      return { type, path: taking.path(body), version: body.int() }
    case OpCode.getData:
    case OpCode.getChildren:
      return { type, path: taking.path(body), watch: body.bool() }
    default: {
      const operation = decodeWrite(type, body, taking)
      if (operation.type !== OpCode.setACL) return operation
      return body.fail('Expected an operation that a multi can hold, got a change of rights', 'an op code')
    }
  }
}

/** What the reference refuses before it looks at a multi: reads, null paths, and plain creates with modes that need more. */
export function isAllowedInMulti(operation: MultiOperation): boolean {
  if (operation.path === null) return false
  switch (operation.type) {
    case OpCode.getData:
    case OpCode.getChildren:
      return false
    case OpCode.create:
    case OpCode.create2:
    case OpCode.createContainer:
      return isCreateMode(operation.flags) && operation.flags < CreateMode.PERSISTENT_WITH_TTL
    case OpCode.createTTL:
    case OpCode.delete:
    case OpCode.setData:
    case OpCode.check:
      return true
  }
}

/** A creation without a list cannot be decoded inside a multi. */
export const lacksAcl = (operation: MultiOperation): boolean => 'acl' in operation && operation.acl === null

/** In a multi the flags of a creation say what it is, not its op code alone (`Op.create`). */
export function normalizeMultiOperation(operation: MultiOperation): MultiOperation {
  const { type } = operation
  if (type !== OpCode.create && type !== OpCode.create2 && type !== OpCode.createTTL) return operation
  if (operation.flags === CreateMode.CONTAINER) return { ...operation, type: OpCode.createContainer }
  const untimed = type === OpCode.createTTL && isCreateMode(operation.flags) && !isTtl(operation.flags)
  return untimed ? { ...operation, type: OpCode.create } : operation
}

/** What a server that forwards writes finds out about one beforehand. */
export interface PrecheckResult {
  /** Other than 0 for a request that the deciding server would not answer by a transaction: it cannot be decoded. */
  readonly err: number
  /** Whether it creates ephemeral nodes, which only a session that everybody knows can own. */
  readonly isEphemeral: boolean
}

const FORWARD: PrecheckResult = { err: ErrorCode.OK, isEphemeral: false }
const EPHEMERAL: PrecheckResult = { err: ErrorCode.OK, isEphemeral: true }
const UNDECODABLE: PrecheckResult = { err: ErrorCode.MARSHALLINGERROR, isEphemeral: false }

/** Looks at a write that another server decides. A multi that cannot be decoded is answered by a transaction, with an error. */
export function precheck(type: number, body: Reader): PrecheckResult {
  try {
    if (type === OpCode.multi) return screenMulti(body)
    if (type === OpCode.reconfig) readReconfigRequest(body)
    else return ofOperation(decodeWrite(type, body, SKIPPING))
    return FORWARD
  } catch (error) {
    if (error instanceof ProtocolError) return UNDECODABLE
    throw error
  }
}

function screenMulti(body: Reader): PrecheckResult {
  let [lacks, ephemeral] = [false, false]
  try {
    for (const operation of multiOperations(body, SKIPPING)) {
      lacks ||= lacksAcl(operation)
      ephemeral ||= ofOperation(operation).isEphemeral
    }
  } catch (error) {
    if (error instanceof ProtocolError) return FORWARD
    throw error
  }
  return lacks ? UNDECODABLE : ephemeral ? EPHEMERAL : FORWARD
}

const ofOperation = (operation: ReturnType<typeof decodeWrite>): PrecheckResult =>
  (operation.type === OpCode.create || operation.type === OpCode.create2) && isEphemeral(operation.flags)
    ? EPHEMERAL
    : FORWARD
