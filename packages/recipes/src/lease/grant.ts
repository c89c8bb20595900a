import type { Bytes } from '@zabra/client/core'

/** Data of a lease's znode. The grant time is the mtime of the znode. */
export interface Grant {
  readonly holder: string
  readonly durationMs: number
  /** Unique per write. */
  readonly mark: string
}

export const encodeGrant = (grant: Grant): Bytes => new TextEncoder().encode(JSON.stringify(grant))

/** Returns undefined for other data, which is not a lease. */
export function decodeGrant(data: Bytes): Grant | undefined {
  let value: unknown
  try {
    value = JSON.parse(new TextDecoder().decode(data))
  } catch {
    return undefined
  }
  if (typeof value !== 'object' || value === null) return undefined
  const { holder, durationMs, mark } = value as Partial<Grant>
  const whole = typeof holder === 'string' && typeof durationMs === 'number' && typeof mark === 'string'
  return whole ? { holder, durationMs, mark } : undefined
}

/**
 * Returns whether the holder may take the lease: the data is no lease, or the lease is its own, released or
 * expired. Both times are server times truncated to milliseconds, so one more millisecond must have passed.
 */
export function isFree(grant: Grant | undefined, writtenAt: number, now: number, holder: string): boolean {
  if (grant === undefined || grant.holder === holder || isExpired(grant)) return true
  return now > writtenAt + grant.durationMs
}

/** Returns the grant that a releasing holder writes: the same with a duration of 0. */
export const expiredGrant = (grant: Grant): Grant => ({ ...grant, durationMs: 0 })
const isExpired = ({ durationMs }: Grant): boolean => durationMs === 0
