import type { Client } from '@zabra/client/core'
import { LostError } from '../handles/lost.ts'
import { createParser } from './contenders.ts'
import { LockQueue, type LockQueueOptions, type QueueEntry } from './lock-queue.ts'
import { acquireTurn } from './turn.ts'

const prefix = 'at-'
const parse = createParser([prefix])

export interface HeadOptions extends Pick<LockQueueOptions, 'onCreate'> {
  readonly signal?: AbortSignal | undefined
  /** Name of the waiting operation, for messages. */
  readonly operation: string
}

/** An entry at the head of a queue that only saves work. */
export interface QueueHead extends QueueEntry {
  /** Lets the next contender proceed. Deleting `path` in a transaction does the same. */
  release(): void
}

/**
 * Waits at the head of a queue until all earlier contenders have left. This saves work and gives an order, but is
 * no lock: after an outage a contender may find that it is not alone. Queues again when its entry is deleted or
 * its session expires.
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
