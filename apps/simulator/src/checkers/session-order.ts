import { formatZxid, hasZxid } from '../history/records.ts'
import type { Checker } from './checker.ts'
import { describeOperation } from './describe-operation.ts'

export const sessionOrder: Checker = {
  name: 'session-order',
  proves:
    'A session never goes back: the zxids of its replies do not decrease, also when it moves between servers, nor below the last zxid its client had seen, and its writes have increasing zxids in the order of its requests.',
  check({ history, committed }) {
    const wrong = [...history.violations]
    for (const [session, arrivals] of history.eventsBySession()) {
      let seen = 0
      let lastWrite = { xid: -Infinity, zxid: 0 }
      for (const arrival of arrivals) {
        // A server behind the client's last zxid must refuse it. The zxid counts only if it is in the history: a
        // read-only server may have shown transactions that were never committed, and later epochs lie above them.
        if (arrival.kind === 'attached' && committed.byZxid.has(arrival.seen))
          seen = Math.max(seen, arrival.seen)
        if (arrival.kind === 'rearmed') {
          if (arrival.zxid > 0 && arrival.zxid < seen)
            wrong.push(
              `Session ${session} had seen ${formatZxid(seen)} and had its watches armed at ${formatZxid(arrival.zxid)}`,
            )
          seen = Math.max(seen, arrival.zxid)
        }
        if (arrival.kind !== 'operation' || arrival.zxid <= 0) continue
        if (arrival.zxid < seen)
          wrong.push(
            `${describeOperation(arrival)} goes back behind ${formatZxid(seen)}, which its session had seen`,
          )
        seen = Math.max(seen, arrival.zxid)
        if (!hasZxid(arrival)) continue
        if (arrival.xid > lastWrite.xid && arrival.zxid <= lastWrite.zxid)
          wrong.push(
            `${describeOperation(arrival)} is not above ${formatZxid(lastWrite.zxid)}, an earlier write of its session`,
          )
        lastWrite = arrival
      }
    }
    return wrong
  },
}
