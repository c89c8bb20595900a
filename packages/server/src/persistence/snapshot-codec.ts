import { writeACL, type Writer } from '@zabra/protocol'
import type { AclView, Tree } from '../core/tree/index.ts'
import type { SessionId } from '../core/types.ts'

/** "ZKSN". */
export const SNAPSHOT_MAGIC = 0x5a4b534e
/** The path that follows the last node (disk-format 7.2). */
export const END_OF_NODES = '/'
/** Ends a snapshot on the wire (disk-format 7.10). */
export const STREAM_SIGNATURE = 'BenWasHere'

/** Sessions with their timeouts in milliseconds. */
export type SessionTimeouts = Iterable<readonly [SessionId, number]>

/** Writes sessions as they are now, and the number of access control lists in a view. Later changes follow as transactions. */
export function writeSessions(w: Writer, sessions: SessionTimeouts, acls: AclView): void {
  const list = [...sessions]
  w.int(list.length)
  for (const [id, timeoutMs] of list) {
    w.long(id)
    w.int(timeoutMs)
  }
  w.int(acls.count)
}

/** Writes the lists of a view. Yields after each: they may have many megabytes together. */
export function* writeAcls(w: Writer, { lists }: AclView): Generator<void> {
  for (const [id, acl] of lists) {
    w.longNumber(id)
    w.int(acl.length)
    for (const entry of acl) writeACL(w, entry)
    yield
  }
}

/** Writes path, data, number of the access control list and stat of a node. */
export function writeNode(w: Writer, tree: Tree, node: number): void {
  const path = tree.pathOf(node)
  w.string(path === '/' ? '' : path)
  tree.writeData(node, w)
  tree.writeStored(node, w)
}
