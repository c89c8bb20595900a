import { requestKey, type CommittedHistory } from '../history/committed-history.ts'
import { formatZxid, hasZxid, isWrite, type Operation } from '../history/records.ts'
import type { Checker } from './checker.ts'
import { describeOperation } from './describe-operation.ts'

export const writeOrder: Checker = {
  name: 'write-order',
  proves:
    'Writes are linearizable: a write that was sent after another was acknowledged has the higher zxid, also where its own reply was lost.',
  check({ history, committed }) {
    const byReturn = history.operations.filter(hasZxid).sort((a, b) => a.returned - b.returned)
    const byStart = history.operations
      .map((operation) => ({ operation, zxid: zxidOf(operation, committed) }))
      .filter(({ zxid }) => zxid !== undefined)
      .sort((a, b) => a.operation.invoked - b.operation.invoked)
    const wrong: string[] = []
    let next = 0
    let highest: Operation | undefined
    for (const { operation, zxid } of byStart) {
      while (next < byReturn.length && byReturn[next]!.returned < operation.invoked) {
        const done = byReturn[next++]!
        if (highest === undefined || done.zxid > highest.zxid) highest = done
      }
      if (highest !== undefined && zxid! <= highest.zxid)
        wrong.push(
          `${describeOperation(operation)} began after ${describeOperation(highest)} was answered and is not above ${formatZxid(highest.zxid)}`,
        )
    }
    return wrong
  },
}

/** Returns where a write is in the history; undefined for a read, and for a write that has no place there. */
function zxidOf(operation: Operation, { byRequest }: CommittedHistory): number | undefined {
  if (hasZxid(operation)) return operation.zxid
  const { outcome, request, session, xid } = operation
  if (outcome !== 'unknown' || !isWrite(request)) return undefined
  return byRequest.get(requestKey(session, xid))?.[0]?.zxid
}
