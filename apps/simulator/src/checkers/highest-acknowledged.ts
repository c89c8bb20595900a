import { isWrite, type History } from '../history/records.ts'

type HighestBefore = (time: number) => number

const known = new WeakMap<History, HighestBefore>()

/** Returns, for a world time, the highest zxid of a write acknowledged before it. Call it when the history is complete. */
export function highestAcknowledgedBefore(history: History): HighestBefore {
  let highest = known.get(history)
  if (highest === undefined) known.set(history, (highest = sortAcknowledged(history)))
  return highest
}

function sortAcknowledged({ operations }: History): HighestBefore {
  const done = operations
    .filter(
      ({ outcome, request, zxid, result, isReadOnly }) =>
        isReadOnly !== true && outcome === 'answered' && zxid > 0 && result.err === 0 && isWrite(request),
    )
    .sort((a, b) => a.returned - b.returned)
  const highest: number[] = []
  for (const { zxid } of done) highest.push(Math.max(zxid, highest.at(-1) ?? 0))
  return (time) => {
    let [low, high] = [0, done.length]
    while (low < high) {
      const middle = (low + high) >> 1
      if (done[middle]!.returned < time) low = middle + 1
      else high = middle
    }
    return low === 0 ? 0 : highest[low - 1]!
  }
}
