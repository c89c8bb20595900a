import {
  ErrorCode,
  OpCode,
  readMultiRequest,
  writeMultiHeader,
  type MultiOperation,
  type Reader,
  type Writer,
} from '@zabra/protocol'
import {
  CHUNK_THRESHOLD,
  chunkedMultiRead,
  type ChildListInsertion,
  type ChunkedReply,
} from '../reads/chunked-reply.ts'
import type { ReadCaller, ReadContext } from '../reads/types.ts'
import { ChildPathsCursor, writeChildren } from '../tree/index.ts'
import type { NotifiedWatcher } from '../watches/index.ts'
import { canRead, writeData } from './node-reads.ts'
import { MULTI_END } from './sessions.ts'
import { defineOperation } from './types.ts'

type Context = ReadContext<NotifiedWatcher>
type Caller = ReadCaller<NotifiedWatcher>

/**
 * Limits of one request. All its parts see one state of the tree, so they are executed in one turn of the event loop, which these
 * hold for some milliseconds; only lists of more than `CHUNK_THRESHOLD` names, or of long ones, are written in later turns.
 */
const MAX_PARTS = 16_384
const MAX_REPLY_BYTES = 8 * 2 ** 20
const MAX_NAME_BYTES = 2 * 2 ** 20

/** Executes all parts on one state of the tree: long lists of children are captured now, and written in steps. */
function multiRead(context: Context, body: Reader, writer: Writer, caller: Caller): number | ChunkedReply {
  const cursors = new Map<number, ChildPathsCursor>()
  try {
    return readParts(context, cursors, body, writer, caller)
  } catch (error) {
    for (const cursor of cursors.values()) cursor.close()
    throw error
  }
}

function readParts(
  context: Context,
  cursors: Map<number, ChildPathsCursor>,
  body: Reader,
  writer: Writer,
  caller: Caller,
): number | ChunkedReply {
  const operations = readMultiRequest(body, MAX_PARTS)
  if (operations.some(isReadPart) && !operations.every(isReadPart))
    body.fail('Expected reads only or writes only', 'a multi')
  const start = writer.length
  const lists: ChildListInsertion[] = []
  let failure: number = ErrorCode.OK
  let nameBytes = 0
  for (const operation of operations) {
    const { type, path } = operation
    if (path === null || !isReadPart(operation)) {
      failure = ErrorCode.MARSHALLINGERROR
      break
    }
    const mark = writer.length
    writeMultiHeader(writer, { type, done: false, err: 0 })
    const node = context.tree.find(path)
    let isLong = type === OpCode.getChildren && (cursors.has(node) || isLongList(context, node, caller))
    let err: number = ErrorCode.OK
    if (type === OpCode.getData) err = writeData(context, node, path, false, writer, caller)
    else if (!isLong) {
      const at = writer.length
      err = readError(context, node, caller)
      isLong = err === ErrorCode.OK && !writeChildren(context.tree, node, writer)
      nameBytes += writer.length - mark
      if (isLong) writer.truncate(at)
    }
    if (isLong) lists.push({ at: writer.length - start, children: cursorOf(context, cursors, node) })
    if (writer.length - start > MAX_REPLY_BYTES || nameBytes > MAX_NAME_BYTES)
      body.fail('Expected reads of 8 MiB, and 2 MiB of names in short lists, at most together', 'a multi')
    if (err === ErrorCode.OK) continue
    writer.truncate(mark)
    writeMultiHeader(writer, { type: OpCode.error, done: false, err })
    writer.int(err)
  }
  writeMultiHeader(writer, MULTI_END)
  if (lists.length === 0) return failure
  const bytes = writer.bytes().slice(start)
  writer.truncate(start)
  return chunkedMultiRead(bytes, lists, { err: failure, limit: MAX_REPLY_BYTES })
}

const isReadPart = ({ type }: MultiOperation): boolean =>
  type === OpCode.getData || type === OpCode.getChildren

const isLongList = (context: Context, node: number, caller: Caller): boolean =>
  node !== -1 && context.tree.childCount(node) > CHUNK_THRESHOLD && canRead(context, node, caller)

/** Parts that list the children of the same node share one cursor. */
function cursorOf({ tree }: Context, cursors: Map<number, ChildPathsCursor>, node: number): ChildPathsCursor {
  let cursor = cursors.get(node)
  if (cursor === undefined) cursors.set(node, (cursor = new ChildPathsCursor(tree, node)))
  return cursor
}

function readError(context: Context, node: number, caller: Caller): number {
  if (node === -1) return ErrorCode.NONODE
  return canRead(context, node, caller) ? ErrorCode.OK : ErrorCode.NOAUTH
}

export const MULTI_READ = defineOperation({
  code: OpCode.multiRead,
  name: 'MLTR',
  kind: 'read',
  read: multiRead,
})
