import { lightUsageError } from './error-brand.ts'
import type { Codec } from './types.ts'

const encoder = new TextEncoder()
const decoder = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true })

/** UTF-8 text. Decoding throws a `TypeError` for bytes that are not UTF-8. */
export const utf8: Codec<string> = {
  encode: (text) => encoder.encode(text),
  decode: (data) => decoder.decode(data),
}

/** What a codec needs of a validator: the interface of Standard Schema 1, which zod, valibot and arktype implement. */
export interface StandardSchema<T> {
  readonly '~standard': {
    readonly version: 1
    readonly vendor: string
    readonly validate: (value: unknown) => StandardResult<T> | PromiseLike<StandardResult<T>>
    readonly types?: { readonly input: unknown; readonly output: T } | undefined
  }
}

type StandardResult<T> = { readonly value: T; readonly issues?: undefined } | Refusal

interface Refusal {
  readonly issues: readonly StandardIssue[]
}

interface StandardIssue {
  readonly message: string
  readonly path?: readonly (PropertyKey | { readonly key: PropertyKey })[] | undefined
}

/** A schema of zod, valibot, arktype or another library with Standard Schema, or a function that returns the value or throws. */
export type Schema<T> = StandardSchema<T> | ((value: unknown) => T)

/**
 * JSON, validated by `schema` if one is given. Decoding returns the output of the schema; encoding
 * checks that the schema accepts the text, and writes the value as it is. Both throw a `TypeError` for a value that the
 * schema refuses or that JSON cannot represent, and decoding a `SyntaxError` for invalid JSON; a client rejects with a
 * `CodecError` then. Schemas must be synchronous. Throws a `UsageError` for something else than a schema.
 */
export function json<T>(schema: StandardSchema<T>): Codec<T>
export function json<T = unknown>(validate?: (value: unknown) => T): Codec<T>
export function json<T>(schema: Schema<T> = unchecked): Codec<T> {
  // The types of arktype are functions with the interface.
  const standard = (schema as Partial<StandardSchema<T>> | null)?.['~standard']
  if (!isFunction(standard?.validate ?? schema))
    throw lightUsageError(wrong('a schema or a function', typeof schema))
  const check = (value: unknown): T => {
    const result = standard ? standard.validate(value) : (schema as (value: unknown) => T)(value)
    if (isFunction((result as { readonly then?: unknown } | null)?.then)) {
      // The promise is dropped: its rejection must not end the process.
      ;(result as PromiseLike<T>).then(undefined, unchecked)
      throw new TypeError(wrong('a synchronous schema', 'a promise'))
    }
    if (!standard) return result as T
    if ((result as Refusal).issues) throw new TypeError(describe(result as Refusal))
    return (result as { readonly value: T }).value
  }
  return {
    encode(value) {
      const text = JSON.stringify(value) as string | undefined
      if (text === undefined) throw new TypeError(wrong('a value for JSON', typeof value))
      // JSON drops and converts: NaN becomes null. What counts is that a reader accepts the text.
      if (schema !== unchecked) check(JSON.parse(text))
      return utf8.encode(text)
    },
    decode: (data) => check(JSON.parse(utf8.decode(data))),
  }
}

// An application that needs no client gets this module alone: it repeats no message and no check.
const unchecked = (value: unknown): never => value as never
const isFunction = (value: unknown): boolean => typeof value === 'function'
const wrong = (expected: string, got: string): string => `Expected ${expected}, got ${got}`

/** Names the first issues: a large value may have thousands. */
const describe = ({ issues }: Refusal): string =>
  issues
    .slice(0, 5)
    .map(({ message, path = [] }) =>
      [
        ...path.map((part) => String((part as { key?: PropertyKey }).key ?? (part as PropertyKey))),
        message,
      ].join(': '),
    )
    .join('; ')
