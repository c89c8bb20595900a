import type { Client } from '@zabra/client/core'
import { contendersInOrder } from '../lock-queue/contenders.ts'
import type { LockQueue } from '../lock-queue/lock-queue.ts'
import { isFinished } from '../support/retry.ts'
import { watchEach, type WatchingReader } from '../support/watch.ts'
import { decodeLeader, type Leader } from './announcement.ts'

/** What was seen: who leads, or that nobody does. */
interface Observation {
  readonly leader: Leader | undefined
}

type ReadLeader = (reader: WatchingReader) => Promise<Observation>

/**
 * The leader whenever it changes, undefined while there is none, until the signal aborts or the client ends. A leader that
 * follows and goes quickly may never be seen.
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
    // Who asks a client that is finished already hears of it.
    const isOver = signal.aborted || (last !== undefined && isFinished(client))
    if (!isOver) throw error
  }
}

const hasChanged = (last: Observation | undefined, { leader }: Observation): boolean =>
  last === undefined || last.leader?.token !== leader?.token || last.leader?.id !== leader?.id

/** Looks at what leaders announce. */
export function readAnnouncement(path: string): ReadLeader {
  return async (reader) => {
    for (;;) {
      const found = await reader.data(path)
      if (found !== undefined) return { leader: decodeLeader(found.data) }
      if ((await reader.exists(path)) === undefined) return { leader: undefined }
    }
  }
}

/** Looks at the first in line, whose znode bears its name. */
export function readQueueHead(queue: LockQueue): ReadLeader {
  return async (reader) => {
    for (;;) {
      const listing = await queue.list(reader.signal)
      const [first] = contendersInOrder(listing?.names ?? [], queue.parse)
      if (first !== undefined) {
        const found = await reader.data(queue.pathOf(first.name))
        if (found !== undefined)
          return { leader: { id: new TextDecoder().decode(found.data), token: found.stat.czxid } }
      } else if (await isEmpty(queue, listing !== undefined, reader)) return { leader: undefined }
    }
  }
}

/** Whether a line has no contenders still, with a watch that tells of the first one. */
async function isEmpty(queue: LockQueue, exists: boolean, reader: WatchingReader): Promise<boolean> {
  if (!exists) return (await reader.exists(queue.directory)) === undefined
  const now = await reader.children(queue.directory)
  return now !== undefined && contendersInOrder(now.children, queue.parse).length === 0
}
