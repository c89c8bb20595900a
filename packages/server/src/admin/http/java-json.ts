/**
 * A value of an answer. An iterable is an array and a `LazyObject` an object; both are written while they are iterated, so that a long
 * list is never held in memory. Where they yield undefined, there is nothing to write yet.
 */
export type JsonValue =
  | string
  | number
  | bigint
  | boolean
  | null
  | JavaDouble
  | LazyObject
  | LazyNumber
  | Iterable<JsonValue | undefined>
  | { readonly [key: string]: JsonValue | undefined }

/** A floating-point number, which Java writes with at least one decimal. */
export class JavaDouble {
  readonly value: number
  constructor(value: number) {
    this.value = value
  }
}

/** An object whose members are produced while it is written. */
export class LazyObject {
  readonly members: Iterable<readonly [key: string, value: JsonValue] | undefined>
  constructor(members: Iterable<readonly [key: string, value: JsonValue] | undefined>) {
    this.members = members
  }
}

/** A number that is computed in steps while it is written. */
export class LazyNumber {
  readonly steps: Generator<string, number>
  /** The steps yield empty strings. */
  constructor(steps: Generator<string, number>) {
    this.steps = steps
  }
}

/**
 * Yields a value in the form of Jackson's default pretty printer, with which Apache ZooKeeper writes the answers of its admin
 * server: two blanks a level for objects, arrays on one line, `{ }` and `[ ]` when empty, integers of any size as they are.
 */
export function* javaJson(value: JsonValue, indent = ''): Generator<string> {
  if (typeof value === 'string') yield JSON.stringify(value)
  else if (value === null || typeof value !== 'object') yield String(value)
  else if (value instanceof JavaDouble) yield javaDouble(value.value)
  else if (value instanceof LazyNumber) yield String(yield* value.steps)
  else if (value instanceof LazyObject) yield* object(value.members, indent)
  else if (isIterable(value)) yield* array(value, indent)
  else yield* object(Object.entries(value), indent)
}

const isIterable = (value: object): value is Iterable<JsonValue> => Symbol.iterator in value

function* array(elements: Iterable<JsonValue | undefined>, indent: string): Generator<string> {
  let separator = '[ '
  for (const element of elements) {
    if (element === undefined) {
      yield ''
      continue
    }
    yield separator
    yield* javaJson(element, indent)
    separator = ', '
  }
  yield separator === ', ' ? ' ]' : '[ ]'
}

function* object(
  members: Iterable<readonly [key: string, value: JsonValue | undefined] | undefined>,
  indent: string,
): Generator<string> {
  const inner = `${indent}  `
  let separator = '{\n'
  for (const member of members) {
    const [key, value] = member ?? []
    if (value === undefined) {
      yield ''
      continue
    }
    yield `${separator}${inner}${JSON.stringify(key)} : `
    yield* javaJson(value, inner)
    separator = ',\n'
  }
  yield separator === ',\n' ? `\n${indent}}` : '{ }'
}

/** Formats a double as Java does, with at most four decimals and without an exponent. */
function javaDouble(value: number): string {
  if (!Number.isFinite(value)) return '"NaN"'
  const rounded = Math.round(value * 10_000) / 10_000
  return Number.isInteger(rounded) ? `${rounded}.0` : String(rounded)
}
