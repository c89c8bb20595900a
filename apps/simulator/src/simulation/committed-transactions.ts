import { epochOf } from '@zabra/protocol'
import type { LoggedTxn } from '@zabra/server/files'
import type { ServerLog } from '../history/committed-history.ts'
import type { QuorumMonitor } from './quorum-monitor.ts'

/**
 * Returns the committed transactions from the logs of all servers: for each zxid the transaction that a leader is known
 * to have committed, otherwise the one that a quorum of the deciding voters has logged, unless it was truncated.
 */
export function committedTransactions(
  logs: readonly ServerLog[],
  wire: QuorumMonitor | undefined,
): LoggedTxn[] {
  if (logs.length === 1) return [...logs[0]!.entries.values()]
  const votes = new Map<number, Map<LoggedTxn, Set<number>>>()
  for (const { server, entries, removed } of logs) {
    const id = Number(server.slice(1))
    for (const logged of entries.values()) vote(votes, logged, id)
    for (const logged of removed.values()) vote(votes, logged, id)
  }
  const isTruncated = truncatedIn(logs)
  const result: LoggedTxn[] = []
  for (const [zxid, distinct] of votes) {
    const [logged, servers] = [...distinct].sort(([, a], [, b]) => b.size - a.size)[0]!
    const deciders = wire?.configurations.decidingVoters(zxid) ?? []
    const isDecided = deciders.every((one) => wire!.isDecided(one, zxid, (id) => servers.has(id)))
    if ((isDecided && !isTruncated(zxid)) || wire?.committed.has(zxid) === true) result.push(logged)
  }
  return result
}

/**
 * Returns whether a transaction was removed from the end of an epoch: no server has it, and the log of a server goes from an earlier one,
 * or from a snapshot of an earlier one, to a later epoch. A leader that has committed nothing after a transaction truncates its learners to
 * it, or sends them a snapshot, so a quorum may have logged what follows, at different times.
 */
function truncatedIn(logs: readonly ServerLog[]): (zxid: number) => boolean {
  const gaps: { readonly after: number; readonly before: number }[] = []
  for (const { entries, snapshots } of logs) {
    const zxids = [...entries.keys(), ...snapshots].sort((a, b) => a - b)
    for (const [index, before] of zxids.entries()) {
      const after = zxids[index - 1]
      if (after !== undefined && epochOf(before) > epochOf(after)) gaps.push({ after, before })
    }
  }
  return (zxid) =>
    gaps.some(({ after, before }) => after < zxid && zxid < before) &&
    !logs.some(({ entries }) => entries.has(zxid))
}

function vote(votes: Map<number, Map<LoggedTxn, Set<number>>>, logged: LoggedTxn, id: number): void {
  const { zxid } = logged.header
  const distinct = votes.get(zxid) ?? new Map<LoggedTxn, Set<number>>()
  votes.set(zxid, distinct)
  const servers = distinct.get(logged)
  if (servers === undefined) distinct.set(logged, new Set([id]))
  else servers.add(id)
}
