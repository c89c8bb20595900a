import { ErrorCode } from '@zabra/protocol'
import { isWrite, type Operation } from '../history/records.ts'
import type { Checker } from './checker.ts'
import { describeOperation } from './describe-operation.ts'

/** How long a server may take to find a leader after healing, in milliseconds. */
const HEALED_WITHIN_MS = 15_000

export const readOnly: Checker = {
  name: 'read-only',
  proves:
    'A server without a quorum refuses every write and sync, other servers do not announce read-only mode, and no server is read-only after healing.',
  check({ history, healedAt }) {
    const wrong: string[] = []
    for (const operation of history.operations) {
      if (operation.outcome !== 'answered') continue
      const problem = problemOf(operation)
      if (problem !== undefined) wrong.push(`${describeOperation(operation)} ${problem}`)
    }
    for (const arrival of history.events)
      if (
        arrival.kind === 'attached' &&
        arrival.isReadOnly === true &&
        arrival.at > healedAt + HEALED_WITHIN_MS
      )
        wrong.push(
          `${arrival.server} is read-only at ${arrival.at.toFixed(1)} ms, and faults ended at ${healedAt.toFixed(1)} ms`,
        )
    return wrong
  },
}

function problemOf({ request, result, results, isReadOnly }: Operation): string | undefined {
  const isRefused = [result, ...results].some(({ err }) => err === ErrorCode.NOTREADONLY)
  if (isReadOnly !== true) return isRefused ? 'is refused as by a read-only server' : undefined
  // Closing a local session changes no replicated state.
  const needsQuorum = request.op === 'sync' || (isWrite(request) && request.op !== 'close')
  if (needsQuorum === isRefused) return undefined
  return isRefused ? 'is refused, although it changes nothing' : 'is answered by a server without a quorum'
}
