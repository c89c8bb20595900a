import { epochOf, formatZxid, makeZxid } from '@zabra/protocol'
import type { Disk, HttpRequest, Platform } from '@zabra/runtime'
import { closeSessions } from '../../backup/index.ts'
import { sameDigest, type Tree } from '../../core/tree/index.ts'
import type { Zxid } from '../../core/types.ts'
import { loadSnapshot, RECEIVED_FILE } from '../../persistence/index.ts'
import type { AdminTarget } from '../admin-target.ts'

/** Sessions that are closed in one turn of the event loop. */
const SESSIONS_PER_TURN = 20

/**
 * Replaces the data of a standalone server by the snapshot in the body of a request. The snapshot is received and checked before
 * anything changes; the old files are set aside. Sessions end, and zxids go on in an epoch that no client has seen. Resolves to the last
 * transaction. Rejects with a `DamageError` for a body that is no complete snapshot.
 */
export async function restoreSnapshot(
  target: AdminTarget,
  { body }: HttpRequest,
  { disk, compression, clock }: Pick<Platform, 'disk' | 'compression' | 'clock'>,
): Promise<Zxid> {
  const folder = target.directories.snapshots
  const name = await receive(disk, folder, body)
  try {
    const tree = target.createTree()
    const loaded = await loadSnapshot(disk, folder, { name, zxid: 0 }, tree, compression)
    rejectPartial(tree, loaded)
    const lastZxid = loaded.lastZxid!
    const present = target.service?.tree.lastZxid ?? 0
    const epochStart = makeZxid(epochOf(Math.max(present, lastZxid)) + 1, 0)
    tree.lastZxid = lastZxid
    let closed = 0
    for (const _ of closeSessions(tree, loaded.sessions.keys(), epochStart, Math.floor(clock.wall())))
      if (++closed % SESSIONS_PER_TURN === 0)
        await new Promise<void>((resolve) => {
          clock.immediate(resolve)
        })
    tree.lastZxid = Math.max(tree.lastZxid, epochStart)
    await target.replaceTree(tree)
    return tree.lastZxid
  } finally {
    await disk.remove(`${folder}/${name}`)
  }
}

/** Writes a body to the folder of snapshots. Resolves to the name of the file, which tells how it is compressed. */
async function receive(disk: Disk, folder: string, body: AsyncIterable<Uint8Array>): Promise<string> {
  let name: string | undefined
  let size = 0
  let file: Awaited<ReturnType<Disk['openWrite']>> | undefined
  try {
    for await (const chunk of body) {
      if (file === undefined) {
        name = RECEIVED_FILE + suffixOf(chunk)
        file = await disk.openWrite(`${folder}/${name}`, { create: true, durable: false })
      }
      await file.write(chunk, size)
      size += chunk.length
    }
  } catch (error) {
    await file?.close()
    file = undefined
    if (name !== undefined) await disk.remove(`${folder}/${name}`)
    throw error
  } finally {
    await file?.close()
  }
  if (name === undefined) throw new Error('Expected a snapshot in the body of the request, got none.')
  return name
}

const suffixOf = ([first, second]: Uint8Array): '' | '.gz' | '.snappy' =>
  first === 0x1f && second === 0x8b ? '.gz' : first === 0x82 && second === 0x53 ? '.snappy' : ''

/** Throws for a snapshot whose contents are not those of a moment. */
function rejectPartial(
  tree: Tree,
  { lastZxid, digest, nodesWithoutAcl }: Awaited<ReturnType<typeof loadSnapshot>>,
): void {
  if (lastZxid === undefined)
    throw new Error(
      'Expected a snapshot that says what its last transaction is, got one of a server before 3.9. Start a server on it, and take another one there.',
    )
  const [path] = nodesWithoutAcl
  if (path !== undefined)
    throw new Error(
      `Expected a snapshot that is complete without a log, got one without the access list of ${path}: it was written while transactions came. Take another one.`,
    )
  if (digest === undefined || tree.digest === undefined || digest.zxid !== lastZxid) return
  if (!sameDigest(digest.value, tree.digest))
    throw new Error(
      `Expected the digest of the snapshot after 0x${formatZxid(lastZxid)}, got another one. Take another snapshot.`,
    )
}
