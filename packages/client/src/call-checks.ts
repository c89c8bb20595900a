import {
  aFunction,
  anAbortSignal,
  anything,
  aText,
  call,
  findWrongOption,
  flag,
  milliseconds,
  numbers,
  object,
  oneOf,
  shown,
  text,
  trueOrFalse,
  whole,
  type Rule,
} from './checks.ts'
import { createFlags } from './call-options.ts'
import { UsageError } from './errors.ts'
import type { RecursiveDeleteOptions, WalkOptions } from './tree-types.ts'
import type {
  CallOptions,
  CreateOptions,
  DeleteOptions,
  MissingNode,
  ReadOp,
  ReconfigChange,
  SetDataOptions,
  WatchOptions,
  WriteOp,
} from './types.ts'

type Rules<T> = { readonly [K in keyof Required<T>]: Rule }

const version: Rule = ['a version, -1 for any', whole(-1, 0x7fff_ffff)]
const aclRule: Rule = ['a list of { perms, scheme, id }', Array.isArray]

export const retryRule: Rule = [
  'false, a function or numbers: baseMs, factor, capMs, maxAttempts, maxElapsedMs',
  (value) =>
    value === false ||
    call(value) ||
    numbers('baseMs', 'factor', 'capMs', 'maxAttempts', 'maxElapsedMs')(value),
]

const common: Rules<CallOptions> = {
  signal: anAbortSignal,
  timeoutMs: milliseconds,
  retry: retryRule,
  waitForReadWrite: trueOrFalse,
}

const create: Rules<CreateOptions> = {
  ...common,
  // Checked where it is sent, as those of an operation of a multi.
  data: anything,
  mode: oneOf(...Object.keys(createFlags)),
  acl: aclRule,
  // Its range depends on the mode.
  ttlMs: ['milliseconds', (value) => typeof value === 'number'],
  parents: ["true, false or 'persistent'", (value) => flag(value) || value === 'persistent'],
  protected: ['true, false or a function', (value) => flag(value) || call(value)],
  idempotent: trueOrFalse,
}

const deleteRecursive: Rules<RecursiveDeleteOptions> = {
  ...common,
  recursive: trueOrFalse,
  missingOk: trueOrFalse,
  requestTimeoutMs: milliseconds,
  onUnreadable: aFunction,
  batchSize: ['a number of 1 znode or more', whole(1)],
  includeRoot: trueOrFalse,
  onFound: aFunction,
  onDeleted: aFunction,
}

const walk: Rules<WalkOptions> = {
  ...common,
  requestTimeoutMs: milliseconds,
  onUnreadable: aFunction,
  maxDepth: ['a whole depth, 0 or more', (value) => value === Infinity || whole(0)(value)],
  filter: aFunction,
  stats: trueOrFalse,
}

/** The options of each call; those of `reconfig` include the change. */
const rulesOf = {
  call: common,
  create,
  delete: {
    ...common,
    version,
    guaranteed: trueOrFalse,
    idempotent: trueOrFalse,
    recursive: trueOrFalse,
    missingOk: trueOrFalse,
  } satisfies Rules<DeleteOptions>,
  setData: {
    ...common,
    version,
    idempotent: trueOrFalse,
    createIfMissing: trueOrFalse,
  } satisfies Rules<SetDataOptions>,
  setACL: { ...common, version },
  watch: {
    ...common,
    mode: oneOf('persistent', 'persistentRecursive'),
    buffer: ['a whole number of 1 event or more', whole(1)],
  } satisfies Rules<WatchOptions>,
  deleteRecursive,
  walk,
  reconfig: {
    joining: aText,
    leaving: aText,
    members: aText,
    version: ['a version (bigint)', (value) => typeof value === 'bigint'],
  } satisfies Rules<ReconfigChange>,
  missingNode: {
    path: anything,
    data: anything,
    mode: oneOf('container', 'persistent'),
    acl: aclRule,
  } satisfies Rules<MissingNode>,
  signal: { signal: common.signal },
} as const

type RulesByKind = Readonly<Record<string, Readonly<Record<string, Rule>>>>

const part = { op: anything, path: anything }

/** The properties of each operation of a multi and of a multiRead. */
const operationRules: Readonly<Record<string, RulesByKind>> = {
  multi: {
    create: { ...part, data: anything, mode: create.mode, acl: aclRule, ttlMs: create.ttlMs },
    delete: { ...part, version },
    check: { ...part, version },
    setData: { ...part, data: anything, version },
  } satisfies Record<WriteOp['op'], object>,
  multiRead: { getData: part, getChildren: part } satisfies Record<ReadOp['op'], object>,
}

export type OptionsKind = keyof typeof rulesOf

/**
 * Returns the error for options of a call that are wrong in name or kind, or whose access list is; undefined for valid
 * ones.
 */
export function wrongOptions(
  kind: OptionsKind,
  options: object | undefined,
  operation: string,
  path?: string,
): UsageError | undefined {
  if (options === undefined) return undefined
  const wrong = findWrongOption(options, rulesOf[kind], () => ({
    start: path === undefined ? `${operation}: ` : `${operation} ${shownPath(path)}: `,
    context: { operation, path },
  }))
  if (wrong !== undefined) return wrong
  const { acl } = options as { readonly acl?: unknown }
  return acl === undefined ? undefined : wrongAcl(acl, operation, path)
}

/** Throws the error for wrong options of a call, as `wrongOptions` returns it. */
export function checkCall(...call: Parameters<typeof wrongOptions>): void {
  const wrong = wrongOptions(...call)
  if (wrong !== undefined) throw wrong
}

/**
 * Returns the error for an operation of a multi or multiRead, which `name` says, whose kind or properties are wrong; undefined for a
 * valid one.
 */
export function wrongOperation(name: string, operation: unknown, index: number): UsageError | undefined {
  const context = { operation: name }
  if (!object(operation))
    return new UsageError(`Expected operation ${index} as { op, path, … }, got ${shown(operation)}`, context)
  const { op, path, acl } = operation as { op?: unknown; path?: string; acl?: unknown }
  const rules = operationRules[name]!
  if (typeof op !== 'string' || !Object.hasOwn(rules, op)) {
    const message = `Expected op of operation ${index} among ${Object.keys(rules).join(', ')}, got ${shown(op)}`
    return new UsageError(message, context)
  }
  const pathReason = wrongPathType(path)
  if (pathReason !== undefined) return new UsageError(`operation ${index}: ${pathReason}`, context)
  return (
    findWrongOption(operation, rules[op]!, () => ({
      start: `operation ${index}, ${op} ${path}: `,
      context,
    })) ?? (acl === undefined ? undefined : wrongAcl(acl, `operation ${index}, create`, path))
  )
}

/** Returns the error for an access list that is no list of entries with valid permissions; undefined for a valid one. */
export function wrongAcl(acl: unknown, operation: string, path?: string): UsageError | undefined {
  const reason = aclReason(acl)
  return reason === undefined
    ? undefined
    : new UsageError(`${operation}${path === undefined ? '' : ` ${shownPath(path)}`}: ${reason}`, {
        operation,
        path,
      })
}

const aclEntryRules: Readonly<Record<string, Rule>> = {
  perms: ['a sum of Perms from 1 to 31, such as Perms.READ | Perms.WRITE', whole(1, 31)],
  scheme: ["a string such as 'world'", (value) => text(value) && value !== ''],
  id: ["a string such as 'anyone'", text],
}

function aclReason(acl: unknown): string | undefined {
  if (!Array.isArray(acl)) return `Expected an ACL as a list of { perms, scheme, id }, got ${shown(acl)}`
  for (const [index, entry] of acl.entries()) {
    if (!object(entry)) return `Expected ACL entry ${index} as { perms, scheme, id }, got ${shown(entry)}`
    for (const name in aclEntryRules) {
      const [expected, check] = aclEntryRules[name]!
      const value = (entry as Record<string, unknown>)[name]
      if (!check(value)) return `Expected ${name} of ACL entry ${index} as ${expected}, got ${shown(value)}`
    }
  }
  return undefined
}

/** Returns why a path is no path, for values of other types. */
export const wrongPathType = (path: unknown): string | undefined =>
  typeof path === 'string' ? undefined : `Expected a path as a string, got ${shown(path)}`

const shownPath = (path: unknown): string => (typeof path === 'string' ? path : shown(path))
