import { DiskError, type Disk } from '@zabra/runtime'
import { FolderLockedError } from './errors.ts'

const NAME = 'zabra.lock'

/** Who may hold a folder. */
export interface LockOwner {
  readonly pid: number
  /** Whether a process of that id runs on this machine. */
  isRunning(pid: number): boolean
}

/**
 * Takes the folder for this process and resolves to what gives it back. A lock of a process that is gone is taken over.
 * Rejects with a `FolderLockedError` when its owner lives. Apache ZooKeeper neither makes nor heeds the file.
 */
export async function lockFolder(disk: Disk, folder: string, owner: LockOwner): Promise<() => Promise<void>> {
  const path = `${folder}/${NAME}`
  for (let attempt = 0; ; attempt++) {
    try {
      const writer = await disk.openWrite(path, { create: true, durable: true })
      await writer.write(new TextEncoder().encode(`${owner.pid}\n`), 0)
      await writer.close()
      return () => disk.remove(path)
    } catch (error) {
      if (!(error instanceof DiskError) || error.code !== 'EEXIST' || attempt > 1) throw error
    }
    const text = new TextDecoder().decode(await disk.readFile(path)).trim()
    const pid = Number(text)
    if (/^\d+$/.test(text) && pid !== owner.pid && owner.isRunning(pid))
      throw new FolderLockedError(folder, `process ${pid}`)
    await disk.remove(path)
  }
}
