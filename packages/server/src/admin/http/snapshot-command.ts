import type { Disk, HttpResponse } from '@zabra/runtime'
import { chunksOf } from '../../backup/index.ts'
import type { Zxid } from '../../core/types.ts'
import { snapshotsIn } from '../../persistence/index.ts'
import type { AdminTarget } from '../admin-target.ts'

/** A snapshot file and the headers that describe it. */
export interface TakenSnapshot {
  readonly path: string
  readonly zxid: Zxid
  readonly headers: Readonly<Record<string, string>>
}

/** Takes a snapshot. Resolves to its file, or to undefined when it could not be taken, or the role has ended meanwhile. */
export async function takeSnapshot(target: AdminTarget): Promise<TakenSnapshot | undefined> {
  const { disk } = target.platform
  const { snapshots } = target.directories
  const { service } = target
  if (!(await target.takeSnapshot())) return undefined
  // A role that ends applies the rest of its log, which may never be committed.
  if (target.service !== service) return undefined
  const newest = snapshotsIn(await disk.list(snapshots)).at(-1)
  if (newest === undefined) return undefined
  const path = `${snapshots}/${newest.name}`
  const headers = {
    last_zxid: `0x${newest.zxid.toString(16)}`,
    snapshot_size: String(await disk.size(path)),
  }
  return { path, zxid: newest.zxid, headers }
}

/** Sends a snapshot. The file stays open until the last byte, so it may be removed meanwhile. */
export async function snapshotResponse(
  disk: Disk,
  { path, headers }: Pick<TakenSnapshot, 'path' | 'headers'>,
): Promise<HttpResponse> {
  const reader = await disk.openRead(path)
  return {
    status: 200,
    headers: { ...headers, 'content-type': 'application/octet-stream' },
    body: chunksOf(reader),
  }
}
