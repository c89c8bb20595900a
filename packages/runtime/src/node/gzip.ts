import { builtin } from './builtin.ts'

/** Compresses at once and on the main thread, for bytes that are few. */
export const gzipNow = (bytes: Uint8Array): Uint8Array => plain(builtin('node:zlib').gzipSync(bytes))

/** Throws for what gzip has not written, and before it makes more than `maxLength` bytes of it. */
export const gunzipNow = (bytes: Uint8Array, maxLength: number): Uint8Array =>
  plain(builtin('node:zlib').gunzipSync(bytes, { maxOutputLength: maxLength }))

const plain = ({ buffer, byteOffset, length }: Uint8Array): Uint8Array =>
  new Uint8Array(buffer, byteOffset, length)
