import { MAX_TTL, Perms, type CreateMode as Flags } from '@zabra/protocol'
import type { Clock } from '@zabra/runtime'
import { abortError, UsageError } from './errors.ts'
import type { ACL, Bytes, CallOptions, CreateMode, Data, OwnBytes } from './types.ts'

export const EMPTY: OwnBytes = new Uint8Array(0)

/** The ACL of a znode whose creator gives none: everybody may do everything. */
export const OPEN_ACL: readonly ACL[] = [{ perms: Perms.ALL, scheme: 'world', id: 'anyone' }]

// Numbers instead of `CreateMode` of the protocol, which a page would load too. `satisfies` checks that they agree.
export const createFlags: Readonly<Record<CreateMode, number>> = {
  persistent: 0,
  ephemeral: 1,
  persistentSequential: 2,
  ephemeralSequential: 3,
  container: 4,
  persistentWithTtl: 5,
  persistentSequentialWithTtl: 6,
} satisfies {
  persistent: typeof Flags.PERSISTENT
  ephemeral: typeof Flags.EPHEMERAL
  persistentSequential: typeof Flags.PERSISTENT_SEQUENTIAL
  ephemeralSequential: typeof Flags.EPHEMERAL_SEQUENTIAL
  container: typeof Flags.CONTAINER
  persistentWithTtl: typeof Flags.PERSISTENT_WITH_TTL
  persistentSequentialWithTtl: typeof Flags.PERSISTENT_SEQUENTIAL_WITH_TTL
}

export const isSequential = (mode: CreateMode): boolean =>
  mode === 'persistentSequential' || mode === 'ephemeralSequential' || mode === 'persistentSequentialWithTtl'

/** Returns why the arguments of a create are invalid, whose mode is one of `createFlags`; undefined for valid ones. */
export function validateCreate(
  path: string,
  mode: CreateMode,
  ttlMs: number | undefined,
): string | undefined {
  if (mode.endsWith('Ttl')) {
    if (ttlMs === undefined || !Number.isInteger(ttlMs) || ttlMs < 1 || ttlMs > MAX_TTL) {
      return `Expected ttlMs from 1 to ${MAX_TTL} with mode ${mode}, got ${ttlMs}`
    }
  } else if (ttlMs !== undefined)
    return `Expected ttlMs only with a mode that ends in Ttl, got one with ${mode}`
  if (path === '/' && !isSequential(mode))
    return "Expected a path below the root, got '/'; createMissing(['/']) creates the chroot"
  return undefined
}

/** Returns only those options of a call that its sub-requests inherit. */
const callOptions = ({ signal, timeoutMs, retry, waitForReadWrite }: CallOptions): CallOptions => ({
  signal,
  timeoutMs,
  retry,
  waitForReadWrite,
})

/**
 * Returns a function that gives the options for the next sub-request of a call that makes several: its timeout is
 * what remains of the timeout of the call. The function throws an `OperationTimeoutError` when nothing remains.
 */
export function remainingCallOptions(options: CallOptions, clock: Clock): () => CallOptions {
  const { timeoutMs } = options
  if (timeoutMs === undefined) return () => callOptions(options)
  const end = clock.monotonic() + timeoutMs
  return () => {
    const left = end - clock.monotonic()
    if (left <= 0) throw abortError({ name: 'TimeoutError' }, {})
    return { ...callOptions(options), timeoutMs: left }
  }
}

/** Returns why a value cannot be znode data, or undefined. */
export const validateData = (data: unknown): string | undefined =>
  data === null || typeof data === 'string' || data instanceof Uint8Array
    ? undefined
    : `Expected data as a Uint8Array or a string, got ${typeof data}; withCodec(json()) stores other values`

const encoder = new TextEncoder()

/** Returns data as it is sent: text as UTF-8. */
export const toBytes = (data: Data): Bytes | null => (typeof data === 'string' ? encoder.encode(data) : data)

/** Throws a `UsageError` for an invalid scheme or invalid credentials. The message never contains the credentials. */
export function validateAuth(scheme: unknown, auth: unknown): void {
  if (typeof scheme !== 'string' || scheme === '') {
    throw new UsageError('Expected a scheme such as digest', {
      operation: 'addAuth',
    })
  }
  if (typeof auth !== 'string' && !(auth instanceof Uint8Array)) {
    throw new UsageError('Expected credentials as a string or a Uint8Array', { operation: 'addAuth' })
  }
}
