import { OpCode } from '@zabra/protocol'
import type { Zxid } from '../types.ts'
import type { ChangeSink } from './contract.ts'
import type { Tree } from './tree.ts'

const CONFIG_NODE = '/zookeeper/config'

/**
 * Overwrites what `/zookeeper/config` shows, outside any transaction, as every member does when a configuration comes into
 * force (`ZKDatabase.initConfigInZKDatabase`). The zxid of the tree stays, and the node is in no digest. `wall` in milliseconds.
 */
export function overwriteConfiguration(
  tree: Tree,
  text: string,
  version: Zxid,
  wall: number,
  sink?: ChangeSink,
): void {
  const data = new TextEncoder().encode(text)
  // The transaction that changed it may have shown it already.
  if (equal(tree.dataOf(tree.find(CONFIG_NODE)), data)) return
  // A leader may name a configuration after the begin of its epoch, which no transaction has reached yet.
  const zxid = Math.min(version, tree.lastZxid)
  const header = { sessionId: 0n, cxid: 0, zxid, time: Math.floor(wall) }
  tree.apply(header, { type: OpCode.setData, path: CONFIG_NODE, data, version: -1 }, sink)
}

const equal = (a: Uint8Array | null, b: Uint8Array): boolean =>
  a !== null && a.length === b.length && a.every((byte, at) => byte === b[at])
