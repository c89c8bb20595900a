import type { Disk } from '@zabra/runtime'
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

async function directorySize(disk: Disk, directory: string): Promise<number> {
  let bytes = 0
  for (const name of await disk.list(directory)) {
    // A file may be purged after the directory was listed.
    const path = `${directory}/${name}`
    if (await disk.exists(path)) bytes += await disk.size(path)
  }
  return bytes
}

/** Resets the statistics of a server (`srst`). */
export function resetStats({ stats, watchNotifier, portStatus, platform }: ServerReport): void {
  const { rejected, failed } = portStatus.handshakes
  stats.reset()
  stats.tlsExceededAtReset = rejected
  stats.tlsFailedAtReset = failed
  watchNotifier.resetStats()
  platform.system.resetPauses?.()
}

/** Resets the statistics of each connection (`crst`). */
export function resetConnectionStats({ connections }: ServerReport): void {
  for (const { replyWriter } of connections) replyWriter.stats.reset()
}
