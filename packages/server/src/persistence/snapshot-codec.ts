import { writeACL, type Writer } from '@zabra/protocol'
import type { Tree } from '../core/tree/index.ts'
import type { SessionId } from '../core/types.ts'

/** "ZKSN". */
export const SNAPSHOT_MAGIC = 0x5a4b534e
/** The path that follows the last node (disk-format 7.2). */
export const END_OF_NODES = '/'
/** Ends a snapshot on the wire (disk-format 7.10). */
export const STREAM_SIGNATURE = 'BenWasHere'

/** Sessions with their timeouts in milliseconds. */
export type SessionTimeouts = Iterable<readonly [SessionId, number]>

/** Writes sessions and access control lists as they are now. Later changes follow as transactions after the snapshot. */
export function writeSessionsAndAcls(w: Writer, tree: Tree, sessions: SessionTimeouts): void {
  const list = [...sessions]
  w.int(list.length)
  for (const [id, timeoutMs] of list) {
    w.long(id)
    w.int(timeoutMs)
  }
  const acls = tree.acls.entries()
  w.int(acls.length)
  for (const [id, acl] of acls) {
    w.longNumber(id)
    w.int(acl.length)
    for (const entry of acl) writeACL(w, entry)
  }
}

/** Writes path, data, number of the access control list and stat of a node. */
export function writeNode(w: Writer, tree: Tree, node: number): void {
  const path = tree.pathOf(node)
  w.string(path === '/' ? '' : path)
  tree.writeData(node, w)
  tree.writeStored(node, w)
}
