import type { Callable, Declarations, Parameter } from './callables.ts'

/** Values of every kind, by name. */
const values: Readonly<Record<string, unknown>> = {
  undefined,
  null: null,
  NaN: Number.NaN,
  '-1': -1,
  '1.5': 1.5,
  Infinity: Number.POSITIVE_INFINITY,
  "''": '',
  "' '": ' ',
  '{}': {},
  '[]': [],
  'Symbol()': Symbol('wrong'),
  '() => {}': () => {},
  '2n': 2n,
  true: true,
  Date: new Date(0),
  Proxy: new Proxy({}, {}),
}

/** Numbers that may be negative: -1 stands for any version, and amounts are added. */
const SIGNED = /^(?:version|amount|priority|port|sslPort|registrationTimeUTC)$/
/** Numbers that may be fractions or infinite. */
const CONTINUOUS = /(?:Ms|UTC|[pP]ort|factor|priority)$/
const UNLIMITED = /^max|^(?:depth|concurrency|deadLetterAfter|errors)$/
const PATHS = /^(?:path|lockPath|root|base)$/

/** Whether a parameter or property may have a value, as far as its type and its name tell. */
function accepts(declarations: Declarations, { name, type, isOptional }: Parameter, kind: string): boolean {
  if (kind === 'undefined' && isOptional) return true
  return declarations.alternatives(type).some((one) => {
    if (/^(?:unknown|any|[A-Z])$/.test(one)) return true
    switch (one) {
      case 'undefined':
      case 'null':
        return kind === one
      case 'string':
        return kind === "''" || kind === "' '" ? !PATHS.test(name) : false
      case 'number':
        if (kind === '-1') return SIGNED.test(name)
        if (kind === '1.5') return CONTINUOUS.test(name)
        return kind === 'Infinity' && (CONTINUOUS.test(name) || UNLIMITED.test(name))
      case 'boolean':
      case 'true':
        return kind === 'true'
      case 'bigint':
        return kind === '2n'
    }
    if (/^['\d]/.test(one)) return false
    if (/^(?:<.*?>)?\(/s.test(one) && one.includes('=>')) return kind === '() => {}'
    if (one.endsWith('[]')) return kind === '[]'
    if (/^(?:Async)?Iterable</.test(one)) return kind === '[]' || kind.startsWith("'")
    if (kind !== '{}' && kind !== 'Proxy') return false
    if (/^(?:(?:Readonly<)?Record|Partial)</.test(one) || one === 'object') return true
    const properties = declarations.propertiesOf(one)
    // An interface that another package declares, such as the options of TLS, has no properties here.
    const optional = new Set(properties.flatMap((property) => (property.isOptional ? property.name : [])))
    return properties.every((property) => optional.has(property.name))
  })
}

export interface Variant {
  /** Position of the argument that differs from a right call. */
  readonly index: number
  readonly label: string
  readonly value: unknown
  readonly mustRefuse: boolean
}

const isOptions = ({ name, type }: Parameter): boolean =>
  /Options|Abortable/.test(type) || /^(?:options|change|request)$/.test(name)

/**
 * Yields the arguments to call with, one differing from the right ones: each value in each position, an unknown option, and
 * each value as each property. Those to refuse come first, so that no right call changes what they find.
 */
export function variantsOf(
  declarations: Declarations,
  { parameters }: Callable,
  right: readonly unknown[],
): Variant[] {
  const all = parameters.flatMap((parameter, index): Variant[] => {
    const variants = Object.entries(values).map(([kind, value]) => ({
      index,
      label: `${parameter.name} ${kind}`,
      value,
      mustRefuse: !accepts(declarations, parameter, kind),
    }))
    const base = right[index]
    if (typeof base !== 'object' || base === null || Object.getPrototypeOf(base) !== Object.prototype)
      return variants
    const properties = declarations.propertiesOf(parameter.type.replace(/^readonly /, ''))
    if (!isOptions(parameter) && properties.length === 0) return variants
    if (isOptions(parameter))
      variants.push({
        index,
        label: `${parameter.name} { unknown }`,
        value: { ...base, unknown: 1 },
        mustRefuse: true,
      })
    for (const key of new Set(properties.map((property) => property.name)))
      for (const [kind, value] of Object.entries(values))
        variants.push({
          index,
          label: `${parameter.name} { ${key}: ${kind} }`,
          value: { ...base, [key]: value },
          mustRefuse: !properties.some((one) => one.name === key && accepts(declarations, one, kind)),
        })
    return variants
  })
  return all.toSorted((a, b) => Number(b.mustRefuse) - Number(a.mustRefuse))
}
