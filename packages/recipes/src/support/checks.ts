import { UsageError, type Client } from '@zabra/client/core'
import { checkOptionsOf, shown, validatePath, type Rule } from '@zabra/client/recipe-kit'
import type { Abortable, RecipeOptions, WaitOptions } from '../handles/types.ts'

/** `checkOptions` throws a `UsageError` for an option without a rule, or one of the wrong kind; its first argument names the call. */
export { checkOptionsOf as checkOptions, type Rule }

/** The rules for the options of one call. */
export type Rules<T> = { readonly [K in keyof Required<T>]: Rule }

const is = (type: string) => (value: unknown) => typeof value === type

export const anything: Rule = ['', () => true]
export const trueOrFalse: Rule = ['true or false', is('boolean')]
export const aFunction: Rule = ['a function', is('function')]
export const text: Rule = ['a string', is('string')]
const fromZero = (value: unknown): boolean => typeof value === 'number' && value >= 0
export const milliseconds: Rule = ['milliseconds, 0 or more', fromZero]
export const positive: Rule = ['a number of 1 or more', (value) => typeof value === 'number' && value >= 1]
export const object: Rule = ['an object', (value) => typeof value === 'object' && value !== null]

/** A rule for one of some words. */
export const oneOf = (...words: readonly unknown[]): Rule => [
  words.map((word) => JSON.stringify(word)).join(' or '),
  (value) => words.includes(value),
]

export const abortable: Rules<Abortable> = {
  signal: ['an AbortSignal', (value) => object[1](value) && 'aborted' in (value as object)],
}
export const waiting: Rules<WaitOptions> = {
  ...abortable,
  timeoutMs: milliseconds,
  onExpiry: oneOf('retry', 'fail'),
}
const list: Rule = ['a list of { perms, scheme, id }', Array.isArray]
export const parents = oneOf('container', 'persistent')
export const data: Rule = [
  'a Uint8Array, a string or null',
  (value) => value === null || typeof value === 'string' || value instanceof Uint8Array,
]
export const codec: Rule = [
  'an object with encode and decode',
  (value) => object[1](value) && 'encode' in (value as object) && 'decode' in (value as object),
]
export const acl = list
export const count: Rule = ['a number, 0 or more', fromZero]
export const texts: Rule = [
  'a list of strings',
  (value) => Array.isArray(value) && value.every((one) => typeof one === 'string'),
]
export const joining = { ...waiting, onConflict: oneOf('fail', 'wait') }
export const recipe: Rules<RecipeOptions> = {
  acl,
  errorPolicy: [
    "'connection', 'session' or { lease }",
    (value) => typeof value === 'string' || object[1](value),
  ],
  parents,
  naming: oneOf('recipe', 'curator', 'kazoo'),
  data,
}

/** Throws a `UsageError` for the arguments of a constructor of a recipe that cannot be right. */
export function checkRecipe(
  what: string,
  client: Client,
  path: string,
  options: unknown,
  rules: Readonly<Record<string, Rule>>,
): void {
  if (typeof (client as Partial<Client> | undefined)?.exists !== 'function')
    throw wrong(what, `a client, got ${shown(client)}`)
  checkArgument(what, 'a path', path, text)
  const reason = validatePath(path)
  if (reason !== undefined) throw new UsageError(`${what}: ${reason}`, { operation: what, path })
  checkOptionsOf(what, options, rules)
}

/** Throws a `UsageError` for an argument that breaks its rule. */
export function checkArgument(what: string, name: string, value: unknown, rule: Rule): void {
  if (!rule[1](value)) throw wrong(what, `${name} as ${rule[0]}, got ${shown(value)}`)
}

/** Throws a `UsageError` for a body that is no function. `what` names the call. */
export const checkBody = (body: unknown, what = 'run'): void => checkArgument(what, 'a body', body, aFunction)

const wrong = (what: string, rest: string): UsageError =>
  new UsageError(`${what}: Expected ${rest}`, { operation: what })
