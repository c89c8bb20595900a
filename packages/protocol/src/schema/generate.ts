import * as records from './records.ts'

interface Shape {
  readonly as: string
  readonly of?: Shape
  readonly fields?: Readonly<Record<string, Shape>>
}

/** The methods of `Reader` and `Writer` for each primitive type. */
const methods: Readonly<Record<string, string>> = {
  bool: 'bool',
  byte: 'byte',
  int: 'int',
  long: 'long',
  buffer: 'buffer',
  string: 'string',
}

/** Returns the source of the codecs of every record of the table, sorted by name. */
export function generate(): string {
  // Sorted, since the order of a namespace object depends on the bundler.
  const table = (Object.values(records) as Shape[]).toSorted((a, b) => (a.as < b.as ? -1 : 1))
  const vectors = new Map<string, Shape>()
  const bodies = table.map((shape) => readerOf(shape, vectors) + writerOf(shape, vectors))
  const lists = [...vectors].map(([name, of]) => listReader(name, of) + listWriter(name, of))
  return [
    '// Written by `pnpm gen` from ../schema/records.ts. Do not edit: change the table and run it again.',
    `import type { ${table.map(({ as }) => as).join(', ')} } from '../schema/records.ts'`,
    "import type { Reader } from '../wire/reader.ts'",
    "import type { Writer } from '../wire/writer.ts'",
    '',
    ...bodies,
    ...lists,
  ].join('\n')
}

function readerOf({ as, fields }: Shape, vectors: Map<string, Shape>): string {
  const lines = Object.entries(fields ?? {}).map(([name, shape]) => `  ${name}: ${reading(shape, vectors)},`)
  return `export const read${as} = (r: Reader): ${as} => ({\n${lines.join('\n')}\n})\n`
}

function writerOf({ as, fields }: Shape, vectors: Map<string, Shape>): string {
  const lines = Object.entries(fields ?? {}).map(
    ([name, shape]) => `  ${writing(shape, `v.${name}`, vectors)}`,
  )
  return `export const write${as} = (w: Writer, v: ${as}): void => {\n${lines.join('\n')}\n}\n`
}

function reading(shape: Shape, vectors: Map<string, Shape>): string {
  if (shape.as === 'vector') return `read${listName(shape, vectors)}(r)`
  const method = methods[shape.as]
  return method ? `r.${method}()` : `read${shape.as}(r)`
}

function writing(shape: Shape, value: string, vectors: Map<string, Shape>): string {
  if (shape.as === 'vector') return `write${listName(shape, vectors)}(w, ${value})`
  const method = methods[shape.as]
  return method ? `w.${method}(${value})` : `write${shape.as}(w, ${value})`
}

function listName(shape: Shape, vectors: Map<string, Shape>): string {
  const of = shape.of!
  const name = `${of.as[0]!.toUpperCase()}${of.as.slice(1)}List`
  vectors.set(name, of)
  return name
}

const typeOf = (of: Shape): string => (of.as === 'string' ? 'string | null' : of.as)

function listReader(name: string, of: Shape): string {
  return `export function read${name}(r: Reader): readonly (${typeOf(of)})[] | null {
  const count = r.vectorLength()
  if (count < 0) return null
  const list: (${typeOf(of)})[] = []
  for (let i = 0; i < count; i++) list.push(${reading(of, new Map())})
  return list
}
`
}

function listWriter(name: string, of: Shape): string {
  return `export function write${name}(w: Writer, list: readonly (${typeOf(of)})[] | null): void {
  if (list === null) return w.int(-1)
  w.int(list.length)
  for (const v of list) ${writing(of, 'v', new Map())}
}
`
}
