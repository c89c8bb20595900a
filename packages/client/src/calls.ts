import { CreateMode as Flags, MAX_TTL } from '@zabra/protocol'
import type { Bytes, CallOptions, CreateMode } from './types.ts'

export const EMPTY: Bytes = new Uint8Array(0)

export const flagsOf: Readonly<Record<CreateMode, number>> = {
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
export function checkCreate(
  path: string,
  mode: CreateMode,
  flags: number | undefined,
  ttl: number | undefined,
): string | undefined {
  if (flags === undefined)
    return `Expected a mode among ${Object.keys(flagsOf).join(', ')}, got ${JSON.stringify(mode)}`
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
