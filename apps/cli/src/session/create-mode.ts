import { UsageError } from '../exit-codes.ts'
import type { ModeOptions } from '@zabra/client'

/** Flags of create commands that determine the create mode. */
export interface CreateFlags {
  readonly ephemeral?: boolean
  readonly sequential?: boolean
  readonly container?: boolean
  /** Milliseconds. */
  readonly ttl?: number
}

/** Returns the create mode and the time to live for a combination of flags. Throws a `UsageError` when they exclude each other. */
export function createModeOf({ ephemeral, sequential, container, ttl }: CreateFlags): ModeOptions {
  if (container && (ephemeral || sequential))
    throw new UsageError('A container is neither ephemeral nor sequential: leave out -c, or -e and -s.')
  if (ttl !== undefined && (ephemeral || container))
    throw new UsageError('Only a persistent node has a time to live: leave out --ttl, or -e and -c.')
  if (container) return { mode: 'container' }
  if (ttl !== undefined)
    return { mode: sequential ? 'persistentSequentialWithTtl' : 'persistentWithTtl', ttlMs: ttl }
  if (ephemeral) return { mode: sequential ? 'ephemeralSequential' : 'ephemeral' }
  return { mode: sequential ? 'persistentSequential' : 'persistent' }
}
