import { DiskError, type Disk } from '@zabra/runtime'
import { FolderLockedError } from './errors.ts'

const NAME = 'zabra.lock'

/** The process that locks a folder. */
export interface LockOwner {
  readonly pid: number
  /** Returns a text that distinguishes the running process `pid` from earlier ones with the same id; undefined when none runs. */
  processIdentity(pid: number): string | undefined
}

/** Tokens of the locks that this process holds. The process id is not enough: in a container it is the same after each restart. */
const held = new Set<string>()

/**
 * Locks the folder for this process and resolves to the function that unlocks it. Takes over the lock of a process that no longer
 * runs, or that ran on another machine. `token` is random and the same for all folders of a server. Rejects with a
 * `FolderLockedError` when the owner runs on this machine. Apache ZooKeeper neither writes nor reads the file (disk-format 2).
 */
export async function lockFolder(
  disk: Disk,
  folder: string,
  owner: LockOwner,
  token: string,
): Promise<() => Promise<void>> {
  const path = `${folder}/${NAME}`
  for (let attempt = 0; ; attempt++) {
    try {
      const text = `${owner.pid} ${token} ${owner.processIdentity(owner.pid) ?? '-'}\n`
      await writeLock(disk, path, new TextEncoder().encode(text))
      held.add(token)
      return async () => {
        held.delete(token)
        await disk.remove(path)
      }
    } catch (error) {
      if (!(error instanceof DiskError) || error.code !== 'EEXIST' || attempt > 1) throw error
    }
    const [pid = '', other = '', identity = ''] = new TextDecoder()
      .decode(await disk.readFile(path))
      .trim()
      .split(' ')
    // The same folder under another name, such as a symbolic link: this call holds it already.
    if (other === token) return async () => {}
    // A simulation runs several processes in one, and tokens of those that have ended remain: so the process id must match too.
    if (held.has(other) && Number(pid) === owner.pid)
      throw new FolderLockedError(folder, 'another server of this process')
    if (identity !== '' && owner.processIdentity(Number(pid)) === identity)
      throw new FolderLockedError(folder, `process ${pid}`)
    await disk.remove(path)
  }
}

/** Creates the file of a lock. A failure leaves none. */
async function writeLock(disk: Disk, path: string, bytes: Uint8Array): Promise<void> {
  const writer = await disk.openWrite(path, { create: true, durable: true })
  let isWritten = false
  try {
    await writer.write(bytes, 0)
    isWritten = true
  } finally {
    await writer.close()
    if (!isWritten) await disk.remove(path)
  }
}
