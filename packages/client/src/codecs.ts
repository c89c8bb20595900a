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

type StandardResult<T> =
  | { readonly value: T; readonly issues?: undefined }
  | { readonly issues: readonly StandardIssue[] }

interface StandardIssue {
  readonly message: string
  readonly path?: readonly (PropertyKey | { readonly key: PropertyKey })[] | undefined
}

/** A schema of zod, valibot, arktype or another library with Standard Schema, or a function that returns the value or throws. */
export type Schema<T> = StandardSchema<T> | ((value: unknown) => T)

/** Issues named in an error; a large value may have thousands. */
const MAX_ISSUES = 5

/**
 * JSON, validated by `schema` if one is given. Decoding returns the output of the schema; encoding
 * checks that the schema accepts the text, and writes the value as it is. Both throw a `TypeError` for a value that the
 * schema refuses or that JSON cannot represent, and decoding a `SyntaxError` for invalid JSON. Schemas must be
 * synchronous.
 */
export function json<T>(schema: StandardSchema<T>): Codec<T>
export function json<T = unknown>(validate?: (value: unknown) => T): Codec<T>
export function json<T>(schema?: Schema<T>): Codec<T> {
  const check = validatorOf(schema)
  return {
    encode(value) {
      const text = JSON.stringify(value) as string | undefined
      if (text === undefined) throw new TypeError(`Expected a value for JSON, got ${typeof value}`)
      // JSON drops and converts: NaN becomes null. What counts is that a reader accepts the text.
      if (schema !== undefined) check(JSON.parse(text))
      return utf8.encode(text)
    },
    decode: (data) => check(JSON.parse(utf8.decode(data))),
  }
}

/** Returns a function that validates a value by the schema. Throws a `TypeError` for something else than a schema. */
function validatorOf<T>(schema: Schema<T> | undefined): (value: unknown) => T {
  if (schema === undefined) return (value) => value as T
  // The types of arktype are functions with the interface.
  const standard = (schema as Partial<StandardSchema<T>>)['~standard']
  if (standard === undefined) {
    if (typeof schema === 'function') return (value) => synchronous(schema(value))
    throw new TypeError(`Expected a schema with '~standard' or a function, got ${typeof schema}`)
  }
  return (value) => {
    const { issues, ...result } = synchronous(standard.validate(value))
    if (issues !== undefined) throw new TypeError(`Refused by the schema: ${describe(issues)}`)
    return (result as { readonly value: T }).value
  }
}

/** Returns a result that is no promise. Throws a `TypeError` for one. */
function synchronous<T>(result: T | PromiseLike<T>): T {
  if (typeof (result as PromiseLike<T> | null)?.then !== 'function') return result as T
  // The promise is dropped: its rejection must not end the process.
  ;(result as PromiseLike<T>).then(undefined, () => {})
  throw new TypeError('Expected a synchronous schema, got a promise')
}

const describe = (issues: readonly StandardIssue[]): string =>
  issues
    .slice(0, MAX_ISSUES)
    .map(({ message, path = [] }) =>
      [...path.map((part) => String(typeof part === 'object' ? part.key : part)), message].join(': '),
    )
    .join('; ')
