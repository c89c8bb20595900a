import { constants } from 'node:fs'
import { open } from 'node:fs/promises'

/** Bytes that are read at once of something whose size is not known, such as a pipe. */
const CHUNK_BYTES = 65_536

/**
 * Reads a whole file. Rejects with the code `EFBIG` when it has more than `maxBytes`. Does not wait for the writer of a pipe: a file that a
 * server reads again may have been replaced by a pipe or a device.
 */
export async function readSmallFile(path: string, maxBytes: number): Promise<Uint8Array> {
  // Windows has no such flag.
  const file = await open(path, constants.O_RDONLY | (constants.O_NONBLOCK ?? 0))
  try {
    const { size } = await file.stat()
    let bytes = new Uint8Array(Math.min(size, maxBytes) + 1)
    let length = 0
    for (;;) {
      const { bytesRead } = await file.read(bytes, length, bytes.length - length)
      length += bytesRead
      if (bytesRead === 0) return bytes.slice(0, length)
      if (length > maxBytes)
        throw Object.assign(new Error(`EFBIG: expected at most ${maxBytes} bytes`), { code: 'EFBIG' })
      if (length < bytes.length) continue
      const longer = new Uint8Array(Math.min(2 * length + CHUNK_BYTES, maxBytes + 1))
      longer.set(bytes)
      bytes = longer
    }
  } finally {
    await file.close()
  }
}
