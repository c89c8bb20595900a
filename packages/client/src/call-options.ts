import { CreateMode as Flags, MAX_TTL, Perms } from '@zabra/protocol'
import type { Clock } from '@zabra/runtime'
import { abortError, UsageError } from './errors.ts'
import type { ACL, Bytes, CallOptions, CreateMode } from './types.ts'

export const EMPTY: Bytes = new Uint8Array(0)

/** The ACL of a znode whose creator gives none: everybody may do everything. */
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

/** Returns why the arguments of a create are invalid, or undefined. */
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
    return "Expected a path below the root, got '/'; mkdirp('/') creates the chroot"
  return undefined
}

/** Returns only those options of a call that its sub-requests inherit. */
export function callOptions({ signal, timeout, retry, waitForReadWrite }: CallOptions): CallOptions {
  return {
    ...(signal === undefined ? {} : { signal }),
    ...(timeout === undefined ? {} : { timeout }),
    ...(retry === undefined ? {} : { retry }),
    ...(waitForReadWrite === undefined ? {} : { waitForReadWrite }),
  }
}

/**
 * Returns a function that gives the options for the next sub-request of a call that makes several: its timeout is
 * what remains of the timeout of the call. The function throws an `OperationTimeoutError` when nothing remains.
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

/** Returns why a value cannot be znode data, or undefined. A string would otherwise be stored as zeros. */
export function validateData(data: unknown): string | undefined {
  if (data === null || data instanceof Uint8Array) return undefined
  const found = typeof data === 'string' ? 'a string: encode it, as with utf8.encode(text)' : typeof data
  return `Expected data as a Uint8Array, got ${found}`
}

/** Throws a `UsageError` for an invalid scheme or invalid credentials. The message never contains the credentials. */
export function validateAuth(scheme: unknown, auth: unknown): void {
  if (typeof scheme !== 'string' || scheme === '') {
    throw new UsageError('Expected the scheme of an identity as a string, such as digest', {
      operation: 'addAuth',
    })
  }
  if (!(auth instanceof Uint8Array)) {
    throw new UsageError('Expected credentials as a Uint8Array', { operation: 'addAuth' })
  }
}
