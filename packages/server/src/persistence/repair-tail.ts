import type { Disk } from '@zabra/runtime'
import { ENTRY_END, LOG_HEADER_BYTES } from './log-format.ts'
import type { ScanEnd } from './log-scan.ts'

/** Bytes at the end of the newest log that are rewritten at startup: more than one write can have had in flight. */
const REWRITTEN_BYTES = 64 << 20
const COPY_BYTES = 1 << 20

/** Removes a torn write from the end of a log, or adds a missing end mark, so that later starts find a clean end. */
export async function repairTail(disk: Disk, folder: string, path: string, end: ScanEnd): Promise<void> {
  if (end.end < LOG_HEADER_BYTES) await disk.remove(path)
  else {
    const writer = await disk.openWrite(path, { create: false, durable: false })
    try {
      if (end.missingEndMark !== undefined)
        await writer.write(new Uint8Array([ENTRY_END]), end.missingEndMark)
      else await writer.truncate(end.end)
      await writer.sync()
    } finally {
      await writer.close()
    }
  }
  await disk.syncFolder(folder)
}

/**
 * Makes the newest log durable up to `end` by writing its tail again. The process before may have ended between a write and its
 * sync, or because its sync failed: then the system shows bytes that a power cut removes, and after a failed sync it no longer
 * intends to write them. Clients that are served from these bytes can rely on them afterwards.
 */
export async function rewriteTail(disk: Disk, folder: string, path: string, end: number): Promise<void> {
  // `repairTail` has removed a log without a whole header.
  if (end < LOG_HEADER_BYTES) return
  const reader = await disk.openRead(path)
  try {
    const writer = await disk.openWrite(path, { create: false, durable: false })
    try {
      for (let at = Math.max(0, end - REWRITTEN_BYTES); at < end; at += COPY_BYTES) {
        const part = new Uint8Array(Math.min(COPY_BYTES, end - at))
        await writer.write(part.subarray(0, await reader.read(part, at)), at)
      }
      await writer.sync()
    } finally {
      await writer.close()
    }
  } finally {
    await reader.close()
  }
  await disk.syncFolder(folder)
}
