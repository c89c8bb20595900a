import type { Bytes } from '@zabra/client/core'

/** What the znode of a lease holds. When it was granted is what the server says of the write. */
export interface Grant {
  readonly holder: string
  readonly durationMs: number
  /** Differs from write to write. */
  readonly mark: string
}

export const encodeGrant = (grant: Grant): Bytes => new TextEncoder().encode(JSON.stringify(grant))

/** Undefined when it holds something else, which is nobody's lease. */
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
 * Whether somebody may take it: it is no lease, its own, given back, or over. Both times are the servers', who leave out what
 * is less than a millisecond: only one more makes sure that all of them have passed.
 */
export function isFree(grant: Grant | undefined, writtenAt: number, now: number, holder: string): boolean {
  if (grant === undefined || grant.holder === holder || isExpired(grant)) return true
  return now > writtenAt + grant.durationMs
}

/** What a holder writes who gives its lease back: the same for no time. */
export const expiredGrant = (grant: Grant): Grant => ({ ...grant, durationMs: 0 })
const isExpired = ({ durationMs }: Grant): boolean => durationMs === 0
