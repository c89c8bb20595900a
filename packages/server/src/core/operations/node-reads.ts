import { ErrorCode, OpCode, Perms, writeACLList, type Reader, type Writer } from '@zabra/protocol'
import { aclVisibility, maskDigests } from '../auth/index.ts'
import { PieceWriter } from '../piece-writer.ts'
import type { FieldReader } from './fields.ts'
import type { ReadCaller, ReadContext } from '../reads/types.ts'
import type { Tree } from '../tree/index.ts'
import type { NotifiedWatcher } from '../watches/index.ts'
import { defineOperation, type DecodedWrite, type MultiRules } from './types.ts'

type Context = ReadContext<NotifiedWatcher>
type Caller = ReadCaller<NotifiedWatcher>

/**
 * Data of so many bytes are attached to a reply. To copy them takes little, but memory that is new to the process takes up to a
 * hundred times as long; each part of a reply is a system call of its own.
 */
export const ATTACHED_BYTES = 65_536

/** Whether the caller may read a node's data, stat and children. */
export const canRead = ({ acls, tree }: Context, node: number, { identities }: Caller): boolean =>
  acls.allows(tree.aclOf(node), Perms.READ, identities)

/** Counts a read of a node's stat and `bytes` of its data. */
const countRead = ({ tree }: Context, node: number, bytes: number): void =>
  tree.options.traffic?.read(tree.store, node, bytes)

function getData(context: Context, body: Reader, writer: Writer, caller: Caller): number {
  const { tree } = context
  const known = tree.store.findFromReader(body)
  const { isAbsent } = tree.store
  const path = known === -1 ? body.string() : tree.pathOf(known)
  const hasWatch = body.bool()
  if (path === null) return ErrorCode.MARSHALLINGERROR
  const node = known === -1 && !isAbsent ? tree.find(path) : known
  return writeData(context, node, writer, caller, hasWatch ? path : undefined)
}

/** Writes the data and the stat of a node; `node` is -1 for none. Watches the data of the path `watched`, where it is given. */
export function writeData(
  context: Context,
  node: number,
  writer: Writer,
  caller: Caller,
  watched?: string,
): number {
  if (node === -1) return ErrorCode.NONODE
  if (!canRead(context, node, caller)) return ErrorCode.NOAUTH
  if (watched !== undefined) context.watches.watchData(caller.listener, watched)
  const { store } = context.tree
  countRead(context, node, Math.max(0, store.columns(node).length[store.slot(node)]!))
  attachData(context.tree, node, writer)
  context.tree.writeStat(node, writer)
  return ErrorCode.OK
}

/** Writes the data of a node with their length, or null. Long data are not copied: they stay as they are until the reply is sent. */
function attachData(tree: Tree, node: number, writer: Writer): void {
  const { store } = tree
  const array = store.largestData < ATTACHED_BYTES ? undefined : store.ownArrayOf(node)
  if (array === undefined || array.length < ATTACHED_BYTES || !(writer instanceof PieceWriter))
    return tree.writeData(node, writer)
  writer.int(array.length)
  writer.attach(array)
}

function exists(context: Context, body: Reader, writer: Writer, caller: Caller): number {
  const { tree, watches } = context
  const known = tree.store.findFromReader(body)
  const { isAbsent } = tree.store
  const path = known === -1 ? body.string() : tree.pathOf(known)
  const hasWatch = body.bool()
  if (path === null) return ErrorCode.MARSHALLINGERROR
  if (known === -1 && path.includes('\0')) return ErrorCode.BADARGUMENTS
  const node = known === -1 && !isAbsent ? tree.find(path) : known
  if (node !== -1 && !canRead(context, node, caller)) return ErrorCode.NOAUTH
  if (hasWatch && node === -1) watches.watchMissing(caller.listener, path)
  else if (hasWatch) watches.watchData(caller.listener, path)
  if (node === -1) return ErrorCode.NONODE
  countRead(context, node, 0)
  tree.writeStat(node, writer)
  return ErrorCode.OK
}

function getACL({ tree, acls }: Context, body: Reader, writer: Writer, { identities }: Caller): number {
  const path = body.string()
  if (path === null) return ErrorCode.MARSHALLINGERROR
  const node = tree.find(path)
  if (node === -1) return ErrorCode.NONODE
  const acl = tree.aclOf(node)
  const visibility = aclVisibility(acls, acl, identities)
  if (visibility === 'none') return ErrorCode.NOAUTH
  writeACLList(writer, visibility === 'full' ? acl : maskDigests(acl))
  tree.writeStat(node, writer)
  return ErrorCode.OK
}

/** Decodes a read that is a part of a multi. */
export function decodeReadPart(type: number, body: Reader, fields: FieldReader): DecodedWrite {
  const path = fields.path(body)
  body.bool()
  return { type, path }
}

/** Returns the rules for a read in a multi: the multi can be decoded, and is rejected. */
export const readPartRules = (resultType: number): MultiRules => ({
  isAllowed: () => false,
  normalize: (write) => write,
  resultType,
})

export const NODE_READS = [
  defineOperation({
    code: OpCode.getData,
    name: 'GETD',
    kind: 'read',
    read: getData,
    decode: decodeReadPart,
    multi: readPartRules(OpCode.getData),
  }),
  defineOperation({ code: OpCode.exists, name: 'EXIS', kind: 'read', read: exists }),
  defineOperation({ code: OpCode.getACL, name: 'GETA', kind: 'read', read: getACL }),
]
