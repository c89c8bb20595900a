import { DiskError, type Disk, type DiskReader, type DiskWriter } from '@zabra/runtime'
import { ENTRY_END } from '../log-format.ts'

const CHUNK = 1 << 20

/**
 * Copies the first `length` bytes of a log to a file that must not exist yet, and makes the copy durable. `mark` adds the end mark of
 * the last transaction. The copy gets its name when it is whole: a shorter log would be taken for a sound one. Replaces and removes no
 * other file: one that is killed leaves its part of the copy.
 */
export async function copyPrefix(
  disk: Disk,
  from: string,
  to: string,
  length: number,
  mark: boolean,
): Promise<void> {
  if (await disk.exists(to)) throw new DiskError(`Cannot create ${to}: a file is there`, 'EEXIST', to)
  const reader = await disk.openRead(from)
  try {
    const { path: temporary, writer } = await createBeside(disk, to)
    try {
      await writePrefix(reader, writer, length, mark)
      await disk.renameNew(temporary, to)
    } catch (error) {
      await disk.remove(temporary).catch(() => {})
      throw error
    }
  } finally {
    await reader.close()
  }
  await disk.syncFolder(folderOf(to))
}

/** Writes a durable copy, and closes its file. */
async function writePrefix(
  reader: DiskReader,
  writer: DiskWriter,
  length: number,
  mark: boolean,
): Promise<void> {
  try {
    for (let at = 0; at < length; at += CHUNK) {
      const bytes = new Uint8Array(Math.min(CHUNK, length - at))
      const read = await reader.read(bytes, at)
      await writer.write(bytes.subarray(0, read), at)
    }
    if (mark) await writer.write(new Uint8Array([ENTRY_END]), length)
    await writer.sync()
  } finally {
    await writer.close()
  }
}

/** Creates a file beside another one, under a name that is free. */
async function createBeside(disk: Disk, file: string): Promise<{ path: string; writer: DiskWriter }> {
  for (let number = 1; ; number++) {
    const path = `${file}.${number}.tmp`
    try {
      return { path, writer: await disk.openWrite(path, { create: true, durable: false }) }
    } catch (error) {
      if (!(error instanceof DiskError) || error.code !== 'EEXIST') throw error
    }
  }
}

/** Returns the folder of a file. */
export function folderOf(path: string): string {
  const slash = path.lastIndexOf('/')
  return slash < 0 ? '.' : slash === 0 ? '/' : path.slice(0, slash)
}
