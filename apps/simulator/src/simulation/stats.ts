import { ErrorCode } from '@zabra/protocol'
import { isWrite, type History, type Request } from '../history/records.ts'
import type { Call } from '../participants/calls.ts'
import type { SimulatedServer } from '@zabra/testing'
import type { QuorumMonitor } from './quorum-monitor.ts'

/** Requests that are counted by kind. */
const COUNTED: Readonly<Partial<Record<Request['op'], string>>> = {
  sync: 'syncs',
  multiRead: 'multiReads',
  whoAmI: 'questions for identities',
  checkWatches: 'questions for watches',
  removeWatches: 'removals of watches',
  addWatch: 'lasting watches',
  ephemerals: 'lists of ephemerals',
  count: 'counts of znodes below',
  setAcl: 'changes of access lists',
}

/** Counts of what happened in one run or many: evidence that the runs were not vacuous. */
export class Stats {
  readonly counts: Record<string, number> = {}
  /** Time from healing to the first acknowledged write, in milliseconds; the maximum over runs. */
  recoveryMs = 0

  add(name: string, count: number): void {
    if (count > 0) this.counts[name] = (this.counts[name] ?? 0) + count
  }

  recordLogLine(sentence: string, facts: object): void {
    if (sentence === 'A session expired') this.add('sessions expired', 1)
    if ('reason' in facts && facts.reason === 'the transactions of this epoch are used up')
      this.add('epochs used up', 1)
  }

  /** Counts the calls of library clients. */
  recordCalls(calls: readonly Call[]): void {
    for (const { outcome, maybeApplied } of calls) {
      this.add('calls of real clients', 1)
      if (outcome === 'failed') this.add(maybeApplied ? 'calls in doubt' : 'calls that failed', 1)
    }
  }

  recordRun(
    history: History,
    servers: readonly SimulatedServer[],
    faults: Readonly<Record<string, number>>,
    wire: QuorumMonitor | undefined,
  ): void {
    for (const { outcome, request, result, isReadOnly } of history.operations) {
      this.add('operations', 1)
      if (outcome === 'unknown') this.add('unknown outcomes', 1)
      if (outcome === 'answered' && isWrite(request))
        this.add(result.err === 0 ? 'writes' : 'refused writes', 1)
      if (outcome !== 'answered') continue
      if (isReadOnly === true)
        this.add(result.err === ErrorCode.NOTREADONLY ? 'refused as read-only' : 'read-only answers', 1)
      const counted = COUNTED[request.op]
      if (counted !== undefined) this.add(counted, 1)
      if (result.err === ErrorCode.QUOTAEXCEEDED) this.add('refused for a quota', 1)
    }
    const at = new Map<string, string>()
    for (const arrival of history.events) {
      if (arrival.kind === 'notice') this.add('watches fired', 1)
      if (arrival.kind === 'rearmed') this.add('watches armed again', 1)
      if (arrival.kind !== 'attached') continue
      if (arrival.isReadOnly === true) this.add('sessions of read-only servers', 1)
      this.add(arrival.isNew ? 'sessions' : 'sessions attached again', 1)
      const before = at.get(arrival.session)
      if (before !== undefined && before !== arrival.server) this.add('sessions moved', 1)
      at.set(arrival.session, arrival.server)
    }
    for (const { host, stops, repairs } of servers) {
      for (const [name, count] of Object.entries(host.disk.faultCounts)) this.add(name, count)
      this.add('restarts', host.startCount - 1)
      this.add('logs cut by an operator', repairs)
      this.add('stops', stops.length)
    }
    for (const [name, count] of Object.entries(faults)) this.add(`fault ${name}`, count)
    for (const [name, count] of Object.entries(wire?.counts ?? {})) this.add(name, count)
  }

  merge(other: Pick<Stats, 'counts' | 'recoveryMs'>): void {
    for (const [name, count] of Object.entries(other.counts)) this.add(name, count)
    this.recoveryMs = Math.max(this.recoveryMs, other.recoveryMs)
  }
}
