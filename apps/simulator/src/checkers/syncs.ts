import { formatZxid, type Operation } from '../history/records.ts'
import type { Checker } from './checker.ts'
import { highestAcknowledgedBefore } from './highest-acknowledged.ts'
import { describeOperation } from './describe-operation.ts'

export const syncs: Checker = {
  name: 'syncs',
  proves:
    'A read after a sync of its session shows every write that was acknowledged before the sync was sent.',
  check({ history }) {
    const known = highestAcknowledgedBefore(history)
    const wrong: string[] = []
    for (const arrivals of history.eventsBySession().values()) {
      let sync: Operation | undefined
      let bound = 0
      for (const arrival of arrivals) {
        if (arrival.kind !== 'operation' || arrival.result.err === undefined) continue
        if (arrival.request.op === 'sync') {
          if (arrival.result.err !== 0) continue
          sync = arrival
          bound = Math.max(bound, known(arrival.invoked))
        } else if (sync !== undefined && arrival.xid > sync.xid && arrival.zxid > 0 && arrival.zxid < bound) {
          wrong.push(
            `${describeOperation(arrival)} does not show ${formatZxid(bound)}, which was answered before ${describeOperation(sync)}`,
          )
        }
      }
    }
    return wrong
  },
}
