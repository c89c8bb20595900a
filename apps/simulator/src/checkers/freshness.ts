import { formatZxid, isWrite } from '../history/records.ts'
import type { Checker } from './checker.ts'
import { highestAcknowledgedBefore } from './highest-acknowledged.ts'
import { describeOperation } from './describe-operation.ts'

export const freshness: Checker = {
  name: 'freshness',
  proves:
    'A server that has lost its quorum soon serves only read-only clients: no read misses a write that was acknowledged longer ago than the server may take to notice.',
  check({ history, maxStalenessMs }) {
    if (maxStalenessMs === undefined) return []
    const known = highestAcknowledgedBefore(history)
    const wrong: string[] = []
    for (const operation of history.operations) {
      const { outcome, zxid, request, invoked, isReadOnly } = operation
      if (outcome !== 'answered' || isReadOnly === true || zxid <= 0 || isWrite(request)) continue
      const bound = known(invoked - maxStalenessMs)
      if (zxid < bound)
        wrong.push(
          `${describeOperation(operation)} shows ${formatZxid(zxid)}, and ${formatZxid(bound)} was answered more than ${maxStalenessMs.toFixed(0)} ms before it was asked`,
        )
    }
    return wrong
  },
}
