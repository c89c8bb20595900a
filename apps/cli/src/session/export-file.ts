import { createWriteStream } from 'node:fs'
import { mkdtemp, open, rm, type FileHandle } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { pipeline } from 'node:stream/promises'
import { UsageError } from '../exit-codes.ts'
import type { Io } from '../io.ts'
import { decodeUtf8 } from '../text/bytes.ts'
import { ExportReader, type ExportedNode } from './export-format.ts'

/** A node of an export without its data, and the position of its line in the file. */
export interface ExportedNodeLine extends Omit<ExportedNode, 'data'> {
  readonly at: number
  readonly length: number
}

/** Bytes per read, and the limit of a line, far above the size of any node. */
const CHUNK = 1 << 20
const MAX_LINE = 256 << 20
const NEWLINE = 0x0a

/**
 * Reads an export line by line and leaves the data of nodes in the file until they are needed, so an export may be larger than
 * memory. Spools a pipe to a temporary file that only this user can read and that disappears with the process.
 */
export class ExportFile {
  readonly name: string
  /** The path of the exported subtree, from the head of the export. */
  root: string | undefined
  readonly #handle: FileHandle
  readonly #chunk: number

  private constructor(name: string, handle: FileHandle, chunk: number) {
    this.name = name
    this.#handle = handle
    this.#chunk = chunk
  }

  /** Opens a file, or standard input for `-`. Throws a `UsageError` for a file that cannot be read. */
  static async open(io: Io, file: string, chunk = CHUNK): Promise<ExportFile> {
    if (file === '-') return new ExportFile('standard input', await spool(io, io.stdin), chunk)
    let handle: FileHandle | undefined
    try {
      handle = await open(file)
      const stat = await handle.stat()
      if (stat.isDirectory()) throw Object.assign(new Error('It is a folder'), { code: 'EISDIR' })
      // A named pipe can be read only once.
      if (!stat.isFile()) handle = await spool(io, handle.createReadStream())
    } catch (error) {
      await handle?.close()
      const { code } = error as NodeJS.ErrnoException
      if (code === undefined) throw error
      throw new UsageError(`Cannot read ${file} (${code}). Check the path and its permissions.`)
    }
    return new ExportFile(file, handle, chunk)
  }

  /** Reads and validates the whole file. Rejects with a `UsageError` that names the invalid line. */
  async nodes(signal: AbortSignal): Promise<ExportedNodeLine[]> {
    const reader = new ExportReader(this.name)
    const nodes: ExportedNodeLine[] = []
    for await (const { bytes, at, number } of this.#lines()) {
      signal.throwIfAborted()
      const text = decodeUtf8(bytes)
      if (text === undefined)
        throw new UsageError(
          `${this.name}:${number}: Expected lines of JSON in UTF-8, got other bytes. Give a file that zabra export wrote.`,
        )
      const node = reader.line(text, number)
      if (node === undefined) continue
      const { data: _, ...head } = node
      nodes.push({ ...head, at, length: bytes.length })
    }
    reader.end()
    this.root = reader.root
    return nodes
  }

  /** Reads the data of a node that `nodes` returned. Rejects with a `UsageError` when the file has changed since. */
  async readData({ at, length, path }: ExportedNodeLine): Promise<Uint8Array | null> {
    const bytes = new Uint8Array(length)
    const read = await this.#readAt(bytes, at)
    try {
      const node = new ExportReader(this.name).line(decodeUtf8(bytes.subarray(0, read)) ?? '', 1)
      // The import may prepend a root to the path in the export.
      if (node !== undefined && (node.path === '/' || path.endsWith(node.path))) return node.data
    } catch {
      // The line was valid before, so the file has changed.
    }
    throw new UsageError(
      `${this.name}: Expected an unchanged file, got one that changed during the import. Import again.`,
    )
  }

  close(): Promise<void> {
    return this.#handle.close()
  }

  async *#lines(): AsyncGenerator<{ bytes: Uint8Array; at: number; number: number }> {
    let number = 0
    let pending: Uint8Array[] = []
    let length = 0
    let at = 0
    const line = (end: Uint8Array): { bytes: Uint8Array; at: number; number: number } => {
      const bytes = pending.length === 0 ? end : new Uint8Array(Buffer.concat([...pending, end]))
      const whole = { bytes, at, number: ++number }
      at += bytes.length + 1
      pending = []
      length = 0
      return whole
    }
    for (let offset = 0; ;) {
      const chunk = new Uint8Array(this.#chunk)
      const read = await this.#readAt(chunk, offset)
      if (read === 0) break
      offset += read
      let start = 0
      for (let end = chunk.indexOf(NEWLINE); end >= 0 && end < read; end = chunk.indexOf(NEWLINE, start)) {
        yield line(chunk.subarray(start, end))
        start = end + 1
      }
      pending.push(chunk.subarray(start, read))
      length += read - start
      if (length > MAX_LINE)
        throw new UsageError(
          `${this.name}:${number + 1}: Expected a line of at most ${MAX_LINE} bytes, got a longer one. Give a file that zabra export wrote.`,
        )
    }
    if (length > 0) yield line(new Uint8Array(0))
  }

  /** Reads from an offset until the array is full or the file ends. Resolves to the number of bytes read. */
  async #readAt(into: Uint8Array, at: number): Promise<number> {
    let filled = 0
    while (filled < into.length) {
      const { bytesRead } = await this.#handle.read(into, filled, into.length - filled, at + filled)
      if (bytesRead === 0) break
      filled += bytesRead
    }
    return filled
  }
}

/** Copies a stream to a temporary file and resolves to its handle. The file is unlinked already, where the system allows it. */
async function spool(io: Io, stream: NodeJS.ReadableStream): Promise<FileHandle> {
  const folder = await mkdtemp(join(tmpdir(), 'zabra-import-'))
  try {
    const file = join(folder, 'export.jsonl')
    await pipeline(stream, createWriteStream(file, { mode: 0o600 }), { signal: io.signal })
    return await open(file)
  } catch (error) {
    io.signal.throwIfAborted()
    throw error
  } finally {
    await rm(folder, { recursive: true, force: true })
  }
}
