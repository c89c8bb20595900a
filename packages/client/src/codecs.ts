import type { Codec } from './types.ts'

const encoder = new TextEncoder()
const decoder = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true })

/** UTF-8 text. Decoding throws a `TypeError` for bytes that are not UTF-8. */
export const utf8: Codec<string> = {
  encode: (text) => encoder.encode(text),
  decode: (data) => decoder.decode(data),
}

/** A validator: a schema of zod, valibot or arktype, or a function that throws. */
export type Schema<T> = { parse(value: unknown): T } | ((value: unknown) => T)

/**
 * JSON, validated by `schema` on encode and decode if one is given. Decoding throws a `SyntaxError` for invalid JSON,
 * and any error of the schema.
 */
export function json<T = unknown>(schema?: Schema<T>): Codec<T> {
  const check = (value: unknown): T =>
    schema === undefined ? (value as T) : typeof schema === 'function' ? schema(value) : schema.parse(value)
  return {
    encode(value) {
      const text = JSON.stringify(check(value)) as string | undefined
      if (text === undefined)
        throw new TypeError(`Expected a value that JSON can represent, got ${typeof value}`)
      return utf8.encode(text)
    },
    decode: (data) => check(JSON.parse(utf8.decode(data))),
  }
}
