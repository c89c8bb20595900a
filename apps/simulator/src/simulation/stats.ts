import { ErrorCode } from '@zabra/protocol'
import { isWrite, type History, type Request } from '../history/records.ts'
import type { Call } from '../participants/calls.ts'
import type { SimulatedServer, LogLine } from '@zabra/testing'
import type { QuorumMonitor } from './quorum-monitor.ts'

/** Requests that are counted by kind. */
const COUNTED: Readonly<Partial<Record<Request['op'], string>>> = {
  sync: 'syncs',
  multiRead: 'multiReads',
  whoAmI: 'whoAmI',
  checkWatches: 'checkWatches',
  removeWatches: 'removeWatches',
  addWatch: 'persistent watches',
  ephemerals: 'getEphemerals',
  count: 'getAllChildrenNumber',
  setAcl: 'setACL',
}

/** Counts of what happened in one run or many: evidence that the runs were not vacuous. */
export class Stats {
  readonly counts: Record<string, number> = {}
  /** Time from healing to the first acknowledged write, in milliseconds; the maximum over runs. */
  recoveryMs = 0

  add(name: string, count: number): void {
    if (count > 0) this.counts[name] = (this.counts[name] ?? 0) + count
  }

  recordLogLine({ sentence, facts }: LogLine): void {
    if (sentence === 'A session expired') this.add('sessions expired', 1)
    if (
      / bytes are (?:not read by it|queued until it is synced)$/.test(
        ('reason' in facts && String(facts.reason)) || '',
      )
    )
      this.add('members given up', 1)
    if ('reason' in facts && facts.reason === 'all counters of this epoch are used')
      this.add('epochs used up', 1)
  }

  /** Counts the calls of library clients. */
  recordCalls(calls: readonly Call[]): void {
    for (const { outcome, maybeApplied } of calls) {
      this.add('library client calls', 1)
      if (outcome === 'failed')
        this.add(
          maybeApplied ? 'library client calls with unknown outcome' : 'library client calls that failed',
          1,
        )
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
      if (result.err === ErrorCode.BADVERSION) this.add('refused for a version', 1)
      if (request.op === 'multi' && request.parts.length > 100) this.add('large multis', 1)
      if (isReadOnly === true)
        this.add(result.err === ErrorCode.NOTREADONLY ? 'refused as read-only' : 'read-only answers', 1)
      const counted = COUNTED[request.op]
      if (counted !== undefined) this.add(counted, 1)
      if (result.err === ErrorCode.QUOTAEXCEEDED) this.add('refused for a quota', 1)
    }
    const at = new Map<string, string>()
    for (const arrival of history.events) {
      if (arrival.kind === 'notice') this.add('watches fired', 1)
      if (arrival.kind === 'rearmed') this.add('watch resets', 1)
      if (arrival.kind !== 'attached') continue
      if (arrival.isReadOnly === true) this.add('sessions of read-only servers', 1)
      this.add(arrival.isNew ? 'sessions' : 'session reattachments', 1)
      const before = at.get(arrival.session)
      if (before !== undefined && before !== arrival.server) this.add('sessions moved', 1)
      at.set(arrival.session, arrival.server)
    }
    for (const { host, stops, repairs } of servers) {
      for (const [name, count] of Object.entries(host.disk.faultCounts)) this.add(name, count)
      this.add('restarts', host.startCount - 1)
      this.add('logs repaired by the operator', repairs)
      this.add('stops', stops.length)
    }
    for (const [name, count] of Object.entries(faults)) this.add(`fault: ${name}`, count)
    for (const [name, count] of Object.entries(wire?.counts ?? {})) this.add(name, count)
  }

  merge(other: Pick<Stats, 'counts' | 'recoveryMs'>): void {
    for (const [name, count] of Object.entries(other.counts)) this.add(name, count)
    this.recoveryMs = Math.max(this.recoveryMs, other.recoveryMs)
  }
}
