import { builtinModule } from './builtin-module.ts'

/** Compresses a small amount of data synchronously. */
export const gzipSync = (bytes: Uint8Array): Uint8Array => plain(builtinModule('node:zlib').gzipSync(bytes))

/** Decompresses synchronously. Throws when the input is not gzip, or the output would exceed `maxLength` bytes. */
export const gunzipSync = (bytes: Uint8Array, maxLength: number): Uint8Array =>
  plain(builtinModule('node:zlib').gunzipSync(bytes, { maxOutputLength: maxLength }))

const plain = ({ buffer, byteOffset, length }: Uint8Array): Uint8Array =>
  new Uint8Array(buffer, byteOffset, length)
