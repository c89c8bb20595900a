import type { CallOptions } from '@zabra/client/core'
import { explainHolders, MAX_HOLDERS, type Explanation, type Participant } from '../handles/lock-timeout.ts'
import { undefinedIfMissing } from '../support/retry.ts'
import { contendersInOrder, type Contender } from './contenders.ts'
import type { LockQueue } from './lock-queue.ts'

/** Returns the contenders of a queue in its order, each with what `toResult` makes of it. */
export async function readParticipants<T>(
  queue: LockQueue,
  toResult: (participant: Participant, contender: Contender) => T,
  options: CallOptions = {},
): Promise<T[]> {
  const listing = await queue.list(options)
  const reads = contendersInOrder(listing?.names ?? [], queue.parse).map(async (contender) => {
    const participant = await readParticipant(queue, contender, options)
    return participant === undefined ? [] : [toResult(participant, contender)]
  })
  return (await Promise.all(reads)).flat()
}

/** Returns who holds the lock of a queue: the writer at its head, or the readers before the first writer. */
export async function explainQueue(queue: LockQueue, options: CallOptions): Promise<Explanation> {
  const listing = await queue.list(options)
  const contenders = contendersInOrder(listing?.names ?? [], queue.parse)
  const firstWriter = contenders.findIndex(({ isShared }) => !isShared)
  const count = firstWriter === 0 ? 1 : firstWriter < 0 ? contenders.length : firstWriter
  const first = contenders.slice(0, Math.min(count, MAX_HOLDERS))
  const holders = await Promise.all(first.map((contender) => readParticipant(queue, contender, options)))
  return explainHolders(
    holders.filter((holder) => holder !== undefined),
    count,
  )
}

/** Returns undefined when the contender has left. */
async function readParticipant(
  queue: LockQueue,
  { name }: Contender,
  options: CallOptions,
): Promise<Participant | undefined> {
  const path = queue.pathOf(name)
  const found = await undefinedIfMissing(queue.client.getData(path, options))
  return found && { path, data: found.data, owner: found.stat.ephemeralOwner }
}
