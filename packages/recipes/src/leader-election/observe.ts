import type { Client } from '@zabra/client/core'
import { contendersInOrder } from '../lock-queue/contenders.ts'
import type { LockQueue } from '../lock-queue/lock-queue.ts'
import { isFinished } from '../support/retry.ts'
import { watchEach, type WatchingReader } from '../support/watch.ts'
import { decodeLeader, type Leader } from './announcement.ts'

/** The observed leader, or undefined when there is none. */
interface Observation {
  readonly leader: Leader | undefined
}

type ReadLeader = (reader: WatchingReader) => Promise<Observation>

/**
 * Yields the leader whenever it changes, undefined while there is none, until the signal aborts or the client
 * ends. A leader that is quickly followed by another may be skipped.
 */
export async function* observeLeaders(
  client: Client,
  reader: ReadLeader,
  signal: AbortSignal,
): AsyncGenerator<Leader | undefined> {
  let last: Observation | undefined
  try {
    for await (const sight of watchEach(client, { signal, operation: 'election.observe' }, reader)) {
      if (hasChanged(last, sight)) yield (last = sight).leader
    }
  } catch (error) {
    // A caller that observes with a finished client gets the error.
    const isOver = signal.aborted || (last !== undefined && isFinished(client))
    if (!isOver) throw error
  }
}

const hasChanged = (last: Observation | undefined, { leader }: Observation): boolean =>
  last === undefined || last.leader?.token !== leader?.token || last.leader?.id !== leader?.id

/** Reads the leader from its announcement. */
export function readAnnouncement(path: string): ReadLeader {
  return async (reader) => {
    for (;;) {
      const found = await reader.data(path)
      if (found !== undefined) return { leader: decodeLeader(found.data) }
      if ((await reader.exists(path)) === undefined) return { leader: undefined }
    }
  }
}

/** Reads the leader from the first entry of the queue, whose data is the leader's id. */
export function readQueueHead(queue: LockQueue): ReadLeader {
  return async (reader) => {
    for (;;) {
      const listing = await queue.list({ signal: reader.signal })
      const [first] = contendersInOrder(listing?.names ?? [], queue.parse)
      if (first !== undefined) {
        const found = await reader.data(queue.pathOf(first.name))
        if (found !== undefined)
          return { leader: { id: new TextDecoder().decode(found.data), token: found.stat.czxid } }
      } else if (await isEmpty(queue, listing !== undefined, reader)) return { leader: undefined }
    }
  }
}

/** Returns whether the queue is still empty, and sets a watch that reports the first contender. */
async function isEmpty(queue: LockQueue, exists: boolean, reader: WatchingReader): Promise<boolean> {
  if (!exists) return (await reader.exists(queue.directory)) === undefined
  const now = await reader.children(queue.directory)
  return now !== undefined && contendersInOrder(now.children, queue.parse).length === 0
}
