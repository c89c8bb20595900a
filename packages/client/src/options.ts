import { UsageError } from './errors.ts'
import type { ClientOptions } from './client-options.ts'

type Check = (value: unknown) => boolean

const whole =
  (from: number, to = Number.MAX_SAFE_INTEGER): Check =>
  (value) =>
    Number.isInteger(value) && (value as number) >= from && (value as number) <= to
const flag: Check = (value) => typeof value === 'boolean'
const call: Check = (value) => typeof value === 'function'
const object: Check = (value) => typeof value === 'object' && value !== null
const bytes: Check = (value) => value instanceof Uint8Array
const text: Check = (value) => typeof value === 'string'

/** Checks for an object whose named properties are absent or numbers from 0. */
const numbers =
  (...names: string[]): Check =>
  (value) =>
    object(value) &&
    names.every((name) => {
      const member = (value as Record<string, unknown>)[name]
      return member === undefined || (typeof member === 'number' && member >= 0)
    })

/** For each option, the expectation in words and the check. */
const rules: Readonly<Record<keyof ClientOptions | 'signal', readonly [expected: string, check: Check]>> = {
  servers: [
    'a connect string or a list of addresses',
    (value) => text(value) || (Array.isArray(value) && value.every(text)),
  ],
  transport: ['an object with open', (value) => object(value) && call((value as { open: unknown }).open)],
  chroot: ['a path', text],
  createChroot: ['true or false', flag],
  sessionTimeout: ['whole milliseconds from 1', whole(1, 0x7fff_ffff)],
  session: [
    'an id (bigint) and a password (Uint8Array)',
    (value) => {
      const { id, password } = (value ?? {}) as { id?: unknown; password?: unknown }
      return typeof id === 'bigint' && bytes(password)
    },
  ],
  sessionExpiry: ["'renew' or 'close'", (value) => value === 'renew' || value === 'close'],
  readOnly: ['true or false', flag],
  auth: [
    'a list of { scheme, auth }',
    (value) =>
      Array.isArray(value) &&
      value.every(
        (entry: { scheme?: unknown; auth?: unknown } | null) => text(entry?.scheme) && bytes(entry?.auth),
      ),
  ],
  sasl: ['a function that makes a mechanism', call],
  retry: [
    'numbers: base, factor, cap, maxAttempts, maxElapsed',
    numbers('base', 'factor', 'cap', 'maxAttempts', 'maxElapsed'),
  ],
  errorPolicy: [
    "'connection', 'session' or { lease }",
    (value) =>
      value === 'connection' ||
      value === 'session' ||
      numbers('margin')((value as { lease?: unknown } | null)?.lease),
  ],
  offlineQueue: ['a whole number from 0', whole(0)],
  trackEnsemble: ['true or false', flag],
  maxFrame: ['whole bytes from 1024', whole(1024, 0x7fff_ffff)],
  maxRequest: ['whole bytes from 1024', whole(1024, 0x7fff_ffff)],
  batchReads: [
    'true, false or { maxReads }, a whole number from 2 to 1024',
    (value) => {
      if (flag(value)) return true
      if (!object(value)) return false
      const { maxReads } = value as { maxReads?: unknown }
      return maxReads === undefined || whole(2, 1024)(maxReads)
    },
  ],
  platform: ['an object', object],
  instrumentation: ['an object', object],
  callerStacks: ['true or false', flag],
  redactPath: ['a function', call],
  signal: ['an AbortSignal', (value) => object(value) && 'aborted' in (value as object)],
}

/** Throws a `UsageError` for an unknown option or an invalid value. */
export function checkOptions(options: ClientOptions): void {
  if (typeof options !== 'object' || options === null) {
    throw new UsageError('Expected options such as { servers: "127.0.0.1:2181" }')
  }
  for (const name of Object.keys(options)) {
    const value: unknown = options[name as keyof ClientOptions]
    const rule = rules[name as keyof typeof rules]
    if (rule === undefined) {
      throw new UsageError(`Expected options among ${Object.keys(rules).join(', ')}, got ${name}`)
    }
    if (value !== undefined && !rule[1](value)) {
      // Objects may contain passwords: show only primitive values.
      const shown =
        typeof value === 'object' || typeof value === 'function' ? typeof value : JSON.stringify(value)
      throw new UsageError(`Expected option ${name} to be ${rule[0]}, got ${shown}`)
    }
  }
  if (options.servers === undefined) throw new UsageError('Expected option servers, such as "127.0.0.1:2181"')
}
