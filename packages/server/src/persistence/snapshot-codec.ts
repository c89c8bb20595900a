import { writeACL, type Writer } from '@zabra/protocol'
import type { AclView, Tree } from '../core/tree/index.ts'
import { SessionMap, type SessionMapView } from '../core/session-map.ts'
import type { SessionId } from '../core/types.ts'

/** "ZKSN". */
export const SNAPSHOT_MAGIC = 0x5a4b534e
/** The path that follows the last node (disk-format 7.2). */
export const END_OF_NODES = '/'
/** Ends a snapshot on the wire (disk-format 7.10). */
export const STREAM_SIGNATURE = 'BenWasHere'

/** Sessions with their timeouts in milliseconds. */
export type SessionTimeouts = Iterable<readonly [SessionId, number]>

/**
 * Bytes of a slice of a snapshot, and entries of its tables: the part that is encoded at once. A thousand sessions take a millisecond, or
 * two while the code is not compiled.
 */
export const SLICE_BYTES = 1 << 16
const SLICE_ENTRIES = 1000

/** The tables of a snapshot as they are when it begins. Later changes are transactions that follow it. */
export class SnapshotTables {
  readonly #sessions: SessionMapView<number>
  readonly #acls: AclView
  #isOpen = true

  constructor(tree: Tree, sessions: SessionTimeouts) {
    this.#sessions = (sessions instanceof SessionMap ? sessions : new SessionMap(sessions)).view()
    this.#acls = tree.acls.view()
  }

  /** Writes sessions and access control lists. Yields after each slice but the last one: they may have many megabytes together. */
  *write(w: Writer): Generator<void> {
    let left = SLICE_ENTRIES
    for (const _ of this.#writeEntries(w)) {
      if (--left > 0 && w.length < SLICE_BYTES) continue
      yield
      left = SLICE_ENTRIES
    }
  }

  /** Yields after each entry. */
  *#writeEntries(w: Writer): Generator<void> {
    w.int(this.#sessions.size)
    for (const [id, timeoutMs] of this.#sessions.entries) {
      w.long(id)
      w.int(timeoutMs)
      yield
    }
    w.int(this.#acls.count)
    yield* writeAcls(w, this.#acls)
  }

  /** Ends the views; may be called again. */
  close(): void {
    if (!this.#isOpen) return
    this.#isOpen = false
    this.#sessions.close()
    this.#acls.close()
  }
}

function* writeAcls(w: Writer, { lists }: AclView): Generator<void> {
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
