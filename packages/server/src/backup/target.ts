import { DiskError, type Disk, type DiskReader, type Random } from '@zabra/runtime'

/** A store of backups. Names are paths with `/`, relative to its root. */
export interface BackupTarget {
  /** For messages. */
  readonly url: string
  /** Lists the names in a folder, in no order, also those of files that were cut short; none for a folder that does not exist. */
  list(folder: string): Promise<readonly string[]>
  /** Opens a file. Rejects with a `DiskError` of code ENOENT when it does not exist. */
  open(name: string): Promise<DiskReader>
  /**
   * Writes a file, which is durable and complete, or absent. Replaces one of the same name. Uses each chunk until it asks for the next
   * one. Resolves to the size of the file in bytes.
   */
  write(name: string, chunks: AsyncIterable<Uint8Array>): Promise<number>
  /** Writes a file as `write`, unless there is one of that name: of several writers one does. Resolves to whether it was this one. */
  create(name: string, bytes: Uint8Array): Promise<boolean>
  /** Removes a file, if it exists. */
  remove(name: string): Promise<void>
  /** Returns what writes that were begun before a time, in milliseconds since 1970, and cut short have left, for `removeUnfinished`. */
  listUnfinished(before: number): Promise<readonly string[]>
  removeUnfinished(name: string): Promise<void>
}

/** A folder of this machine, or one that is mounted. */
export class FolderTarget implements BackupTarget {
  readonly url: string
  readonly #disk: Disk
  readonly #root: string
  readonly #random: Random

  constructor(root: string, { disk, random }: { readonly disk: Disk; readonly random: Random }) {
    this.#disk = disk
    this.#random = random
    this.#root = root.length > 1 ? root.replace(/\/+$/, '') : root
    this.url = `file://${this.#root}`
  }

  async list(folder: string): Promise<readonly string[]> {
    const names = await this.#disk.list(`${this.#root}/${folder}`).catch(absentIfMissing)
    return names ?? []
  }

  open(name: string): Promise<DiskReader> {
    return this.#disk.openRead(`${this.#root}/${name}`)
  }

  write(name: string, chunks: AsyncIterable<Uint8Array>): Promise<number> {
    return this.#write(name, chunks, 'rename')
  }

  async create(name: string, bytes: Uint8Array): Promise<boolean> {
    try {
      await this.#write(name, oneChunk(bytes), 'renameNew')
      return true
    } catch (error) {
      if (error instanceof DiskError && error.code === 'EEXIST') return false
      throw error
    }
  }

  async #write(
    name: string,
    chunks: AsyncIterable<Uint8Array>,
    rename: 'rename' | 'renameNew',
  ): Promise<number> {
    const path = `${this.#root}/${name}`
    const folder = path.slice(0, path.lastIndexOf('/'))
    await this.#disk.makeFolder(folder)
    // Another server may write the same file.
    const unfinished = `${path}.${hex(this.#random.bytes(4))}${UNFINISHED}`
    const file = await this.#disk.openWrite(unfinished, { create: true, durable: false })
    let size = 0
    try {
      for await (const chunk of chunks) {
        await file.write(chunk, size)
        size += chunk.length
      }
      await file.sync()
    } catch (error) {
      // The first error is the one that counts: a full disk may refuse the close too.
      await file.close().catch(() => {})
      await this.#disk.remove(unfinished).catch(() => {})
      throw error
    }
    try {
      await file.close()
      await this.#disk[rename](unfinished, path)
    } catch (error) {
      await this.#disk.remove(unfinished).catch(() => {})
      throw error
    }
    await this.#disk.syncFolder(folder)
    return size
  }

  async remove(name: string): Promise<void> {
    await this.#disk.remove(`${this.#root}/${name}`).catch(absentIfMissing)
  }

  async listUnfinished(before: number): Promise<readonly string[]> {
    const names: string[] = []
    for (const [folder, pattern] of UNFINISHED_FILES)
      for (const file of (await this.#disk.list(this.#root + folder).catch(absentIfMissing)) ?? []) {
        if (!pattern.test(file)) continue
        const changedAt = await this.#disk.modifiedAt(`${this.#root}${folder}/${file}`).catch(absentIfMissing)
        if (changedAt !== undefined && changedAt < before) names.push(`${folder}/${file}`.slice(1))
      }
    return names
  }

  removeUnfinished(name: string): Promise<void> {
    return this.remove(name)
  }
}

/** Ends the names of files that are being written, or were when a crash came. */
const UNFINISHED = '.unfinished'
/** The names that `write` gives to unfinished files of backups, by folder: the folder may hold other files. */
const UNFINISHED_FILES: readonly (readonly [folder: string, pattern: RegExp])[] = [
  ['', /^(?:duty|lineage|verified)\.[\da-f]{8}\.unfinished$/],
  ['/manifest', /^(?:snapshot|log)-[\da-f]{14,16}(?:-[\da-f]{14,16})?\.json\.[\da-f]{8}\.unfinished$/],
  ['/snapshot', /^[\da-f]{14,16}-\d{1,15}-[\da-f]{8}\.\w+\.[\da-f]{8}\.unfinished$/],
  ['/log', /^[\da-f]{14,16}-[\da-f]{14,16}-\d{1,15}-[\da-f]{8}\.txns\.[\da-f]{8}\.unfinished$/],
]

/** Returns bytes as hexadecimal digits. */
export const hex = (bytes: Uint8Array): string =>
  [...bytes].map((byte) => byte.toString(16).padStart(2, '0')).join('')

function absentIfMissing(error: unknown): undefined {
  if (error instanceof DiskError && error.code === 'ENOENT') return undefined
  throw error
}

/** Returns bytes as the only chunk of a stream. */
export async function* oneChunk(bytes: Uint8Array): AsyncGenerator<Uint8Array> {
  yield bytes
}

/**
 * Yields the bytes of a file. Each chunk is valid until the next one is asked for: arrays of their own would make the garbage collector
 * go through the whole heap each time 64 MB of them are allocated. Closes the file at the end.
 */
export async function* chunksOf(reader: DiskReader): AsyncGenerator<Uint8Array> {
  try {
    const chunk = new Uint8Array(CHUNK_BYTES)
    for (let position = 0; ;) {
      const length = await reader.read(chunk, position)
      if (length > 0) yield chunk.subarray(0, length)
      if (length < chunk.length) return
      position += length
    }
  } finally {
    await reader.close()
  }
}

/**
 * Returns chunks that call `release` where they are ended before the first one is asked for: a generator that has not begun cleans up
 * nothing.
 */
export function endable(
  chunks: AsyncIterable<Uint8Array>,
  release: () => Promise<unknown>,
): AsyncIterable<Uint8Array> {
  const inner = chunks[Symbol.asyncIterator]()
  let hasBegun = false
  const iterator: AsyncIterator<Uint8Array> = {
    next() {
      hasBegun = true
      return inner.next()
    },
    async return() {
      if (!hasBegun) await release()
      hasBegun = true
      await inner.return?.()
      return { done: true, value: undefined }
    },
  }
  return { [Symbol.asyncIterator]: () => iterator }
}

/** Ends chunks that may not be read to their end, or not at all, so that the file or log behind them is closed. */
export async function endChunks(chunks: AsyncIterable<Uint8Array>): Promise<void> {
  // What fails here comes after an error of the reader, which says more.
  await chunks[Symbol.asyncIterator]()
    .return?.()
    ?.catch(() => {})
}

const CHUNK_BYTES = 1 << 18
