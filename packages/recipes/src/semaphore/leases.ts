import type { Naming } from '../held/types.ts'

/** How many permits a child of the leases stands for; none if it is no lease. Curator's stand for one each. */
export function permitsOf(name: string): number {
  const match = /lease-(?:(\d+)-)?-?\d{9,10}$/.exec(name)
  if (match === null) return 0
  return match[1] === undefined ? 1 : Number(match[1])
}

/** Whether so many more permits fit under the limit. A limit that was lowered may be exceeded for a while. */
export const fits = (names: readonly string[], permits: number, limit: number): boolean =>
  names.reduce((sum, name) => sum + permitsOf(name), permits) <= limit

/** How the name of a lease goes on after its mark. */
export const leaseWord = (naming: Naming, permits: number): string =>
  naming === 'curator' ? 'lease-' : `lease-${permits}-`
