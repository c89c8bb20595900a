import { retryRule } from './call-checks.ts'
import {
  aFunction,
  anAbortSignal,
  anObject,
  aTransport,
  anything,
  bytes,
  call,
  errorPolicyRule,
  findWrongOption,
  flag,
  milliseconds,
  object,
  oneOf,
  text,
  trueOrFalse,
  whole,
  type Rule,
} from './checks.ts'
import { UsageError } from './errors.ts'
import type { ClientOptions } from './client-options.ts'

/** For each option, the expectation in words and the check. */
const rules: Readonly<Record<keyof ClientOptions | 'signal', Rule>> = {
  // Checked where they are parsed.
  servers: anything,
  transport: aTransport,
  chroot: ['a path', text],
  createChroot: trueOrFalse,
  sessionTimeoutMs: ['whole milliseconds from 1', whole(1, 0x7fff_ffff)],
  connectTimeoutMs: milliseconds,
  waitForever: trueOrFalse,
  onAttemptFailed: aFunction,
  session: [
    'an id (bigint) and a password (Uint8Array)',
    (value) => {
      const { id, password } = (value ?? {}) as { id?: unknown; password?: unknown }
      return typeof id === 'bigint' && bytes(password)
    },
  ],
  sessionExpiry: oneOf('renew', 'close'),
  readOnly: trueOrFalse,
  auth: [
    'a list of { scheme, auth }',
    (value) =>
      Array.isArray(value) &&
      value.every(
        (entry: { scheme?: unknown; auth?: unknown } | null) =>
          text(entry?.scheme) && (text(entry?.auth) || bytes(entry?.auth)),
      ),
  ],
  sasl: ['a function that makes a mechanism', call],
  timeoutMs: milliseconds,
  retry: [
    'a function or numbers: baseMs, factor, capMs, maxAttempts, maxElapsedMs',
    (value) => value !== false && retryRule[1](value),
  ],
  errorPolicy: errorPolicyRule,
  offlineQueue: ['a whole number from 0', whole(0)],
  trackEnsemble: trueOrFalse,
  maxFrameBytes: ['whole bytes from 1024', whole(1024, 0x7fff_ffff)],
  maxRequestBytes: ['whole bytes from 1024', whole(1024, 0x7fff_ffff)],
  batchReads: [
    'true, false or { maxReads }, a whole number from 2 to 1024',
    (value) => {
      if (flag(value)) return true
      if (!object(value)) return false
      const { maxReads } = value as { maxReads?: unknown }
      return maxReads === undefined || whole(2, 1024)(maxReads)
    },
  ],
  platform: anObject,
  instrumentation: anObject,
  callerStacks: trueOrFalse,
  redactPath: aFunction,
  signal: anAbortSignal,
}

/** Throws a `UsageError` for an unknown option or an invalid value. */
export function checkOptions(options: ClientOptions): void {
  const wrong = findWrongOption(options, rules, () => ({ start: '', context: { operation: 'connect' } }))
  if (wrong !== undefined) throw wrong
  if ((options as ClientOptions | undefined)?.servers === undefined)
    throw new UsageError('Expected option servers, such as "127.0.0.1:2181"')
}
