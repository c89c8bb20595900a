import { MemoryDisk, SeededRandom } from '@zabra/runtime'
import { nodeCryptography } from '@zabra/runtime/node'
import type { BackupStore } from '../catalog.ts'
import {
  encodeManifest,
  manifestName,
  type LogManifest,
  type Manifest,
  type SnapshotManifest,
} from '../manifest.ts'
import { FolderTarget, oneChunk } from '../target.ts'

const LINEAGE = '0'.repeat(32)
const COMMON = { format: 1, lineage: LINEAGE, server: 'one', key: null } as const
const pieceOf = (name: string, bytes = 1) => ({ name, bytes, sha256: '0'.repeat(64) })

/** Returns the manifest of a snapshot that is exact at its transaction, unless `given` says otherwise. */
export const snapshotAt = (zxid: number, given: Partial<SnapshotManifest> = {}): SnapshotManifest => ({
  ...COMMON,
  kind: 'snapshot',
  time: 0,
  piece: pieceOf(`snapshot/${zxid}`),
  file: `snapshot.${zxid.toString(16)}`,
  zxid,
  exactAt: zxid,
  nodes: 1,
  digest: null,
  ...given,
})

/** Returns the manifest of the log after a transaction up to another one. */
export const logBetween = (
  after: number,
  upTo: number,
  { bytes, ...given }: Partial<LogManifest> & { readonly bytes?: number } = {},
): LogManifest => ({
  ...COMMON,
  kind: 'log',
  time: 0,
  piece: pieceOf(`log/${after}-${upTo}`, bytes),
  after,
  first: after + 1,
  beforeLast: upTo - 1,
  upTo,
  lastChecksum: 7,
  firstTime: 0,
  lastTime: 0,
  transactions: upTo - after,
  ...given,
})

/** Returns a target in memory with manifests. */
export async function storeWith(...manifests: readonly Manifest[]) {
  const disk = new MemoryDisk()
  const random = new SeededRandom(5)
  const target = new FolderTarget('/backup', { disk, random })
  const store: BackupStore = { target, cryptography: nodeCryptography, random, key: undefined }
  const write = (name: string, text: Uint8Array | string): Promise<number> =>
    target.write(name, oneChunk(typeof text === 'string' ? new TextEncoder().encode(text) : text))
  const put = async (...more: readonly Manifest[]): Promise<void> => {
    for (const one of more) await write(manifestName(one), encodeManifest(one, nodeCryptography))
  }
  await write('lineage', `${LINEAGE}\n`)
  await put(...manifests)
  return { disk, store, write, put }
}
