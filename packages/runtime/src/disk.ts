/**
 * The disk, as a server needs it: few calls, each with a stated durability. Paths are joined with `/`.
 * A simulated disk loses whatever these calls do not promise to keep.
 */
export interface Disk {
  /** Names in a folder, in no order. Rejects with code ENOENT when there is none. */
  list(folder: string): Promise<string[]>
  exists(path: string): Promise<boolean>
  /** Makes a folder and its parents; fine when it exists. */
  makeFolder(path: string): Promise<void>
  size(path: string): Promise<number>
  /** The whole file. For small files; use `openRead` for logs and snapshots. */
  readFile(path: string): Promise<Uint8Array>
  /** Replaces a file so that a crash leaves the old or the new one whole: temporary file, sync, rename, sync of the folder. */
  replaceFile(path: string, bytes: Uint8Array): Promise<void>
  openRead(path: string): Promise<DiskReader>
  /**
   * Opens a file for writing from its start or, with `at`, from an offset. With `create` it must not exist yet.
   * With `durable`, `write` resolves only when its bytes would survive a power cut (one call, no separate sync).
   */
  openWrite(path: string, options: { create: boolean; durable: boolean }): Promise<DiskWriter>
  rename(from: string, to: string): Promise<void>
  remove(path: string): Promise<void>
  /** Makes creations, renames and removals in `folder` durable. */
  syncFolder(folder: string): Promise<void>
  /** Free bytes for this user on the file system that holds `folder`. */
  freeSpace(folder: string): Promise<number>
}

export interface DiskReader {
  /** Fills `into` from `position`; resolves to the number of bytes read, less than asked only at the end of the file. */
  read(into: Uint8Array, position: number): Promise<number>
  size(): Promise<number>
  close(): Promise<void>
}

export interface DiskWriter {
  /** Writes all of `bytes` at `position`. Rejects with a `DiskError` (ENOSPC, EIO…); then nothing is known of that range. */
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
