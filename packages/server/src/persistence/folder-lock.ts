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

/** How often a server tries to lock a folder, where others take the lock, or leave it, meanwhile. */
const ATTEMPTS = 3

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
  const own = `${owner.pid} ${token} ${owner.processIdentity(owner.pid) ?? '-'}\n`
  const hold = (): (() => Promise<void>) => {
    held.add(token)
    return async () => {
      held.delete(token)
      await disk.remove(path)
    }
  }
  let isWritten = false
  for (let attempt = 1; ; attempt++) {
    try {
      await writeLock(disk, path, new TextEncoder().encode(own))
      isWritten = true
      // Another server that starts now may have taken the lock away before it was written.
      if ((await readLock(disk, path)) === own) return hold()
      if (attempt === ATTEMPTS) throw new FolderLockedError(folder, 'another server, which starts too')
    } catch (error) {
      if (!hasCode(error, 'EEXIST') || attempt === ATTEMPTS) throw error
    }
    const text = await readLock(disk, path)
    if (text === undefined) continue
    const [pid = '', other = '', identity = ''] = text.trim().split(' ')
    // What this call wrote, and another server took away and put back; or the same folder under another name, such as a symbolic link.
    if (other === token) return isWritten ? hold() : async () => {}
    // A simulation runs several processes in one, and tokens of those that have ended remain: so the process id must match too.
    if (held.has(other) && Number(pid) === owner.pid)
      throw new FolderLockedError(folder, 'another server of this process')
    if (identity !== '' && owner.processIdentity(Number(pid)) === identity)
      throw new FolderLockedError(folder, `process ${pid}`)
    await takeAway(disk, path, { text, aside: `${path}.${token}` })
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

/** Resolves to the text of a lock; to undefined where its owner, or one who takes it over, has removed it. */
async function readLock(disk: Disk, path: string): Promise<string | undefined> {
  try {
    return new TextDecoder().decode(await disk.readFile(path))
  } catch (error) {
    if (hasCode(error, 'ENOENT')) return undefined
    throw error
  }
}

/**
 * Removes the lock with a text: not another one, which a server that starts at the same time may have written in its place since it was
 * read.
 */
async function takeAway(
  disk: Disk,
  path: string,
  { text, aside }: { readonly text: string; readonly aside: string },
): Promise<void> {
  try {
    await disk.rename(path, aside)
  } catch (error) {
    if (hasCode(error, 'ENOENT')) return
    throw error
  }
  if ((await readLock(disk, aside)) === text) await disk.remove(aside)
  else await disk.rename(aside, path)
}

const hasCode = (error: unknown, code: string): boolean => error instanceof DiskError && error.code === code
