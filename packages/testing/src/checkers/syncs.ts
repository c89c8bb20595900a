import { formatZxid, isWrite, type Operation } from '../history/records.ts'
import type { Checker } from './checker.ts'
import { tell } from './tell.ts'

export const syncs: Checker = {
  name: 'syncs',
  proves:
    'A read behind a sync of its session shows every write that anybody had an answer for before the sync was sent.',
  check({ history }) {
    const done = history.operations
      .filter(
        ({ outcome, request, zxid, result }) =>
          outcome === 'answered' && zxid > 0 && result.err === 0 && isWrite(request),
      )
      .sort((a, b) => a.returned - b.returned)
    /** The highest zxid that was answered before a time. */
    const highest: number[] = []
    for (const { zxid } of done) highest.push(Math.max(zxid, highest.at(-1) ?? 0))
    const knownBefore = (time: number): number => {
      let [low, high] = [0, done.length]
      while (low < high) {
        const middle = (low + high) >> 1
        if (done[middle]!.returned < time) low = middle + 1
        else high = middle
      }
      return low === 0 ? 0 : highest[low - 1]!
    }
    const wrong: string[] = []
    for (const arrivals of history.bySession().values()) {
      let sync: Operation | undefined
      let bound = 0
      for (const arrival of arrivals) {
        if (arrival.kind !== 'operation' || arrival.result.err === undefined) continue
        if (arrival.request.op === 'sync') {
          if (arrival.result.err !== 0) continue
          sync = arrival
          bound = Math.max(bound, knownBefore(arrival.invoked))
        } else if (sync !== undefined && arrival.xid > sync.xid && arrival.zxid > 0 && arrival.zxid < bound) {
          wrong.push(
            `${tell(arrival)} does not show ${formatZxid(bound)}, which was answered before ${tell(sync)}`,
          )
        }
      }
    }
    return wrong
  },
}
