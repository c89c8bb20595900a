import { ErrorCode, OpCode, Writer, type Reader } from '@zabra/protocol'
import { beginsWith } from '../begins-with.ts'
import {
  CHUNK_THRESHOLD,
  chunkedChildren,
  chunkedCount,
  chunkedEphemerals,
  type ChunkedReply,
} from '../reads/chunked-reply.ts'
import type { ReadCaller, ReadContext } from '../reads/types.ts'
import {
  ChildPathsCursor,
  countDescendants,
  DescendantCounter,
  EphemeralPathsCursor,
  NAME_BYTES_AT_ONCE,
  SESSION_USERS_NODE,
  writeChildren,
} from '../tree/index.ts'
import type { NotifiedWatcher } from '../watches/index.ts'
import { canRead, decodeReadPart, readPartRules } from './node-reads.ts'
import { defineOperation } from './types.ts'

type Context = ReadContext<NotifiedWatcher>
type Caller = ReadCaller<NotifiedWatcher>

const getChildren = (context: Context, body: Reader, writer: Writer, caller: Caller): number | ChunkedReply =>
  readChildren(context, body, false, writer, caller)

const getChildren2 = (
  context: Context,
  body: Reader,
  writer: Writer,
  caller: Caller,
): number | ChunkedReply => readChildren(context, body, true, writer, caller)

function readChildren(
  context: Context,
  body: Reader,
  withStat: boolean,
  writer: Writer,
  caller: Caller,
): number | ChunkedReply {
  const { tree, watches } = context
  const path = body.string()
  const hasWatch = body.bool()
  if (path === null) return ErrorCode.MARSHALLINGERROR
  const node = tree.find(path)
  if (node === -1) return ErrorCode.NONODE
  if (!canRead(context, node, caller)) return ErrorCode.NOAUTH
  if (hasWatch) watches.watchChildren(caller.listener, path)
  const mark = writer.length
  if (tree.childCount(node) <= CHUNK_THRESHOLD && writeChildren(tree, node, writer)) {
    if (withStat) tree.writeStat(node, writer)
    return ErrorCode.OK
  }
  writer.truncate(mark)
  const stat = new Writer(80)
  if (withStat) tree.writeStat(node, stat)
  return chunkedChildren(new ChildPathsCursor(tree, node), stat.take())
}

function getAllChildrenNumber(
  context: Context,
  body: Reader,
  writer: Writer,
  caller: Caller,
): number | ChunkedReply {
  const { tree } = context
  const path = body.string()
  if (path === null) return ErrorCode.MARSHALLINGERROR
  const node = tree.find(path)
  if (node === -1) return ErrorCode.NONODE
  if (!canRead(context, node, caller)) return ErrorCode.NOAUTH
  // Apache ZooKeeper counts one more for the empty path than for "/".
  if (path === '' || path === '/') {
    writer.int(path === '' ? tree.nodeCount : tree.nodeCount - 1)
    return ErrorCode.OK
  }
  const count = countDescendants(tree, node, CHUNK_THRESHOLD)
  if (count === undefined) return chunkedCount(new DescendantCounter(tree, path))
  writer.int(count)
  return ErrorCode.OK
}

function getEphemerals(
  { tree }: Context,
  body: Reader,
  writer: Writer,
  { sessionId }: Caller,
): number | ChunkedReply {
  const requested = body.string()
  const prefix = requested === null || ['', '/'].includes(trim(requested)) ? '' : requested
  const inSteps = (): ChunkedReply =>
    chunkedEphemerals(new EphemeralPathsCursor(tree, sessionId, (path) => isListed(path, prefix)))
  const nodes = tree.owners.ofSession(sessionId)
  if (nodes.size > CHUNK_THRESHOLD) return inSteps()
  const mark = writer.length
  writer.int(0)
  let count = 0
  let chars = 0
  for (const node of nodes) {
    const path = tree.pathOf(node)
    chars += path.length
    if (chars > NAME_BYTES_AT_ONCE) {
      writer.truncate(mark)
      return inSteps()
    }
    if (!isListed(path, prefix)) continue
    writer.string(path)
    count++
  }
  writer.intAt(mark, count)
  return ErrorCode.OK
}

/** The node that names the user of the session is the server's. */
const isListed = (path: string, prefix: string): boolean =>
  beginsWith(path, prefix) && !path.startsWith(`${SESSION_USERS_NODE}/`)

/** Trims the same characters as Java's `String.trim`: all characters up to the space, and no other white space of Unicode. */
function trim(text: string): string {
  let [start, end] = [0, text.length]
  while (text.charCodeAt(start) <= 0x20) start++
  while (text.charCodeAt(end - 1) <= 0x20) end--
  return text.slice(start, end)
}

export const LIST_READS = [
  defineOperation({
    code: OpCode.getChildren,
    name: 'GETC',
    kind: 'read',
    read: getChildren,
    decode: decodeReadPart,
    multi: readPartRules(OpCode.getChildren),
  }),
  defineOperation({ code: OpCode.getChildren2, name: 'GETC', kind: 'read', read: getChildren2 }),
  defineOperation({
    code: OpCode.getAllChildrenNumber,
    name: 'GETACN',
    kind: 'read',
    read: getAllChildrenNumber,
  }),
  defineOperation({ code: OpCode.getEphemerals, name: 'GETE', kind: 'read', read: getEphemerals }),
]
