import fc from 'fast-check'
import * as records from '../schema/records.ts'

interface Shape {
  readonly as: string
  readonly of?: Shape
  readonly fields?: Readonly<Record<string, Shape>>
}

/** Every record of the table by its name. */
export const table: Readonly<Record<string, Shape>> = records

/** Returns random values of a record. Text stays below the surrogates, since others do not survive a round trip. */
export function arbitraryOf(shape: Shape): fc.Arbitrary<unknown> {
  switch (shape.as) {
    case 'bool':
      return fc.boolean()
    case 'byte':
      return fc.integer({ min: -128, max: 127 })
    case 'int':
      return fc.integer()
    case 'long':
      return fc.bigInt({ min: -(1n << 63n), max: (1n << 63n) - 1n })
    case 'buffer':
      return fc.option(fc.uint8Array({ maxLength: 20 }))
    case 'string':
      return fc.option(
        fc.string({
          unit: fc.integer({ min: 0, max: 0xd7ff }).map((u) => String.fromCharCode(u)),
          maxLength: 20,
        }),
      )
    case 'vector':
      return fc.option(fc.array(arbitraryOf(shape.of!), { maxLength: 4 }))
    default:
      return fc.record(
        Object.fromEntries(Object.entries(shape.fields!).map(([name, of]) => [name, arbitraryOf(of)])),
        { noNullPrototype: true },
      )
  }
}
