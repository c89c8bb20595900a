import { createReadStream } from 'node:fs'
import { pipeline } from 'node:stream'
import { createGunzip } from 'node:zlib'

const BLOCK = 512
/** Longest file that is read, and longest archive once it is unpacked, in bytes: more of a small one may be an attack on memory or time. */
const MAX_FILE_BYTES = 1 << 20
const MAX_BYTES = 256 << 20

/**
 * Resolves to the contents of the last file of a tar.gz as text, with its name in the archive; undefined where the archive is not
 * complete, or its last file is another one, or longer than 1 MiB. Holds no other file in memory.
 */
export async function readLastFile(path: string, name: string): Promise<string | undefined> {
  const tar = createGunzip()
  // An error ends the iteration with it.
  pipeline(createReadStream(path), tar, () => {})
  try {
    return await lastFileIn(new BlockReader(tar), name)
  } finally {
    tar.destroy()
  }
}

async function lastFileIn(reader: BlockReader, name: string): Promise<string | undefined> {
  let found: string | undefined
  for (;;) {
    const header = await reader.read(BLOCK)
    if (header === undefined) return undefined
    if (header[0] === 0) return found
    const size = Number.parseInt(header.toString('latin1', 124, 136), 8)
    const padded = Math.ceil(size / BLOCK) * BLOCK
    const isIt = header.toString('latin1', 0, 100).replace(/\0.*$/s, '').endsWith(`/${name}`)
    if (!(size >= 0 && size <= (isIt ? MAX_FILE_BYTES : MAX_BYTES))) return undefined
    const bytes = isIt ? await reader.read(padded) : await reader.skip(padded)
    if (bytes === undefined) return undefined
    found = bytes === true ? undefined : bytes.toString('utf8', 0, size)
  }
}

class BlockReader {
  readonly #chunks: AsyncIterator<Buffer>
  #rest: Buffer = Buffer.alloc(0)
  #left = MAX_BYTES

  constructor(stream: AsyncIterable<Buffer>) {
    this.#chunks = stream[Symbol.asyncIterator]()
  }

  /** Resolves to so many bytes; undefined where fewer are left. */
  async read(length: number): Promise<Buffer | undefined> {
    const parts: Buffer[] = []
    for (let left = length; left > 0;) {
      if (this.#rest.length === 0 && !(await this.#next())) return undefined
      const part = this.#rest.subarray(0, left)
      parts.push(part)
      left -= part.length
      this.#rest = this.#rest.subarray(part.length)
    }
    return Buffer.concat(parts)
  }

  async skip(length: number): Promise<true | undefined> {
    for (let left = length; left > 0; left -= BLOCK)
      if ((await this.read(Math.min(left, BLOCK))) === undefined) return undefined
    return true
  }

  async #next(): Promise<boolean> {
    const { done, value } = await this.#chunks.next()
    if (done === true) return false
    this.#rest = value
    this.#left -= value.length
    return this.#left >= 0
  }
}
