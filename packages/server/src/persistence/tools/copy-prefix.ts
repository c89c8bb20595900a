import { DiskError, type Disk } from '@zabra/runtime'
import { ENTRY_END } from '../log-format.ts'

const CHUNK = 1 << 20

/**
 * Copies the first `length` bytes of a log to a file that must not exist yet, and makes the copy durable. `mark` adds the end mark of
 * the last transaction. The copy gets its name when it is whole: a shorter log would be taken for a sound one.
 */
export async function copyPrefix(
  disk: Disk,
  from: string,
  to: string,
  length: number,
  mark: boolean,
): Promise<void> {
  if (await disk.exists(to)) throw new DiskError(`Cannot create ${to}: a file is there`, 'EEXIST', to)
  const temporary = `${to}.tmp`
  // A copy that was cut off has left it.
  if (await disk.exists(temporary)) await disk.remove(temporary)
  const reader = await disk.openRead(from)
  try {
    const writer = await disk.openWrite(temporary, { create: true, durable: false })
    let isWhole = false
    try {
      for (let at = 0; at < length; at += CHUNK) {
        const bytes = new Uint8Array(Math.min(CHUNK, length - at))
        const read = await reader.read(bytes, at)
        await writer.write(bytes.subarray(0, read), at)
      }
      if (mark) await writer.write(new Uint8Array([ENTRY_END]), length)
      await writer.sync()
      isWhole = true
    } finally {
      await writer.close()
      if (!isWhole) await disk.remove(temporary)
    }
  } finally {
    await reader.close()
  }
  await disk.rename(temporary, to)
  await disk.syncFolder(folderOf(to))
}

/** Returns the folder of a file. */
export function folderOf(path: string): string {
  const slash = path.lastIndexOf('/')
  return slash < 0 ? '.' : slash === 0 ? '/' : path.slice(0, slash)
}
