import type { LoggedTxn } from '@zabra/server/files'
import type { ServerLog } from '../history/committed-history.ts'
import type { QuorumMonitor } from './quorum-monitor.ts'

/**
 * Returns the committed transactions from the logs of all servers: for each zxid the transaction that a leader is known
 * to have committed, otherwise the one that a quorum of the deciding voters has logged.
 */
export function committedTransactions(
  logs: readonly ServerLog[],
  wire: QuorumMonitor | undefined,
): LoggedTxn[] {
  if (logs.length === 1) return [...logs[0]!.entries.values()].map(({ logged }) => logged)
  const votes = new Map<number, Map<string, { logged: LoggedTxn; servers: Set<number> }>>()
  for (const { server, entries, removed } of logs) {
    const id = Number(server.slice(1))
    for (const [zxid, { logged, print }] of [...entries, ...removed]) {
      const one = votes.get(zxid) ?? new Map<string, { logged: LoggedTxn; servers: Set<number> }>()
      votes.set(zxid, one)
      const vote = one.get(print)
      if (vote === undefined) one.set(print, { logged, servers: new Set([id]) })
      else vote.servers.add(id)
    }
  }
  const result: LoggedTxn[] = []
  for (const [zxid, prints] of votes) {
    const best = [...prints.values()].sort((a, b) => b.servers.size - a.servers.size)[0]!
    const deciders = wire?.configurations.decidingVoters(zxid) ?? []
    const isDecided = deciders.every(({ isQuorum }) => isQuorum((id) => best.servers.has(id)))
    if (isDecided || wire?.committed.has(zxid) === true) result.push(best.logged)
  }
  return result
}
