import {
  ErrorCode,
  OpCode,
  readMultiHeader,
  readMultiRequest,
  writeMultiHeader,
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
export const MAX_PARTS = 4096
const MAX_REPLY_BYTES = 8 * 2 ** 20
const MAX_NAME_BYTES = 2 * 2 ** 20
/** A short name takes as long as one of 20 bytes. */
const MAX_NAMES = 32_768
/** Entries of long access control lists that were not looked at before: these take some milliseconds, later requests nothing. */
const MAX_ACL_ENTRIES = 20_000

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
  const { tree } = context
  if (!checkParts(body)) {
    writeMultiHeader(writer, MULTI_END)
    return ErrorCode.MARSHALLINGERROR
  }
  const start = writer.length
  const lists: ChildListInsertion[] = []
  let failure: number = ErrorCode.OK
  let nameBytes = 0
  let names = 0
  const mostVisited = context.acls.entriesVisited + MAX_ACL_ENTRIES
  for (let { type, done } = readMultiHeader(body); !done; { type, done } = readMultiHeader(body)) {
    const node = readNode(context, body)
    if (node === undefined) {
      failure = ErrorCode.MARSHALLINGERROR
      break
    }
    const mark = writer.length
    writeMultiHeader(writer, { type, done: false, err: 0 })
    let isLong = type === OpCode.getChildren && (cursors.has(node) || isLongList(context, node, caller))
    let err: number = ErrorCode.OK
    if (type === OpCode.getData) err = writeData(context, node, writer, caller)
    else if (!isLong) {
      const at = writer.length
      err = readError(context, node, caller)
      isLong = err === ErrorCode.OK && !writeChildren(tree, node, writer)
      nameBytes += writer.length - mark
      if (err === ErrorCode.OK) names += tree.childCount(node)
      if (isLong) writer.truncate(at)
    }
    if (isLong) lists.push({ at: writer.length - start, children: cursorOf(context, cursors, node) })
    if (writer.length - start > MAX_REPLY_BYTES || nameBytes > MAX_NAME_BYTES || names > MAX_NAMES)
      body.fail(
        'Expected reads of 8 MiB, and 32,768 names of 2 MiB in short lists, at most together',
        'a multi',
      )
    if (context.acls.entriesVisited > mostVisited)
      body.fail(`Expected ${MAX_ACL_ENTRIES} new entries of long access control lists at most`, 'a multi')
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

/**
 * Checks that a request can be decoded, without an object for each part: thousands of them that live until the last one is decoded
 * take longer than the reads. Returns whether it has reads only, and leaves the reader before them; false when it has writes only.
 */
function checkParts(body: Reader): boolean {
  const before = body.offset
  let parts = 0
  for (let { type, done } = readMultiHeader(body); !done; { type, done } = readMultiHeader(body)) {
    if (parts++ === MAX_PARTS) body.fail(`Expected ${MAX_PARTS} parts at most`, 'a multi')
    if (!isRead(type)) return checkWrites(body, before)
    body.skipBuffer()
    body.bool()
  }
  body.offset = before
  return true
}

/** Checks that a request, which begins at an offset, can be decoded and has no read. Returns false. */
function checkWrites(body: Reader, from: number): false {
  body.offset = from
  if (readMultiRequest(body, MAX_PARTS).some(({ type }) => isRead(type)))
    body.fail('Expected reads only or writes only', 'a multi')
  return false
}

const isRead = (type: number): boolean => type === OpCode.getData || type === OpCode.getChildren

/** Reads the path and the watch of a part. Returns the node, -1 for none, and undefined for a null path. */
function readNode({ tree }: Context, body: Reader): number | undefined {
  let node = tree.store.findFromReader(body)
  if (node === -1 && tree.store.isAbsent) body.skipBuffer()
  else if (node === -1) {
    const path = body.string()
    if (path === null) return undefined
    node = tree.find(path)
  }
  // Apache ZooKeeper sets no watch for a part either.
  body.bool()
  return node
}

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
