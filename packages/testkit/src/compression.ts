import type { ByteTransform, Compression } from '@zabra/runtime'
import { gunzipSync, gzipSync } from '@zabra/runtime/node'

const MAX_BYTES = 1 << 30

/** Compression that needs no turn of the event loop, for servers on a clock that a test advances. */
export const syncCompression: Compression = {
  gzip: () => atEnd(gzipSync),
  gunzip: () => atEnd((bytes) => gunzipSync(bytes, MAX_BYTES)),
}

function atEnd(transform: (bytes: Uint8Array) => Uint8Array): ByteTransform {
  const chunks: Uint8Array[] = []
  return {
    async write(bytes) {
      chunks.push(bytes.slice())
      return new Uint8Array(0)
    },
    end: async () => transform(Buffer.concat(chunks)),
  }
}
