import type { Writer } from '@zabra/protocol'
import type { NodeStore } from './node-store.ts'

/** Bytes of the stat that clients see. */
const STAT_BYTES = 68

/**
 * Writes the stat of a node that clients see. `owner` is the session of an ephemeral node, or 0.
 *
 * Optimised: claims all bytes at once and writes the numbers at their offsets.
 * Why: every read has a stat, and reserving space eleven times takes longer than writing it. Tested against `writeStat` of the
 * protocol, in `tree.test.ts`.
 */
export function writeStat(store: NodeStore, node: number, owner: bigint, writer: Writer): void {
  const c = store.columns(node)
  const i = store.slot(node)
  const at = writer.claim(STAT_BYTES)
  const { view } = writer
  const children = c.childCount[i]!
  long(view, at, c.czxid[i]!)
  long(view, at + 8, c.mzxid[i]!)
  long(view, at + 16, c.ctime[i]!)
  long(view, at + 24, c.mtime[i]!)
  view.setInt32(at + 32, c.version[i]!)
  // The stored cversion counts created children; clients see created plus removed ones.
  view.setInt32(at + 36, c.cversion[i]! * 2 - children)
  view.setInt32(at + 40, c.aversion[i]!)
  setOwner(view, at + 44, owner)
  view.setInt32(at + 52, Math.max(0, c.length[i]!))
  view.setInt32(at + 56, children)
  long(view, at + 60, c.pzxid[i]!)
}

/** Bytes that follow the data of a node in a snapshot: ACL id, stored stat, owner. */
const STORED_BYTES = 68

/** Writes those fields in the same way, since a snapshot has them for every node. */
export function writeStored(store: NodeStore, node: number, owner: bigint, writer: Writer): void {
  const c = store.columns(node)
  const i = store.slot(node)
  const at = writer.claim(STORED_BYTES)
  const { view } = writer
  long(view, at, c.acl[i]!)
  long(view, at + 8, c.czxid[i]!)
  long(view, at + 16, c.mzxid[i]!)
  long(view, at + 24, c.ctime[i]!)
  long(view, at + 32, c.mtime[i]!)
  view.setInt32(at + 40, c.version[i]!)
  view.setInt32(at + 44, c.cversion[i]!)
  view.setInt32(at + 48, c.aversion[i]!)
  setOwner(view, at + 52, owner)
  long(view, at + 60, c.pzxid[i]!)
}

/** Writes an integer from -2^53 to 2^53. `setInt32` keeps the lower 32 bits of each half. */
function long(view: DataView, at: number, value: number): void {
  view.setInt32(at, Math.floor(value / 0x1_0000_0000))
  view.setInt32(at + 4, value)
}

/** Writes an owner. V8 calls a function for `setBigInt64`, and most nodes have no owner. */
function setOwner(view: DataView, at: number, owner: bigint): void {
  if (owner === 0n) {
    view.setInt32(at, 0)
    view.setInt32(at + 4, 0)
  } else view.setBigInt64(at, owner)
}
