import type { Logger, System } from '@zabra/runtime'
import type { PreparerOptions } from '../core/prepare/index.ts'
import { HeapUse } from '../persistence/index.ts'
import { TokenBucket } from './token-bucket.ts'

/** The part of the heap that access control lists may take. */
const ACL_SHARE = 0.25
/** The part of the memory of the process up to which data may grow, where `dataMemory` does not say: a snapshot and replies need some too. */
const DATA_SHARE = 0.75
/** Milliseconds between two warnings. */
const WARNING_MS = 60_000

export interface DataLimitsOptions {
  /** Returns the time of the turn, on the monotonic clock. */
  readonly turnTime: () => number
  readonly logger: Logger
  readonly system: Pick<System, 'memoryLimits' | 'heap'>
  /** The setting, in bytes; 0 derives the limit from the memory of the process. */
  readonly dataMemory: number
  /** Returns the bytes that removed data have left in the tree for new ones. */
  readonly freeBytes: () => number
}

/** Returns the bytes of memory above which data do not grow: the setting `dataMemory`, or what the memory of the process gives. */
export function dataMemoryLimit(setting: number, system: Pick<System, 'memoryLimits'>): number {
  return setting > 0 ? setting : Math.floor((system.memoryLimits?.().process ?? Infinity) * DATA_SHARE)
}

/**
 * Returns the limits of the memory of access control lists and of all data, and what logs that a write was refused for them, each once in a
 * minute at most. A list may have a megabyte, and no quota counts it.
 */
export function dataLimits({
  turnTime,
  logger,
  system,
  dataMemory,
  freeBytes,
}: DataLimitsOptions): Pick<PreparerOptions, 'maxAclBytes' | 'onAclsFull' | 'isMemoryFull' | 'onMemoryFull'> {
  const limits = system.memoryLimits?.()
  if (limits === undefined) return {}
  const maxAclBytes = Math.floor(limits.heap * ACL_SHARE)
  const limit = dataMemoryLimit(dataMemory, system)
  const heap = new HeapUse(system)
  const onceAMinute = (warn: () => void): (() => void) => {
    const warnings = new TokenBucket(1, WARNING_MS, 1)
    return () => {
      if (warnings.take(turnTime())) warn()
    }
  }
  return {
    maxAclBytes,
    onAclsFull: onceAMinute(() =>
      logger.warn(
        { limit: maxAclBytes },
        'Refused a new access control list: the lists take a quarter of the heap',
      ),
    ),
    isMemoryFull() {
      const { used, external, isFull } = heap.at(turnTime())
      return isFull || used + external - freeBytes() > limit
    },
    onMemoryFull: onceAMinute(() =>
      logger.warn(
        { limit, ...system.heap?.() },
        'Refused a write that makes the data larger: the memory for data is full',
      ),
    ),
  }
}
