import { constants } from 'node:fs'
import {
  link,
  mkdir,
  open,
  readdir,
  realpath,
  rename,
  rm,
  stat,
  statfs,
  writeFile,
  type FileHandle,
} from 'node:fs/promises'
import { dirname } from 'node:path'
import {
  DiskError,
  type Disk,
  type DiskReader,
  type DiskSpace,
  type DiskWriter,
  type FileMode,
} from '../disk.ts'
import { nodeRandom } from './random.ts'
import { readSmallFile } from './small-file.ts'

/** The largest file that is read whole. */
const MAX_WHOLE_BYTES = 64 << 20

/** The file system of this machine. Every failure is a `DiskError` that names the call, the file and the code. */
export class NodeDisk implements Disk {
  list(folder: string): Promise<string[]> {
    return attempt('list', folder, () => readdir(folder))
  }

  async exists(path: string): Promise<boolean> {
    try {
      await attempt('look at', path, () => stat(path))
      return true
    } catch (error) {
      if (error instanceof DiskError && (error.code === 'ENOENT' || error.code === 'ENOTDIR')) return false
      throw error
    }
  }

  async makeFolder(path: string): Promise<void> {
    // Not with `recursive`: Node retries for ever where the system forbids folders, as below /proc.
    try {
      await attempt('make the folder', path, () => mkdir(path))
    } catch (error) {
      if (!(error instanceof DiskError)) throw error
      if (error.code === 'EEXIST') {
        if ((await attempt('look at', path, () => stat(path))).isDirectory()) return
        throw new DiskError(`Cannot make the folder ${path}: a file is there`, 'ENOTDIR', path)
      }
      const parent = dirname(path)
      if (error.code !== 'ENOENT' || parent === path) throw error
      // Another process may have created the parent meanwhile, so retry once; if the parent exists and that fails, give up.
      if (await this.exists(parent)) return attempt('make the folder', path, () => mkdirOrFind(path))
      await this.makeFolder(parent)
      await this.makeFolder(path)
    }
  }

  async size(path: string): Promise<number> {
    return (await attempt('look at', path, () => stat(path))).size
  }

  async modifiedAt(path: string): Promise<number> {
    return Math.floor((await attempt('look at', path, () => stat(path))).mtimeMs)
  }

  async modeOf(path: string): Promise<FileMode | undefined> {
    if (process.platform === 'win32') return undefined
    const { mode, uid } = await attempt('look at', path, () => stat(path))
    return { bits: mode & 0o777, isRoots: uid === 0 }
  }

  readFile(path: string): Promise<Uint8Array> {
    return attempt('read', path, () => readSmallFile(path, MAX_WHOLE_BYTES))
  }

  async replaceFile(path: string, bytes: Uint8Array, { isSecret = false } = {}): Promise<void> {
    const temporary = `${path}.tmp`
    const mode = isSecret ? 0o600 : 0o640
    const handle = await attempt('create', temporary, () => open(temporary, 'w', mode))
    const writer = new NodeDiskWriter(handle, temporary)
    try {
      // A crash may have left the file with another mode.
      if (isSecret) await attempt('protect', temporary, () => handle.chmod(mode))
      await writer.write(bytes, 0)
      await writer.sync()
    } finally {
      await writer.close()
    }
    await this.rename(temporary, path)
    await this.syncFolder(dirname(path))
  }

  async createFile(path: string, bytes: Uint8Array): Promise<void> {
    const temporary = `${path}.${process.pid}-${nodeRandom.below(2 ** 32)}.tmp`
    try {
      await attempt('create', path, () => writeFile(temporary, bytes, { flag: 'wx', mode: 0o640 }))
      await attempt('create', path, () => link(temporary, path))
    } catch (error) {
      if (!isWithoutLinks(error)) throw error
      // A reader may see it empty for a moment. Not by a rename, which would replace the lock of another server that has followed this one.
      await attempt('create', path, () => writeFile(path, bytes, { flag: 'wx', mode: 0o640 }))
    } finally {
      await attempt('remove', temporary, () => rm(temporary, { force: true }))
    }
  }

  async openRead(path: string): Promise<DiskReader> {
    return new NodeDiskReader(await attempt('open', path, () => open(path, 'r')), path)
  }

  async openWrite(path: string, options: { create: boolean; durable: boolean }): Promise<DiskWriter> {
    const flags =
      constants.O_RDWR |
      (options.create ? constants.O_CREAT | constants.O_EXCL : 0) |
      (options.durable ? durableFlag : 0)
    const handle = await attempt('open', path, () => open(path, flags, 0o640))
    return new NodeDiskWriter(handle, path, options.durable && durableFlag === 0)
  }

  async rename(from: string, to: string): Promise<void> {
    await attempt(`rename to ${to}`, from, () => rename(from, to))
  }

  async renameNew(from: string, to: string): Promise<void> {
    try {
      await attempt('create', to, () => link(from, to))
    } catch (error) {
      if (!isWithoutLinks(error)) throw error
      // A reader may see it empty for a moment: such a file system knows nothing better.
      await attempt('create', to, () => writeFile(to, '', { flag: 'wx', mode: 0o640 }))
      return this.rename(from, to)
    }
    await this.remove(from)
  }

  async remove(path: string): Promise<void> {
    await attempt('remove', path, () => rm(path))
  }

  async syncFolder(folder: string): Promise<void> {
    // Windows cannot open a folder; its file system makes renames durable.
    if (constants.O_DIRECTORY === undefined) return
    const handle = await attempt('open', folder, () =>
      open(folder, constants.O_RDONLY | constants.O_DIRECTORY),
    )
    try {
      await attempt('sync', folder, () => handle.sync())
    } finally {
      await handle.close()
    }
  }

  async deviceOf(path: string): Promise<number> {
    return (await attempt('look at', path, () => stat(path))).dev
  }

  realPath(path: string): Promise<string> {
    return attempt('look at', path, () => realpath(path))
  }

  async space(folder: string): Promise<DiskSpace> {
    const { bavail, blocks, bsize } = await attempt('ask for the space of', folder, () => statfs(folder))
    return { free: bavail * bsize, size: blocks * bsize }
  }
}

/** What file systems without hard links answer: those of Windows' shares, of some containers and of memory cards. */
const WITHOUT_LINKS: ReadonlySet<string> = new Set(['EPERM', 'ENOTSUP', 'EOPNOTSUPP', 'ENOSYS', 'EMLINK'])

const isWithoutLinks = (error: unknown): boolean =>
  error instanceof DiskError && WITHOUT_LINKS.has(error.code)

/** Makes `write` durable in one call. macOS and Windows do not support it reliably, so a sync follows there. */
const durableFlag = process.platform === 'linux' ? constants.O_DSYNC : 0

class NodeDiskReader implements DiskReader {
  readonly #handle: FileHandle
  readonly #path: string

  constructor(handle: FileHandle, path: string) {
    this.#handle = handle
    this.#path = path
  }

  async read(into: Uint8Array, position: number): Promise<number> {
    let filled = 0
    while (filled < into.length) {
      const { bytesRead } = await attempt('read', this.#path, () =>
        this.#handle.read(into, filled, into.length - filled, position + filled),
      )
      if (bytesRead === 0) break
      filled += bytesRead
    }
    return filled
  }

  async size(): Promise<number> {
    return (await attempt('look at', this.#path, () => this.#handle.stat())).size
  }

  close(): Promise<void> {
    return attempt('close', this.#path, () => this.#handle.close())
  }
}

class NodeDiskWriter implements DiskWriter {
  readonly #handle: FileHandle
  readonly #path: string
  readonly #syncAfterWrite: boolean

  constructor(handle: FileHandle, path: string, syncAfterWrite = false) {
    this.#handle = handle
    this.#path = path
    this.#syncAfterWrite = syncAfterWrite
  }

  async write(bytes: Uint8Array, position: number): Promise<void> {
    let written = 0
    while (written < bytes.length) {
      const { bytesWritten } = await attempt('write to', this.#path, () =>
        this.#handle.write(bytes, written, bytes.length - written, position + written),
      )
      written += bytesWritten
    }
    if (this.#syncAfterWrite) await attempt('sync', this.#path, () => this.#handle.datasync())
  }

  sync(): Promise<void> {
    return attempt('sync', this.#path, () => this.#handle.sync())
  }

  truncate(length: number): Promise<void> {
    return attempt('set the length of', this.#path, () => this.#handle.truncate(length))
  }

  close(): Promise<void> {
    return attempt('close', this.#path, () => this.#handle.close())
  }
}

async function attempt<T>(what: string, path: string, call: () => Promise<T>): Promise<T> {
  try {
    return await call()
  } catch (error) {
    const code = (error as { code?: unknown }).code
    const name = typeof code === 'string' ? code : 'EUNKNOWN'
    const reason = name === 'EFBIG' && error instanceof Error ? error.message : name
    throw new DiskError(`Cannot ${what} ${path}: ${reason}`, name, path, { cause: error })
  }
}

/** Creates a folder, unless another process has created it. */
async function mkdirOrFind(path: string): Promise<void> {
  try {
    await mkdir(path)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error
  }
}
