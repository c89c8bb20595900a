import { isWrite, type History } from '../history/records.ts'

/** Returns, for a world time, the highest zxid of a write acknowledged before it. */
export function highestAcknowledgedBefore({ operations }: History): (time: number) => number {
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
