import type { Codec } from './types.ts'

const encoder = new TextEncoder()
const decoder = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true })

/** Text. Decoding throws a `TypeError` for bytes that are not UTF-8. */
export const utf8: Codec<string> = {
  encode: (text) => encoder.encode(text),
  decode: (data) => decoder.decode(data),
}

/** Whatever checks a value: a schema of zod, valibot, arktype, or a function that throws. */
export type Schema<T> = { parse(value: unknown): T } | ((value: unknown) => T)

/**
 * JSON, with a schema that is checked both ways if one is given. Decoding throws a `SyntaxError` for what is no JSON,
 * and whatever the schema throws.
 */
export function json<T = unknown>(schema?: Schema<T>): Codec<T> {
  const check = (value: unknown): T =>
    schema === undefined ? (value as T) : typeof schema === 'function' ? schema(value) : schema.parse(value)
  return {
    encode(value) {
      const text = JSON.stringify(check(value)) as string | undefined
      if (text === undefined) throw new TypeError(`Expected a value that JSON can hold, got ${typeof value}`)
      return utf8.encode(text)
    },
    decode: (data) => check(JSON.parse(utf8.decode(data))),
  }
}
