import { gunzipSync, gzipSync } from '@zabra/runtime/node/dial'
import { aCodec, checkArgument, checkOptionsOf, whole } from '../checks.ts'
import type { Bytes, Codec } from '../types.ts'

export interface CompressedOptions {
  /** Maximum length in bytes of decompressed data (default 16 MiB): a few kilobytes can expand to gigabytes. */
  readonly maxBytes?: number | undefined
}

/**
 * Compresses the output of another codec with gzip, in the format of Curator. Decoding throws a `TypeError` for data
 * that is not gzip, such as data stored before compression was introduced, or that decompresses to more than
 * `maxBytes`.
 */
export function compressed<T>(inner: Codec<T>, options: CompressedOptions = {}): Codec<T> {
  checkArgument('compressed', 'a codec', inner, aCodec)
  checkOptionsOf('compressed', options, { maxBytes: ['whole bytes from 1', whole(1)] })
  const { maxBytes = 16 * 1024 * 1024 } = options
  return {
    encode: (value) => gzipSync(inner.encode(value)),
    decode: (data) => inner.decode(decompress(data, maxBytes)),
  }
}

function decompress(data: Bytes, maxBytes: number): Bytes {
  try {
    return gunzipSync(data, maxBytes)
  } catch (cause) {
    const { code, message } = cause as Error & { code?: string }
    const isLong = code === 'ERR_BUFFER_TOO_LARGE' || cause instanceof RangeError
    throw new TypeError(
      isLong
        ? `Expected data that decompresses to at most ${maxBytes} bytes, got more; raise maxBytes to allow it`
        : `Expected gzip data, got ${data.length} other bytes (${message})`,
      { cause },
    )
  }
}
