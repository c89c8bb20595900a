import type { Clock, Logger, System } from '@zabra/runtime'
import type { PreparerOptions } from '../core/prepare/index.ts'

/** The part of the heap that access control lists may take. */
const SHARE = 0.25
/** Milliseconds between two warnings. */
const WARNING_MS = 60_000

/**
 * Returns the limit of the memory of access control lists, and what logs that one was refused, once in a minute at most. A list may have
 * a megabyte, and no quota counts it.
 */
export function accessListLimit({
  clock,
  logger,
  system,
}: {
  readonly clock: Pick<Clock, 'monotonic'>
  readonly logger: Logger
  readonly system: Pick<System, 'memoryLimits'>
}): Pick<PreparerOptions, 'maxAclBytes' | 'onAclsFull'> {
  const heap = system.memoryLimits?.().heap
  if (heap === undefined) return {}
  const maxAclBytes = Math.floor(heap * SHARE)
  let warnedAt = -Infinity
  return {
    maxAclBytes,
    onAclsFull() {
      const now = clock.monotonic()
      if (now - warnedAt < WARNING_MS) return
      warnedAt = now
      logger.warn(
        { limit: maxAclBytes },
        'Refused a new access control list: the lists take a quarter of the heap',
      )
    },
  }
}
