import { builtinModule } from './builtin-module.ts'

/** Compresses at once and on the main thread, for bytes that are few. */
export const gzipSync = (bytes: Uint8Array): Uint8Array => plain(builtinModule('node:zlib').gzipSync(bytes))

/** Throws for what gzip has not written, and before it makes more than `maxLength` bytes of it. */
export const gunzipSync = (bytes: Uint8Array, maxLength: number): Uint8Array =>
  plain(builtinModule('node:zlib').gunzipSync(bytes, { maxOutputLength: maxLength }))

const plain = ({ buffer, byteOffset, length }: Uint8Array): Uint8Array =>
  new Uint8Array(buffer, byteOffset, length)
