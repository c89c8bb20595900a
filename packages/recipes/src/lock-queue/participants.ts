import type { Bytes } from '@zabra/client/core'
import { undefinedIfMissing } from '../support/retry.ts'
import { contendersInOrder, type Contender } from './contenders.ts'
import type { LockQueue } from './lock-queue.ts'

/** A contender of a lock. */
export interface Participant {
  readonly path: string
  readonly data: Bytes
  /** Id of the session. */
  readonly owner: bigint
}

/** Returns the contenders of a queue in its order, each with what `toResult` makes of it. */
export async function readParticipants<T>(
  queue: LockQueue,
  toResult: (participant: Participant, contender: Contender) => T,
): Promise<T[]> {
  const listing = await queue.list(undefined)
  const reads = contendersInOrder(listing?.names ?? [], queue.parse).map(async (contender) => {
    const path = queue.pathOf(contender.name)
    const found = await undefinedIfMissing(queue.client.getData(path))
    return found === undefined
      ? []
      : [toResult({ path, data: found.data, owner: found.stat.ephemeralOwner }, contender)]
  })
  return (await Promise.all(reads)).flat()
}
