import { DiskError, type Disk } from '@zabra/runtime'
import { FolderLockedError } from './errors.ts'
import { VERSION_FOLDER } from './file-names.ts'

const NAME = 'zabra.lock'

/** The process that locks a folder. */
export interface LockOwner {
  readonly pid: number
  /** Returns a text that distinguishes the running process `pid` from earlier ones with the same id; undefined when none runs. */
  processIdentity(pid: number): string | undefined
}

type Unlock = () => Promise<void>

/** Tokens of the locks that this process holds. The process id is not enough: in a container it is the same after each restart. */
const held = new Set<string>()

/** How often a server tries to lock a folder, where others take the lock, or leave it, meanwhile. */
const ATTEMPTS = 10
/** Locks in a row whose processes have ended: each more of them ended in the moment in which it took a lock over. */
const MAX_ENDED = 10
/** The id of the process, the token, and what tells the process from others with its id. Whatever else a file has, no process runs for it. */
const FORMAT = /^(-?\d{1,10}) ([\w-]{1,64}) (.{1,100})\n$/

/** What a folder answers in which this user may create no file. */
const REFUSALS: ReadonlySet<string> = new Set(['EACCES', 'EPERM', 'EROFS'])

/**
 * Locks the folder for this process and resolves to the function that unlocks it. Where its `version-2` is a link, the folder around what
 * that leads to is locked too, so that two servers which reach the same files share a lock. Takes over the lock of a process that no longer
 * runs, or that ran on another machine. `token` is random and the same for all folders of a server. Rejects with a
 * `FolderLockedError` when the owner runs on this machine. Apache ZooKeeper neither writes nor reads the file (disk-format 2).
 *
 * The lock of an ended process stays until another one replaces it: were it removed first, a third server could lock the folder in between.
 * A server that takes it over creates a file whose name has the token of that lock, which one of several can do, and renames it to that of
 * the lock. One that ends in between leaves its file, which is taken over in the same way.
 */
export async function lockFolder(
  disk: Disk,
  folder: string,
  owner: LockOwner,
  token: string,
): Promise<() => Promise<void>> {
  const lockOne = (path: string): Promise<Unlock> => lock(disk, path, owner, token)
  const unlock = await lockOne(folder)
  try {
    const unlockTarget = await lockTarget(disk, folder, lockOne)
    return async () => {
      await unlockTarget()
      await unlock()
    }
  } catch (error) {
    await unlock()
    throw error
  }
}

/** Locks what a `version-2` that is a link leads to. Resolves to the function that unlocks it. */
async function lockTarget(
  disk: Disk,
  folder: string,
  lockOne: (folder: string) => Promise<Unlock>,
): Promise<Unlock> {
  const link = `${folder}/${VERSION_FOLDER}`
  if (disk.realPath === undefined || !(await disk.exists(link))) return async () => {}
  const target = await disk.realPath(link)
  // The folder around the target may be the data folder of another server. A target of another name stands beside folders of other servers,
  // so it is locked itself.
  const [, around] = /^(.*)[\\/]version-2$/s.exec(target) ?? []
  if (around === undefined) return lockOne(target)
  try {
    return await lockOne(around)
  } catch (error) {
    // No server of this user has its data there.
    if (!(error instanceof DiskError) || !REFUSALS.has(error.code)) throw error
    return lockOne(target)
  }
}

async function lock(disk: Disk, folder: string, owner: LockOwner, token: string): Promise<Unlock> {
  const path = `${folder}/${NAME}`
  const own = new TextEncoder().encode(`${owner.pid} ${token} ${owner.processIdentity(owner.pid) ?? '-'}\n`)
  let claim: string | undefined
  const withdraw = async (): Promise<void> => {
    // In the place of the lock itself there may be that of another server by now.
    if (claim !== undefined && claim !== path) await removeIfThere(disk, claim)
  }
  try {
    for (let attempt = 1; attempt <= ATTEMPTS; attempt++) {
      const { ended, free } = await readLocks(disk, folder, owner, token)
      // The same folder under another name, such as a symbolic link: this call holds it already.
      if (free === undefined && claim === undefined) return async () => {}
      if (free === undefined) return await hold(disk, path, { claim: claim!, ended, token })
      // The locks are others than those that this one was to follow.
      await withdraw()
      claim = (await createLock(disk, free, own)) ? free : undefined
    }
    throw new FolderLockedError(folder, 'other servers, which start too')
  } catch (error) {
    await withdraw()
    throw error
  }
}

/** Moves a lock to its place, where that of an ended process is. Resolves to the function that removes it. */
async function hold(
  disk: Disk,
  path: string,
  {
    claim,
    ended,
    token,
  }: { readonly claim: string; readonly ended: readonly string[]; readonly token: string },
): Promise<() => Promise<void>> {
  if (claim !== path) await disk.rename(claim, path)
  held.add(token)
  const unlock = async (): Promise<void> => {
    held.delete(token)
    await disk.remove(path)
  }
  try {
    for (const other of ended) if (other !== path) await removeIfThere(disk, other)
  } catch (error) {
    await unlock()
    throw error
  }
  return unlock
}

/** A lock, and those of processes that were to follow it. */
interface Locks {
  /** The files of ended processes, the oldest first. */
  readonly ended: readonly string[]
  /** The file that follows them; undefined where it is that of this server. */
  readonly free: string | undefined
}

/** Reads the locks of a folder in their order. Rejects with a `FolderLockedError` at one whose process runs. */
async function readLocks(disk: Disk, folder: string, owner: LockOwner, token: string): Promise<Locks> {
  const ended: string[] = []
  for (let path = `${folder}/${NAME}`; ended.length < MAX_ENDED;) {
    const text = await readLock(disk, path)
    if (text === undefined) return { ended, free: path }
    const [, pid, other, identity] = FORMAT.exec(text) ?? []
    if (other === token) return { ended, free: undefined }
    // A simulation runs several processes in one, and tokens of those that have ended remain: so the process id must match too.
    if (held.has(other ?? '') && Number(pid) === owner.pid)
      throw new FolderLockedError(folder, 'another server of this process')
    if (identity !== undefined && owner.processIdentity(Number(pid)) === identity)
      throw new FolderLockedError(folder, `process ${pid}`)
    ended.push(path)
    path = other === undefined ? `${path}.x` : `${folder}/${NAME}.${other}`
  }
  throw new FolderLockedError(
    folder,
    `${MAX_ENDED} servers that have ended while they started; if none runs, remove the files ${NAME}*`,
  )
}

/** Resolves to whether there was no such lock. */
async function createLock(disk: Disk, path: string, bytes: Uint8Array): Promise<boolean> {
  try {
    await disk.createFile(path, bytes)
    return true
  } catch (error) {
    if (hasCode(error, 'EEXIST')) return false
    throw error
  }
}

/** Resolves to the text of a lock; to undefined where there is none, also where its owner, or one who takes it over, has removed it. */
async function readLock(disk: Disk, path: string): Promise<string | undefined> {
  try {
    return new TextDecoder().decode(await disk.readFile(path))
  } catch (error) {
    if (hasCode(error, 'ENOENT')) return undefined
    throw error
  }
}

async function removeIfThere(disk: Disk, path: string): Promise<void> {
  try {
    await disk.remove(path)
  } catch (error) {
    if (!hasCode(error, 'ENOENT')) throw error
  }
}

const hasCode = (error: unknown, code: string): boolean => error instanceof DiskError && error.code === code
