import { DiskError, type Disk } from '@zabra/runtime'
import { FolderLockedError } from './errors.ts'

const NAME = 'zabra.lock'

/** Who may hold a folder. */
export interface LockOwner {
  readonly pid: number
  /** What tells a process that runs on this machine from later ones of the same id; undefined when none has the id. */
  processIdentity(pid: number): string | undefined
}

/** The locks of this process, by the token in the file: an id alone comes again after a restart, in a container always. */
const held = new Set<string>()

/**
 * Takes the folder for this process and resolves to what gives it back. A lock of a process that is gone is taken over, and
 * so is one of another machine, of which nothing is known. `token` is random, and one for all folders of a server. Rejects with a `FolderLockedError` when its
 * owner lives on this machine. Apache ZooKeeper neither makes nor heeds the file.
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
      const writer = await disk.openWrite(path, { create: true, durable: true })
      await writer.write(
        new TextEncoder().encode(`${owner.pid} ${token} ${owner.processIdentity(owner.pid) ?? '-'}\n`),
        0,
      )
      await writer.close()
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
    // The same folder under another name, such as a link to it: it is ours already.
    if (other === token) return async () => {}
    // Several processes may live in one when a world is simulated: a token of one that is gone holds nothing.
    if (held.has(other) && Number(pid) === owner.pid)
      throw new FolderLockedError(folder, 'another server of this process')
    if (identity !== '' && owner.processIdentity(Number(pid)) === identity)
      throw new FolderLockedError(folder, `process ${pid}`)
    await disk.remove(path)
  }
}
