import type { Naming } from '../handles/types.ts'

/** How many permits a child of the leases stands for; none if it is no lease. Curator's stand for one each. */
export function permitsOf(name: string): number {
  const match = /lease-(?:(\d+)-)?-?\d{9,10}$/.exec(name)
  if (match === null) return 0
  return match[1] === undefined ? 1 : Number(match[1])
}

/** Where a semaphore keeps its leases and the line for them. */
export interface SemaphoreLayout {
  readonly leases: string
  readonly queue: string
}

/** Ours and Curator's have a folder each; kazoo's semaphore holds the leases itself, with the line beside it. */
export const semaphoreLayout = (path: string, naming: Naming): SemaphoreLayout =>
  naming === 'kazoo'
    ? { leases: path, queue: `${path}-__lock__` }
    : { leases: `${path}/leases`, queue: `${path}/locks` }

/** Whether so many more permits fit under the limit. A limit that was lowered may be exceeded for a while. */
export const fits = (
  names: readonly string[],
  permits: number,
  limit: number,
  naming: Naming = 'recipe',
): boolean => names.reduce((sum, name) => sum + (naming === 'kazoo' ? 1 : permitsOf(name)), permits) <= limit

/** How the name of a lease goes on after its mark. kazoo's is the mark alone, without a sequence number. */
export const leasePrefixes: Readonly<Record<Naming, (permits: number) => string>> = {
  recipe: (permits) => `lease-${permits}-`,
  curator: () => 'lease-',
  kazoo: () => '',
}
