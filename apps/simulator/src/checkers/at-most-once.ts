import { OpCode } from '@zabra/protocol'
import { requestKey, type CommittedHistory } from '../history/committed-history.ts'
import { hasFailed } from '../history/failed.ts'
import { formatZxid, isWrite, type Operation } from '../history/records.ts'
import type { Checker } from './checker.ts'
import { describeOperation } from './describe-operation.ts'

export const atMostOnce: Checker = {
  name: 'at-most-once',
  proves:
    'A request is applied at most once and in the order of its session, also when the session moves; of the unanswered requests of a broken connection a prefix is applied.',
  check({ history, committed, quorum, diskWasFull }) {
    const wrong: string[] = []
    for (const [key, entries] of committed.byRequest) {
      const [first] = entries
      // Servers end sessions with cxid 0, and note their users with a negative one.
      if (entries.length < 2 || first!.logged.header.cxid <= 0 || first!.logged.header.sessionId === 0n)
        continue
      wrong.push(
        `Request ${key} is in the history ${entries.length} times: ${entries.map(({ zxid }) => formatZxid(zxid)).join(', ')}`,
      )
    }
    wrong.push(...outOfOrder(committed))
    // With a full disk the refusal of one write may be lost with the connection while a later write finds space.
    if (quorum === undefined && diskWasFull) return wrong
    const byConnection = new Map<number, Operation[]>()
    for (const operation of history.operations) {
      if (operation.outcome !== 'unknown' || !isWrite(operation.request)) continue
      const list = byConnection.get(operation.connection)
      if (list === undefined) byConnection.set(operation.connection, [operation])
      else list.push(operation)
    }
    for (const operations of byConnection.values()) {
      let missing: Operation | undefined
      let last = 0
      for (const operation of operations) {
        const entry = committed.byRequest.get(requestKey(operation.session, operation.xid))?.[0]
        if (entry === undefined) missing ??= operation
        else if (entry.logged.txn.type === OpCode.closeSession) break
        else if (missing !== undefined)
          wrong.push(
            `${describeOperation(operation)} was carried out, and ${describeOperation(missing)}, which was sent before it, was not`,
          )
        else if (entry.zxid <= last)
          wrong.push(`${describeOperation(operation)} was carried out before what was sent before it`)
        last = entry?.zxid ?? last
      }
    }
    return wrong
  },
}

/**
 * Checks that requests of a session are applied in order: a server that the session has left must not submit old
 * requests.
 */
function outOfOrder({ entries }: CommittedHistory): string[] {
  const last = new Map<bigint, { xid: number; zxid: number }>()
  const wrong: string[] = []
  for (const { zxid, logged } of entries) {
    const { header, txn } = logged
    // A close is accepted from any server, as in Apache ZooKeeper: nothing follows it.
    if (header.cxid <= 0 || hasFailed(txn) || txn.type === OpCode.closeSession) continue
    const before = last.get(header.sessionId)
    if (before !== undefined && header.cxid < before.xid)
      wrong.push(
        `Request ${header.cxid} of session ${header.sessionId.toString(16)} was carried out at ${formatZxid(zxid)}, after request ${before.xid} at ${formatZxid(before.zxid)}`,
      )
    last.set(header.sessionId, { xid: header.cxid, zxid })
  }
  return wrong
}
