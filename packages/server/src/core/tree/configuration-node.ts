import { readText } from '@zabra/protocol'
import type { Zxid } from '../types.ts'
import { crcPrefix } from './digest.ts'
import type { Tree } from './tree.ts'

/** The node in which clients read and watch the members of the ensemble. */
export const CONFIGURATION_NODE = '/zookeeper/config'

/**
 * Writes the active configuration into its node. Each member does so itself, without a transaction; the node is not part of the
 * digest. `version` is that of the configuration, `time` is in milliseconds since 1970. Does nothing when the node has this
 * text already, or a newer version.
 */
export function writeConfigurationNode(tree: Tree, text: Uint8Array, version: Zxid, time: number): void {
  const node = tree.find(CONFIGURATION_NODE)
  if (node === -1) return
  const c = tree.store.columns(node)
  const i = tree.store.slot(node)
  const now = tree.store.data(node) ?? new Uint8Array(0)
  const same = now.length === text.length && now.every((byte, at) => byte === text[at])
  if (same || c.mzxid[i]! > version) return
  tree.store.setData(node, text)
  c.mzxid[i] = version
  c.mtime[i] = time
  c.version[i] = -1
  if (tree.options.digest) c.crc[i] = crcPrefix(c.pathCrc[i]!, text)
}

/**
 * Copies the configuration node of one tree to another one, which replaces it and whose node may be that of another ensemble. `zxid` is
 * the last one of the new data, and becomes that of the node's creation (`replacementOf`).
 */
export function copyConfigurationNode(from: Tree, to: Tree, zxid: Zxid): void {
  const [source, target] = [from.find(CONFIGURATION_NODE), to.find(CONFIGURATION_NODE)]
  if (source === -1 || target === -1) return
  const { mzxid, mtime } = from.statOf(source)
  const c = to.store.columns(target)
  c.czxid[to.store.slot(target)] = zxid
  c.mzxid[to.store.slot(target)] = 0
  to.store.setData(target, new Uint8Array(0))
  writeConfigurationNode(to, from.dataOf(source) ?? new Uint8Array(0), mzxid, mtime)
}

/** Returns the last zxid of the data by which those of an ensemble were replaced last; 0 where they never were. */
export function replacementOf(tree: Tree): Zxid {
  const node = tree.find(CONFIGURATION_NODE)
  return node === -1 ? 0 : tree.statOf(node).czxid
}

/** Returns the text of the configuration node, and the zxid of its last change. */
export function readConfigurationNode(tree: Tree): { readonly text: string; readonly zxid: Zxid } {
  const node = tree.find(CONFIGURATION_NODE)
  if (node === -1) return { text: '', zxid: 0 }
  const data = tree.dataOf(node) ?? new Uint8Array(0)
  return { text: readText(data, 0, data.length), zxid: tree.statOf(node).mzxid }
}
