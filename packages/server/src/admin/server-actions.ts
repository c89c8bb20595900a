import { DiskError, type Disk } from '@zabra/runtime'
import type { Zxid } from '../core/types.ts'
import { logsIn, snapshotsIn } from '../persistence/index.ts'
import type { DirectoryReport, ServerReport } from './server-report.ts'

/** Returns the bytes of snapshots and of logs; of both together when they share a directory. */
export async function directorySizes(
  disk: Disk,
  { snapshots, logs }: DirectoryReport,
): Promise<{ readonly snapshots: number; readonly logs: number }> {
  const snapshotBytes = await directorySize(disk, snapshots)
  return {
    snapshots: snapshotBytes,
    logs: logs === snapshots ? snapshotBytes : await directorySize(disk, logs),
  }
}

/** Returns the bytes of all snapshots, and of all logs. */
export async function fileSizes(
  disk: Disk,
  { snapshots, logs }: DirectoryReport,
): Promise<{ readonly snapshots: number; readonly logs: number }> {
  const [snapshotBytes, logBytes] = await Promise.all([
    disk.list(snapshots).then((names) => sizeOf(disk, snapshots, snapshotsIn(names))),
    disk.list(logs).then((names) => sizeOf(disk, logs, logsIn(names))),
  ])
  return { snapshots: snapshotBytes, logs: logBytes }
}

const directorySize = async (disk: Disk, directory: string): Promise<number> =>
  sizeOf(
    disk,
    directory,
    (await disk.list(directory)).map((name) => ({ name })),
  )

/** Files that are asked for their sizes at once, in which time other work for the disk waits. */
const SIZES_AT_ONCE = 16

async function sizeOf(
  disk: Disk,
  directory: string,
  files: readonly { readonly name: string }[],
): Promise<number> {
  let bytes = 0
  for (let from = 0; from < files.length; from += SIZES_AT_ONCE) {
    const some = files.slice(from, from + SIZES_AT_ONCE)
    const sizes = await Promise.all(some.map(({ name }) => sizeIfThere(disk, `${directory}/${name}`)))
    bytes += sizes.reduce((sum, size) => sum + size, 0)
  }
  return bytes
}

/** Resolves to the zxid of the newest snapshot and its time in milliseconds since 1970; undefined when there is none. */
export async function newestSnapshot(
  disk: Disk,
  { snapshots }: DirectoryReport,
): Promise<{ readonly zxid: Zxid; readonly at: number } | undefined> {
  const newest = snapshotsIn(await disk.list(snapshots)).at(-1)
  if (newest === undefined) return undefined
  try {
    return { zxid: newest.zxid, at: await disk.modifiedAt(`${snapshots}/${newest.name}`) }
  } catch (error) {
    // A full sync replaces all files.
    if (error instanceof DiskError && error.code === 'ENOENT') return undefined
    throw error
  }
}

/** Resolves to 0 for a file that was purged after its directory was listed. */
async function sizeIfThere(disk: Disk, path: string): Promise<number> {
  try {
    return await disk.size(path)
  } catch (error) {
    if (error instanceof DiskError && (error.code === 'ENOENT' || error.code === 'ENOTDIR')) return 0
    throw error
  }
}

/** Resets the statistics of a server (`srst`). */
export function resetStats({ stats, portStatus, platform }: ServerReport): void {
  stats.reset()
  stats.handshakesAtReset = { ...portStatus.handshakes }
  platform.system.resetPauses?.()
}

/** Resets the statistics of the connection of each observer (`orst`). */
export function resetObserverStats({ role }: ServerReport): void {
  for (const observer of role.member?.observers ?? []) observer.resetStats()
}

/** Resets the statistics of each connection (`crst`), over turns of the event loop. */
export const resetConnectionStats = (server: ServerReport): Promise<void> =>
  server.forEachConnection(({ replyWriter }) => replyWriter.stats.reset())
