import { formatZxid } from '@zabra/protocol'
import type { Disk } from '@zabra/runtime'
import type { Zxid } from '../core/types.ts'
import { logsIn, snapshotsIn } from './file-names.ts'
import { scanLog } from './log-scan.ts'

/**
 * Removes every transaction above `zxid` from logs, and every snapshot that is above it. Recover afterwards, and trust
 * the result only if it ends at `zxid` exactly. The log must be closed. Folders are those named `version-2`.
 */
export async function truncateTo(
  disk: Disk,
  folders: { snapshots: string; logs: string },
  zxid: Zxid,
): Promise<void> {
  for (const file of snapshotsIn(await disk.list(folders.snapshots))) {
    if (file.zxid > zxid) await disk.remove(`${folders.snapshots}/${file.name}`)
  }
  await disk.syncFolder(folders.snapshots)
  for (const file of logsIn(await disk.list(folders.logs)).toReversed()) {
    const path = `${folders.logs}/${file.name}`
    if (file.zxid > zxid) {
      await disk.remove(path)
      continue
    }
    let from: number | undefined
    await scanLog(disk, path, (entry) => {
      if (entry.zxid > zxid) from = entry.offset
      return from === undefined
    })
    if (from === undefined) continue
    const writer = await disk.openWrite(path, { create: false, durable: false })
    try {
      await writer.truncate(from)
      await writer.sync()
    } finally {
      await writer.close()
    }
  }
  await disk.syncFolder(folders.logs)
}

/** The epoch that a file such as `currentEpoch` holds, or undefined when there is none. Throws when it holds anything else. */
export async function readEpoch(disk: Disk, path: string): Promise<number | undefined> {
  return readNumber(disk, path)
}

export async function writeEpoch(disk: Disk, path: string, epoch: number): Promise<void> {
  if (!Number.isSafeInteger(epoch) || epoch < 0)
    throw new RangeError(`Expected an epoch from 0 up, got 0x${formatZxid(epoch)}`)
  await disk.replaceFile(path, new TextEncoder().encode(String(epoch)))
}

/** The server's number from `myid`, or undefined when there is no such file. */
export const readMyId = (disk: Disk, dataDir: string): Promise<number | undefined> =>
  readNumber(disk, `${dataDir}/myid`)

async function readNumber(disk: Disk, path: string): Promise<number | undefined> {
  if (!(await disk.exists(path))) return undefined
  const line = new TextDecoder().decode(await disk.readFile(path)).split(/\r?\n/, 1)[0]!
  const value = Number(line)
  if (!/^\d+$/.test(line) || !Number.isSafeInteger(value)) {
    throw new RangeError(
      `Expected a decimal number in the first line of ${path}, got ${JSON.stringify(line.slice(0, 40))}`,
    )
  }
  return value
}
