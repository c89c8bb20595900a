import { formatZxid, isWrite } from '../history/records.ts'
import type { Checker } from './checker.ts'
import { knownBefore } from './known.ts'
import { tell } from './tell.ts'

export const freshness: Checker = {
  name: 'freshness',
  proves:
    'A server that has lost touch with the others soon answers nobody but who is content with old data: no read lacks a write that was answered longer ago than it may take to notice that.',
  check({ history, staleMs }) {
    if (staleMs === undefined) return []
    const known = knownBefore(history)
    const wrong: string[] = []
    for (const operation of history.operations) {
      const { outcome, zxid, request, invoked, isReadOnly } = operation
      if (outcome !== 'answered' || isReadOnly === true || zxid <= 0 || isWrite(request)) continue
      const bound = known(invoked - staleMs)
      if (zxid < bound)
        wrong.push(
          `${tell(operation)} shows ${formatZxid(zxid)}, and ${formatZxid(bound)} was answered more than ${staleMs.toFixed(0)} ms before it was asked`,
        )
    }
    return wrong
  },
}
