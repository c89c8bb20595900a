import type { Disk, DiskWriter } from '@zabra/runtime'
import type { Zxid } from '../core/types.ts'
import { logName } from './file-names.ts'
import { LOG_HEADER_BYTES } from './log-format.ts'

export interface LogFileOptions {
  readonly disk: Disk
  /** The folder that holds `log.*`, `version-2` included. It must exist. */
  readonly folder: string
  /** Whether writes are durable when they resolve (O_DSYNC). */
  readonly isDurable: boolean
  /** Step by which a file is extended ahead of its contents (disk-format 4.4); 0 for none. */
  readonly preallocateBytes: number
}

/** Writes the file at the end of the log: creates it, extends it ahead of its contents, takes back a failed write. */
export class LogFile {
  readonly #options: LogFileOptions
  /** Called with the number of bytes by which a file is about to be extended. */
  readonly #onExtend: (bytes: number) => void
  #writer: DiskWriter | undefined
  #path = ''
  #position = 0
  #size = 0

  constructor(options: LogFileOptions, onExtend: (bytes: number) => void) {
    this.#options = options
    this.#onExtend = onExtend
  }

  /** The file that is written to, or was last. */
  get path(): string {
    return this.#path
  }
  /** Bytes written to the file. */
  get position(): number {
    return this.#position
  }

  /** Closes the current file and creates the one that begins with the transaction `first`. */
  async create(first: Zxid): Promise<void> {
    const { disk, folder, isDurable: durable } = this.#options
    await this.close()
    this.#path = `${folder}/${logName(first)}`
    // A file of this name holds no transaction that counts, or `first` would not be the next one.
    if (await disk.exists(this.#path)) await disk.remove(this.#path)
    this.#position = 0
    this.#size = LOG_HEADER_BYTES
    this.#writer = await disk.openWrite(this.#path, { create: true, durable })
  }

  /** Appends bytes in their order. `isNew` says that they are the first of the file, whose name is made durable then. */
  async write(pieces: readonly Uint8Array[], isNew: boolean): Promise<void> {
    const end = pieces.reduce((sum, { length }) => sum + length, this.#position)
    await this.#extend(end)
    let at = this.#position
    for (const piece of pieces) {
      await this.#writer!.write(piece, at)
      at += piece.length
    }
    if (isNew) await this.#options.disk.syncFolder(this.#options.folder)
    // Moved only now: a write that fails between two pieces is taken back whole.
    this.#position = end
  }

  /** Takes back a write that failed, durably, and closes the file. With `isNew` the file itself is removed. */
  async rollBack(isNew: boolean): Promise<void> {
    const { disk, folder } = this.#options
    if (!isNew) {
      await this.#writer!.truncate(this.#position)
      await this.#writer!.sync()
      return this.close()
    }
    await this.close()
    if (!(await disk.exists(this.#path))) return
    await disk.remove(this.#path)
    await disk.syncFolder(folder)
  }

  /** Closes the file. Rejects with an error that no wait for space mends: what the system refuses here was written before. */
  async close(): Promise<void> {
    const writer = this.#writer
    this.#writer = undefined
    try {
      await writer?.close()
    } catch (cause) {
      throw new Error(`${this.#path} could not be closed, so what was written may be lost`, { cause })
    }
  }

  async #extend(end: number): Promise<void> {
    const { preallocateBytes } = this.#options
    const size = paddedSize(this.#position, end, this.#size, preallocateBytes)
    if (size === this.#size) return
    this.#onExtend(size - this.#size)
    if (preallocateBytes > 0) await this.#writer!.truncate(size)
    this.#size = size
  }
}

/**
 * Returns the size that a file of `size` bytes must have before the bytes from `position` to `end` are written: unchanged, or
 * extended ahead by `step` (disk-format 4.4).
 */
const paddedSize = (position: number, end: number, size: number, step: number): number =>
  Math.max(step > 0 && position + 4096 >= size ? size + step : size, end)
