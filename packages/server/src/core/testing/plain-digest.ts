import { crc32, Writer } from '@zabra/protocol'
import type { Tree } from '../tree/index.ts'
import type { StoredStat } from '../types.ts'

/** Returns what a node adds to the digest of its tree (`DigestCalculator`): the CRC-32 of its encoded path, data and stat. */
export function plainNodeDigest(path: string, data: Uint8Array | null, stat: StoredStat): number {
  if (path.startsWith('/zookeeper/')) return 0
  const writer = new Writer()
  writer.string(path === '/' ? '' : path)
  const text = writer.take().subarray(4)
  writer.raw(text)
  if (data !== null) writer.raw(data)
  for (const long of [stat.czxid, stat.mzxid, stat.pzxid, stat.ctime, stat.mtime]) writer.longNumber(long)
  for (const int of [stat.version, stat.cversion, stat.aversion]) writer.int(int)
  writer.long(stat.owner)
  return crc32(writer.take())
}

/** Returns the digest of a tree: the sum over all nodes modulo 2^64. */
export function plainDigest(tree: Tree): { hi: number; lo: number } {
  let sum = 0n
  const cursor = tree.scan()
  cursor.next(Infinity, (node) => {
    sum += BigInt(plainNodeDigest(tree.pathOf(node), tree.dataOf(node), tree.statOf(node)))
  })
  cursor.close()
  return { hi: Number(BigInt.asUintN(64, sum) >> 32n), lo: Number(sum & 0xffff_ffffn) }
}
