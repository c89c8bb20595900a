import { formatZxid, hasZxid, type Operation } from '../history/records.ts'
import type { Checker } from './checker.ts'
import { describeOperation } from './describe-operation.ts'

export const writeOrder: Checker = {
  name: 'write-order',
  proves:
    'Writes are linearizable: a write that was sent after another was acknowledged has the higher zxid.',
  check({ history }) {
    const writes = history.operations.filter(hasZxid)
    const byReturn = [...writes].sort((a, b) => a.returned - b.returned)
    const byStart = [...writes].sort((a, b) => a.invoked - b.invoked)
    const wrong: string[] = []
    let next = 0
    let highest: Operation | undefined
    for (const operation of byStart) {
      while (next < byReturn.length && byReturn[next]!.returned < operation.invoked) {
        const done = byReturn[next++]!
        if (highest === undefined || done.zxid > highest.zxid) highest = done
      }
      if (highest !== undefined && operation.zxid <= highest.zxid)
        wrong.push(
          `${describeOperation(operation)} began after ${describeOperation(highest)} was answered and is not above ${formatZxid(highest.zxid)}`,
        )
    }
    return wrong
  },
}
