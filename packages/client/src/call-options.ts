import { CreateMode as Flags, MAX_TTL, Perms } from '@zabra/protocol'
import type { Clock } from '@zabra/runtime'
import { abortError, UsageError } from './errors.ts'
import type { ACL, Bytes, CallOptions, CreateMode } from './types.ts'

export const EMPTY: Bytes = new Uint8Array(0)

/** Anybody may do everything: what a znode gets whose maker says nothing. */
export const OPEN_ACL: readonly ACL[] = [{ perms: Perms.ALL, scheme: 'world', id: 'anyone' }]

export const createFlags: Readonly<Record<CreateMode, number>> = {
  persistent: Flags.PERSISTENT,
  ephemeral: Flags.EPHEMERAL,
  persistentSequential: Flags.PERSISTENT_SEQUENTIAL,
  ephemeralSequential: Flags.EPHEMERAL_SEQUENTIAL,
  container: Flags.CONTAINER,
  persistentWithTtl: Flags.PERSISTENT_WITH_TTL,
  persistentSequentialWithTtl: Flags.PERSISTENT_SEQUENTIAL_WITH_TTL,
}

export const isSequential = (mode: CreateMode): boolean =>
  mode === 'persistentSequential' || mode === 'ephemeralSequential' || mode === 'persistentSequentialWithTtl'

/** Why a create cannot be right, or undefined. */
export function validateCreate(
  path: string,
  mode: CreateMode,
  flags: number | undefined,
  ttl: number | undefined,
): string | undefined {
  if (flags === undefined)
    return `Expected a mode among ${Object.keys(createFlags).join(', ')}, got ${JSON.stringify(mode)}`
  if (mode.endsWith('Ttl')) {
    if (ttl === undefined || !Number.isInteger(ttl) || ttl < 1 || ttl > MAX_TTL) {
      return `Expected a ttl from 1 to ${MAX_TTL} ms with mode ${mode}, got ${ttl}`
    }
  } else if (ttl !== undefined)
    return `Expected a ttl only with a mode that ends in Ttl, got one with ${mode}`
  if (path === '/' && !isSequential(mode))
    return "Expected a path below the root, got '/'; mkdirp('/') makes a chroot"
  return undefined
}

/** The options of a call that hold for the calls that it is made of. */
export function callOptions({ signal, timeout, retry, waitForReadWrite }: CallOptions): CallOptions {
  return {
    ...(signal === undefined ? {} : { signal }),
    ...(timeout === undefined ? {} : { timeout }),
    ...(retry === undefined ? {} : { retry }),
    ...(waitForReadWrite === undefined ? {} : { waitForReadWrite }),
  }
}

/**
 * The options for each part of a call that is made of several: what is left of its time goes to the next. What it
 * returns throws an `OperationTimeoutError` when nothing is left.
 */
export function remainingCallOptions(options: CallOptions, clock: Clock): () => CallOptions {
  const { timeout } = options
  if (timeout === undefined) return () => callOptions(options)
  const end = clock.monotonic() + timeout
  return () => {
    const left = end - clock.monotonic()
    if (left <= 0) throw abortError({ name: 'TimeoutError' }, {})
    return { ...callOptions(options), timeout: left }
  }
}

/** Why something cannot be the data of a znode, or undefined. Text, which looks like it could, would become zeros. */
export function validateData(data: unknown): string | undefined {
  if (data === null || data instanceof Uint8Array) return undefined
  const found = typeof data === 'string' ? 'a string: encode it, as with utf8.encode(text)' : typeof data
  return `Expected data as a Uint8Array, got ${found}`
}

/** Throws a `UsageError` for what cannot be an identity. Says nothing of the credentials. */
export function validateAuth(scheme: unknown, auth: unknown): void {
  if (typeof scheme !== 'string' || scheme === '') {
    throw new UsageError('Expected the scheme of an identity as text, such as digest', {
      operation: 'addAuth',
    })
  }
  if (!(auth instanceof Uint8Array)) {
    throw new UsageError('Expected credentials as a Uint8Array', { operation: 'addAuth' })
  }
}
