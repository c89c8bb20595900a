import { UsageError, type ErrorContext } from './errors.ts'

export type Check = (value: unknown) => boolean

/** What an option must be, in words, and the check. A function may return what is wrong in place of false. */
export type Rule = readonly [expected: string, check: Check]

export const whole =
  (from: number, to = Number.MAX_SAFE_INTEGER): Check =>
  (value) =>
    Number.isInteger(value) && (value as number) >= from && (value as number) <= to
export const flag: Check = (value) => typeof value === 'boolean'
export const call: Check = (value) => typeof value === 'function'
const kindOf = (value: unknown): string => ({}).toString.call(value).slice(8, -1)
/** An object that may have options; no list, date or other object of the language, in which none would be found. */
export const object: Check = (value) => kindOf(value) === 'Object'
export const bytes: Check = (value) => value instanceof Uint8Array
export const text: Check = (value) => typeof value === 'string'
const positive: Check = (value) => typeof value === 'number' && value >= 0
/** Checks for an object or function with these methods. */
export const withMethods =
  (...names: readonly string[]): Check =>
  (value) =>
    names.every((name) => call((value as Readonly<Record<string, unknown>> | null | undefined)?.[name]))
export const abortSignal: Check = /* @__PURE__ */ withMethods('addEventListener')

/** For what is checked elsewhere. */
export const anything: Rule = ['', () => true]

/** A rule for one of some words or numbers. */
export const oneOf = (...words: readonly unknown[]): Rule => [
  words.map((word) => (text(word) ? `'${word as string}'` : `${word as number}`)).join(' or '),
  (value) => words.includes(value),
]

/** Checks for an object that has no properties but these, each absent or a number from 0. */
export const numbers =
  (...names: string[]): Check =>
  (value) =>
    object(value) &&
    Object.entries(value as object).every(
      ([name, member]) => names.includes(name) && (member === undefined || positive(member)),
    )

export const aText: Rule = ['a string', text]
export const anAbortSignal: Rule = ['an AbortSignal', abortSignal]
export const aList: Rule = ['a list', Array.isArray]
export const anObject: Rule = ['an object', object]
export const aTransport: Rule = ['an object with open', /* @__PURE__ */ withMethods('open')]

/** Throws a `UsageError` for an argument that breaks its rule. `what` names the call. */
export function checkArgument(what: string, name: string, value: unknown, rule: Rule): void {
  if (!rule[1](value))
    throw new UsageError(`${what}: Expected ${name} as ${rule[0]}, got ${shown(value)}`, { operation: what })
}

export const aCodec: Rule = [
  'an object with encode and decode',
  /* @__PURE__ */ withMethods('encode', 'decode'),
]
/** A time in milliseconds, which may be fractional. */
export const milliseconds: Rule = ['milliseconds, 0 or more', positive]
export const trueOrFalse: Rule = ['true or false', flag]
export const aFunction: Rule = ['a function', call]

const isLease = (lease: unknown): boolean => {
  if (!object(lease)) return false
  const { renew, ...rest } = lease as { renew?: unknown }
  return numbers('marginMs')(rest) && (renew === undefined || renew === 'commit' || renew === 'passive')
}

export const errorPolicyRule: Rule = [
  "'connection', 'session' or { lease }",
  (value) =>
    value === 'connection' || value === 'session' || isLease((value as { lease?: unknown } | null)?.lease),
]

/** Names of options in other clients, with the option of this one. */
const knownElsewhere: Readonly<Record<string, string>> = {
  acls: 'acl',
  ephemeral: "mode: 'ephemeral'",
  flags: 'mode',
  makepath: 'parents',
  makePath: 'parents',
  sequence: "mode: 'persistentSequential'",
  sequential: "mode: 'persistentSequential'",
  timeout: 'timeoutMs',
  hosts: 'servers',
  host: 'servers',
}

/**
 * Returns the error for options that are no object, contain an option without a rule, or one of the wrong kind;
 * undefined for valid ones. `describe` gives the start of the message.
 */
export function findWrongOption(
  options: unknown,
  rules: Readonly<Record<string, Rule>>,
  describe: () => { readonly start: string; readonly context: ErrorContext },
): UsageError | undefined {
  if (options === undefined) return undefined
  if (!object(options)) {
    const { start, context } = describe()
    return new UsageError(`${start}Expected options as an object, got ${shown(options)}`, context)
  }
  for (const name in options as object) {
    const rule = Object.hasOwn(rules, name) ? rules[name] : undefined
    const value = (options as Record<string, unknown>)[name]
    if (rule !== undefined && (value === undefined || rule[1](value))) continue
    const { start, context } = describe()
    const message =
      rule === undefined
        ? `Expected options among ${Object.keys(rules).join(', ')}, got ${name}.${suggestion(name, Object.keys(rules))}`
        : `Expected option ${name} to be ${rule[0]}, got ${shown(value)}`
    return new UsageError(start + message, context)
  }
  return undefined
}

/** Throws the error for wrong options of a function that needs no client. `name` is that of the function. */
export function checkOptionsOf(name: string, options: unknown, rules: Readonly<Record<string, Rule>>): void {
  const wrong = findWrongOption(options, rules, () => ({
    start: `${name}: `,
    context: { operation: name },
  }))
  if (wrong !== undefined) throw wrong
}

type Primitive = number | bigint | boolean | symbol | undefined

/** Describes a value without its contents, which may be secret, unless it is primitive. */
export function shown(value: unknown): string {
  if (Array.isArray(value)) return 'a list'
  if (object(value)) return 'an object'
  if ((typeof value === 'object' && value !== null) || call(value)) return `a ${kindOf(value)}`
  return typeof value === 'string' ? JSON.stringify(value.slice(0, 100)) : String(value as Primitive)
}

function suggestion(name: string, names: readonly string[]): string {
  const elsewhere = Object.hasOwn(knownElsewhere, name) ? knownElsewhere[name] : undefined
  if (elsewhere !== undefined && names.includes(elsewhere.split(':')[0]!))
    return ` Did you mean ${elsewhere}?`
  const lower = name.toLowerCase()
  const near = names.find((other) => isNear(lower, other.toLowerCase()))
  return near === undefined ? '' : ` Did you mean ${near}?`
}

/** Whether two names, without a unit at the end, differ by at most two letters, wherever they stand. */
function isNear(a: string, b: string): boolean {
  const rest = b.replace(/ms$/, '').split('')
  let missing = 0
  for (const letter of a.slice(0, 40).replace(/ms$/, '')) {
    const at = rest.indexOf(letter)
    if (at === -1) missing++
    else rest.splice(at, 1)
  }
  return missing + rest.length <= (a.length < 5 ? 1 : 2)
}
