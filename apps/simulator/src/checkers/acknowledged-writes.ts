import { ErrorCode, errorName } from '@zabra/protocol'
import { requestKey } from '../history/committed-history.ts'
import { hasFailed } from '../history/failed.ts'
import { formatZxid, hasZxid, hexOf, isWrite, type Operation } from '../history/records.ts'
import type { Checker } from './checker.ts'
import { describeOperation } from './describe-operation.ts'

export const acknowledgedWrites: Checker = {
  name: 'acknowledged-writes',
  proves:
    'Every acknowledged write is in the committed history, at the zxid of its reply; a refused write has changed nothing, and is refused for a reason that the run explains.',
  check({ history, committed, diskWasFull }) {
    const wrong: string[] = []
    for (const operation of history.operations) {
      if (operation.outcome !== 'answered' || !isWrite(operation.request)) continue
      const { zxid, result, session, xid } = operation
      if (!hasZxid(operation)) {
        const effect = committed.byRequest
          .get(requestKey(session, xid))
          ?.find(({ logged }) => !hasFailed(logged.txn))
        if (effect !== undefined)
          wrong.push(
            `${describeOperation(operation)} was refused and is in the history at ${formatZxid(effect.zxid)}`,
          )
        const problem = refusalProblem(operation, diskWasFull)
        if (problem !== undefined) wrong.push(`${describeOperation(operation)} ${problem}`)
        continue
      }
      const entry = committed.byZxid.get(zxid)
      if (entry === undefined) {
        wrong.push(
          `${describeOperation(operation)} was acknowledged and is lost: the history has no ${formatZxid(zxid)}`,
        )
        continue
      }
      const { header } = entry.logged
      if (hexOf(header.sessionId) !== session || header.cxid !== xid)
        wrong.push(
          `${describeOperation(operation)} was answered with a zxid that names request ${header.cxid} of session ${hexOf(header.sessionId)}`,
        )
      else if (hasFailed(entry.logged.txn) !== (result.err !== 0))
        wrong.push(
          `${describeOperation(operation)}: the history has ${result.err === 0 ? 'a failure' : 'an effect'} there`,
        )
      else wrong.push(...resultProblems(operation))
    }
    return wrong
  },
}

/** Errors without a zxid that a well-formed write of a session gets where the disk is never full. */
const EXPLAINED: ReadonlySet<number> = new Set([
  ErrorCode.SESSIONEXPIRED,
  ErrorCode.SESSIONMOVED,
  ErrorCode.NOTREADONLY,
])

/** Checks a reply that has no place in the history. */
function refusalProblem({ result, isLocal }: Operation, diskWasFull: boolean): string | undefined {
  const { err } = result
  if (err === 0) return isLocal === true ? undefined : 'was acknowledged without a zxid'
  const isExplained = EXPLAINED.has(err) || (err === ErrorCode.SYSTEMERROR && diskWasFull)
  return isExplained ? undefined : `is refused with ${errorName(err)}, which nothing in the run explains`
}

/** Checks that the Stats in the reply name the same transaction. */
function resultProblems(operation: Operation): string[] {
  const { request, result, results, zxid } = operation
  // setACL does not change the mzxid of a Stat.
  if (request.op === 'setAcl') return []
  const stats = request.op === 'multi' ? results.map(({ stat }) => stat) : [result.stat]
  return stats
    .filter((stat) => stat !== undefined && stat.mzxid !== zxid)
    .map((stat) => `${describeOperation(operation)} was answered with a Stat of ${formatZxid(stat!.mzxid)}`)
}
