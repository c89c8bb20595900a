import type { Client } from '@zabra/client/core'
import { LostError } from '../handles/lost.ts'
import { createParser } from './contenders.ts'
import { LockQueue, type LockQueueOptions, type QueueEntry } from './lock-queue.ts'
import { acquireTurn } from './turn.ts'

const prefix = 'at-'
const parse = createParser([prefix])

export interface HeadOptions extends Pick<LockQueueOptions, 'onCreate'> {
  readonly signal?: AbortSignal | undefined
  /** What waits, for messages. */
  readonly operation: string
}

/** A place at the head of a line that saves work. */
export interface QueueHead extends QueueEntry {
  /** Lets the next one come. Also done by deleting `path` in a transaction. */
  release(): void
}

/**
 * Stands in a line until everybody before has left. It saves work and gives an order, and is no lock: who comes back from an
 * outage may find that it is no longer alone. One that is sent away by hand, or whose session ends, stands in line again.
 */
export async function acquireHead(
  client: Client,
  directory: string,
  options: HeadOptions,
): Promise<QueueHead> {
  const { signal, operation, onCreate } = options
  const queue = new LockQueue(client, directory, parse, { naming: 'curator', ...(onCreate && { onCreate }) })
  const grant = (entry: QueueEntry): QueueHead => ({
    ...entry,
    release: () => queue.removeInBackground(entry),
  })
  for (;;) {
    try {
      return await acquireTurn(queue, {
        prefix,
        policy: 'session',
        operation,
        grant,
        ...(signal && { signal }),
      })
    } catch (error) {
      if (!(error instanceof LostError && error.reason === 'nodeDeleted')) throw error
    }
  }
}
