import { UsageError, type Client } from '@zabra/client/core'
import {
  aCodec,
  aFunction,
  anAbortSignal,
  anObject,
  anything,
  aText,
  checkArgument,
  checkOptionsOf,
  errorPolicyRule,
  milliseconds,
  oneOf,
  shown,
  trueOrFalse,
  validatePath,
  whole,
  type Rule,
} from '@zabra/client/recipe-kit'
import type { Abortable, RecipeOptions, WaitOptions } from '../handles/types.ts'

/**
 * `checkOptions` throws a `UsageError` for an option without a rule, or one of the wrong kind, `checkArgument` for an argument
 * that breaks its rule; their first argument names the call.
 */
export {
  aFunction,
  anything,
  aText as text,
  anObject as object,
  aCodec as codec,
  checkArgument,
  checkOptionsOf as checkOptions,
  milliseconds,
  oneOf,
  trueOrFalse,
  whole,
  type Rule,
}

/** The rules for the options of one call. */
export type Rules<T> = { readonly [K in keyof Required<T>]: Rule }

/** A number of things; `Infinity` for no limit. */
const countFrom = (from: number): Rule => [
  `a whole number from ${from}`,
  (value) => value === Infinity || whole(from)(value),
]
export const count: Rule = /* @__PURE__ */ countFrom(0)
export const positive: Rule = /* @__PURE__ */ countFrom(1)

export const abortable: Rules<Abortable> = {
  signal: anAbortSignal,
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
export const acl = list
export const texts: Rule = [
  'a list of strings',
  (value) => Array.isArray(value) && value.every((one) => typeof one === 'string'),
]
export const joining = { ...waiting, onConflict: /* @__PURE__ */ oneOf('fail', 'wait') }
export const recipe: Rules<RecipeOptions> = {
  acl,
  errorPolicy: errorPolicyRule,
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
    throw new UsageError(`${what}: Expected a client, got ${shown(client)}`, { operation: what })
  checkArgument(what, 'a path', path, aText)
  const reason = validatePath(path)
  if (reason !== undefined) throw new UsageError(`${what}: ${reason}`, { operation: what, path })
  checkOptionsOf(what, options, rules)
}

/** Throws a `UsageError` for options without a codec, for a recipe that needs one. */
export const checkCodec = (what: string, options: { readonly codec?: unknown } | undefined): void =>
  checkArgument(what, 'option codec', options?.codec, aCodec)

/** Throws a `UsageError` for a body that is no function. `what` names the call. */
export const checkBody = (body: unknown, what = 'run'): void => checkArgument(what, 'a body', body, aFunction)
