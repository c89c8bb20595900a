import { type } from 'arktype'
import * as v from 'valibot'
import { expect, expectTypeOf, it } from 'vitest'
import { z } from 'zod'
import { json, utf8 } from './codecs.ts'
import { lightUsageError } from './error-brand.ts'
import { UsageError, ZooKeeperError } from './errors.ts'
import type { Codec } from './types.ts'

const schemas = {
  zod: z.object({ threads: z.number() }),
  valibot: v.object({ threads: v.number() }),
  arktype: type({ threads: 'number' }),
}

for (const [library, schema] of Object.entries(schemas)) {
  it(`json with a schema of ${library} round-trips a valid value and refuses an invalid one both ways`, () => {
    const codec = json<{ threads: number }>(schema)
    expect(codec.decode(codec.encode({ threads: 4 }))).toEqual({ threads: 4 })
    expect(() => codec.encode({ threads: 'four' } as never)).toThrow(TypeError)
    expect(() => codec.encode({ threads: Number.NaN })).toThrow(TypeError)
    expect(() => codec.decode(utf8.encode('{"threads":"four"}'))).toThrow(/threads/)
  })
}

it('json takes the type of the value from the schema', () => {
  expectTypeOf(json(schemas.zod)).toEqualTypeOf<Codec<{ threads: number }>>()
  expectTypeOf(json(schemas.valibot)).toEqualTypeOf<Codec<{ threads: number }>>()
  expectTypeOf(json(schemas.arktype)).toEqualTypeOf<Codec<{ threads: number }>>()
  expectTypeOf(json((value) => String(value))).toEqualTypeOf<Codec<string>>()
  expectTypeOf(json<number>()).toEqualTypeOf<Codec<number>>()
})

it('a schema that transforms decodes to its output and writes a value that decodes to the same', () => {
  const codec = json(z.object({ at: z.iso.datetime().transform((text) => new Date(text)) }))
  const value = { at: new Date('2026-01-02T03:04:05.000Z') }
  expect(codec.decode(codec.encode(value))).toEqual(value)
})

it('json refuses a schema or a function that answers with a promise', () => {
  const asynchronous = z.number().refine(async () => false)
  expect(() => json(asynchronous).encode(1)).toThrow(/synchronous/)
  expect(() =>
    json(
      v.pipeAsync(
        v.number(),
        v.checkAsync(async () => false),
      ) as never,
    ).encode(1),
  ).toThrow(/synchronous/)
  expect(() => json(async (value) => value).decode(utf8.encode('1'))).toThrow(/synchronous/)
})

it.each([null, 1, '', true, 2n, Symbol('x'), [], { type: 'number' }])(
  'json refuses %s, which is no schema, with a UsageError where the codec is made',
  (schema) => {
    const make = (): unknown => json(schema as never)
    expect(make).toThrow(UsageError)
    expect(make).toThrow(ZooKeeperError)
    expect(make).toThrow(/^Expected a schema or a function, got /)
  },
)

it('the light UsageError has the properties of the class', () => {
  const properties = ({ name, code, retryable, scope, maybeApplied }: UsageError): unknown => ({
    name,
    code,
    retryable,
    scope,
    maybeApplied,
  })
  expect(properties(lightUsageError('x') as UsageError)).toEqual(properties(new UsageError('x')))
})

it('json rejects values that JSON cannot represent instead of storing nothing', () => {
  expect(() => json().encode(undefined)).toThrow()
})
