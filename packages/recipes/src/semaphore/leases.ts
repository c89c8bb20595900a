import { UsageError } from '@zabra/client/core'
import { childPath } from '@zabra/client/recipe-kit'
import type { Naming } from '../handles/types.ts'

/** Returns how many permits a lease stands for; 0 if the name is no lease. A lease of Curator stands for one. */
export function permitsOf(name: string): number {
  const match = /lease-(?:(\d+)-)?-?\d{9,10}$/.exec(name)
  if (match === null) return 0
  return match[1] === undefined ? 1 : Number(match[1])
}

/** Paths of a semaphore's leases and of its queue. */
export interface SemaphoreLayout {
  readonly leases: string
  readonly queue: string
}

/**
 * The own scheme and Curator's use a directory each; kazoo's semaphore holds the leases itself, with the queue
 * beside it.
 */
export function semaphoreLayout(path: string, naming: Naming): SemaphoreLayout {
  if (naming === 'kazoo' && path === '/')
    throw new UsageError('Expected a path below the root with the naming kazoo')
  return naming === 'kazoo'
    ? { leases: path, queue: `${path}-__lock__` }
    : { leases: childPath(path, 'leases'), queue: childPath(path, 'locks') }
}

/**
 * Returns whether this number of permits fits under the limit. A limit that was lowered may be exceeded for a
 * while.
 */
export const fits = (
  names: readonly string[],
  permits: number,
  limit: number,
  naming: Naming = 'recipe',
): boolean => names.reduce((sum, name) => sum + (naming === 'kazoo' ? 1 : permitsOf(name)), permits) <= limit

/** Name prefixes of leases after the protection id. kazoo uses the protection id alone, without a sequence number. */
export const leasePrefixes: Readonly<Record<Naming, (permits: number) => string>> = {
  recipe: (permits) => `lease-${permits}-`,
  curator: () => 'lease-',
  kazoo: () => '',
}
