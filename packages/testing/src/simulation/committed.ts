import type { LoggedTxn } from '@zabra/server/files'
import type { ServerLog } from '../history/chronicle.ts'
import type { ZabWire } from './zab-wire.ts'

/**
 * The transactions that count, from the logs of all servers: of each zxid the one that a leader is known to have committed,
 * else the one that most servers have, when those are a majority.
 */
export function committedLogs(logs: readonly ServerLog[], wire: ZabWire | undefined): LoggedTxn[] {
  if (logs.length === 1) return [...logs[0]!.entries.values()].map(({ logged }) => logged)
  const votes = new Map<number, Map<string, { logged: LoggedTxn; count: number }>>()
  for (const { entries, aside } of logs) {
    for (const [zxid, { logged, print }] of [...entries, ...aside]) {
      const one = votes.get(zxid) ?? new Map<string, { logged: LoggedTxn; count: number }>()
      votes.set(zxid, one)
      const vote = one.get(print)
      if (vote === undefined) one.set(print, { logged, count: 1 })
      else vote.count++
    }
  }
  const result: LoggedTxn[] = []
  for (const [zxid, prints] of votes) {
    const best = [...prints.values()].sort((a, b) => b.count - a.count)[0]!
    if (best.count * 2 > logs.length || wire?.record.committed.has(zxid) === true) result.push(best.logged)
  }
  return result
}
