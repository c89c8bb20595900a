/**
 * The file operations of a server, each with a stated durability. Paths are joined with `/`. A simulated disk loses everything
 * that these operations do not guarantee to keep.
 */
export interface Disk {
  /** Lists the names in a folder, in no order. Rejects with code ENOENT when the folder does not exist. */
  list(folder: string): Promise<string[]>
  exists(path: string): Promise<boolean>
  /** Creates a folder and its parents, unless it exists. */
  makeFolder(path: string): Promise<void>
  size(path: string): Promise<number>
  /** Resolves to the time at which the contents of a file changed last, in milliseconds since 1970. */
  modifiedAt(path: string): Promise<number>
  /** Resolves to who may use a file. Absent, or resolving to undefined, where files have no modes, as on Windows. */
  modeOf?(path: string): Promise<FileMode | undefined>
  /** Reads a whole file. Rejects with `EFBIG` for one of more than 64 MiB; use `openRead` for logs and snapshots. */
  readFile(path: string): Promise<Uint8Array>
  /**
   * Replaces a file atomically: writes a temporary file, syncs it, renames it, and syncs the folder. Only this user may read a file
   * with `isSecret`.
   */
  replaceFile(path: string, bytes: Uint8Array, options?: { readonly isSecret?: boolean }): Promise<void>
  /**
   * Creates a file with its contents, which readers see whole or not at all. Rejects with `EEXIST` where there is one. Nothing of it is
   * durable.
   */
  createFile(path: string, bytes: Uint8Array): Promise<void>
  openRead(path: string): Promise<DiskReader>
  /**
   * Opens a file for writing. With `create`, it must not exist yet. With `durable`, `write` resolves only when its bytes would
   * survive a power cut, without a separate sync.
   */
  openWrite(path: string, options: { create: boolean; durable: boolean }): Promise<DiskWriter>
  rename(from: string, to: string): Promise<void>
  /** Renames a file to a name that must not exist yet. Rejects with `EEXIST` where there is one, which stays as it is. */
  renameNew(from: string, to: string): Promise<void>
  remove(path: string): Promise<void>
  /** Makes the creations, renames and removals of files in `folder` durable. */
  syncFolder(folder: string): Promise<void>
  /** Resolves to a number of the file system that holds a path. Absent where that is unknown. */
  deviceOf?(path: string): Promise<number>
  /** Resolves to the path of what is at `path`, without symbolic links. Absent on a disk that has none. */
  realPath?(path: string): Promise<string>
  /** Resolves to the size of the file system of `folder`, and to what is free for this user, in bytes. */
  space(folder: string): Promise<DiskSpace>
}

export interface FileMode {
  /** What the owner, the group and others may do, such as 0o640. */
  readonly bits: number
  /** Whether the owner is root: a server of another user then reads the file as one of its group. */
  readonly isRoots: boolean
}

export interface DiskSpace {
  readonly free: number
  readonly size: number
}

export interface DiskReader {
  /** Reads from `position` into `into`. Resolves to the number of bytes read: fewer than requested only at the end of the file. */
  read(into: Uint8Array, position: number): Promise<number>
  size(): Promise<number>
  close(): Promise<void>
}

export interface DiskWriter {
  /** Writes all of `bytes` at `position`. Rejects with a `DiskError` (ENOSPC, EIO…); the contents of that range are then unknown. */
  write(bytes: Uint8Array, position: number): Promise<void>
  /** Makes everything written durable, size included. */
  sync(): Promise<void>
  /** Sets the file's length; growth reads as zeros. Not durable before `sync`. */
  truncate(length: number): Promise<void>
  close(): Promise<void>
}

/** A disk call that failed. `code` is the system's name, such as ENOSPC; `path` the file. */
export class DiskError extends Error {
  override readonly name = 'DiskError'
  readonly code: string
  readonly path: string
  constructor(message: string, code: string, path: string, options?: ErrorOptions) {
    super(message, options)
    this.code = code
    this.path = path
  }
}
