import { gunzipSync, gzipSync } from '@zabra/runtime/node/dial'
import type { Bytes, Codec } from '../types.ts'

export interface CompressedOptions {
  /** The most bytes that a value may come to when it is decoded (default 16 MiB): a few kilobytes can hold gigabytes. */
  readonly maxLength?: number
}

/**
 * Another codec's bytes, compressed with gzip, as Curator stores them too. Decoding throws a `TypeError` for data that
 * gzip has not written, such as what was stored before it was compressed, or that comes to more than `maxLength`.
 */
export function compressed<T>(
  inner: Codec<T>,
  { maxLength = 16 * 1024 * 1024 }: CompressedOptions = {},
): Codec<T> {
  if (!Number.isInteger(maxLength) || maxLength < 1)
    throw new TypeError(`Expected a maxLength of 1 byte or more, got ${String(maxLength)}`)
  return {
    encode: (value) => gzipSync(inner.encode(value)),
    decode: (data) => inner.decode(decompress(data, maxLength)),
  }
}

function decompress(data: Bytes, maxLength: number): Bytes {
  try {
    return gunzipSync(data, maxLength)
  } catch (cause) {
    const { code, message } = cause as Error & { code?: string }
    const isLong = code === 'ERR_BUFFER_TOO_LARGE' || cause instanceof RangeError
    throw new TypeError(
      isLong
        ? `Expected data that comes to at most ${maxLength} bytes, got more; raise maxLength if it may`
        : `Expected data that gzip has written, got ${data.length} bytes that are not (${message})`,
      { cause },
    )
  }
}
