import type { CommittedHistory } from '../history/committed-history.ts'
import type { TreeModel, PathChange } from '../history/model.ts'
import { formatZxid } from '../history/records.ts'
import { difference } from '../checkers/reads.ts'
import type { ArmedWatch, Call, CallLog, Observed } from './calls.ts'

/**
 * Checks what library clients reported: every promise settles, a successful write happened once, an error that excludes
 * a write is right, what one client observes never goes back in its own order, no change is shown before the watch on
 * it fires, and a reader of a stream ends with the newest state.
 */
export function checkCalls(log: CallLog, committed: CommittedHistory): string[] {
  const wrong = [...log.violations]
  for (const call of log.calls)
    if (call.outcome === 'pending' && call.incarnation.isAlive)
      wrong.push(`${describeCall(call)} was never settled`)
  const writers = writersOf(committed.model)
  for (const call of log.calls) {
    const problem = writeProblem(call, writers, committed.model)
    if (problem !== undefined) wrong.push(`${describeCall(call)} ${problem}`)
  }
  const clients = new Set(log.calls.map(({ client }) => client))
  for (const client of clients) wrong.push(...orderProblems(client, log, committed.model))
  for (const { client, path, incarnation, last, isEnded } of log.streamReaders) {
    const state = committed.model.stateAt(path, Infinity)
    if (log.closedClients.has(client)) {
      if (incarnation.isAlive && !isEnded)
        wrong.push(`${client} is closed, and its stream of ${path} never ended`)
    } else if (incarnation.isAlive && state?.stat.mzxid !== last?.mzxid)
      wrong.push(
        `${client} follows ${path} and ended with ${formatZxid(last?.mzxid ?? 0)} instead of ${formatZxid(state?.stat.mzxid ?? 0)}`,
      )
  }
  return wrong
}

const describeCall = ({ kind, path, client, invoked, outcome, error }: Call): string =>
  `${kind} ${path} of ${client} (${invoked.toFixed(1)} ms, ${outcome}${error === undefined ? '' : `: ${error}`})`

/** Returns how often each value was written. */
function writersOf(model: TreeModel): Map<string, number> {
  const writers = new Map<string, number>()
  for (const steps of model.paths.values())
    for (const { change, state } of steps)
      if ((change === 'created' || change === 'data') && state !== undefined)
        writers.set(state.data, (writers.get(state.data) ?? 0) + 1)
  return writers
}

function writeProblem(
  call: Call,
  writers: ReadonlyMap<string, number>,
  model: TreeModel,
): string | undefined {
  const { kind, path, uniqueData, outcome, maybeApplied, isRepeatable } = call
  const isDelete = kind === 'delete'
  if (uniqueData === undefined && !isDelete) return undefined
  const count = isDelete ? deletionsOf(model, path) : (writers.get(uniqueData!) ?? 0)
  if (kind === 'failingMulti' && count > 0)
    return `was applied, although one of its operations cannot succeed`
  if (count > 1 && !isRepeatable) return `was applied ${count} times`
  if (outcome === 'done' && count === 0)
    return kind === 'failingMulti' ? 'succeeded, although one of its operations cannot' : 'was never applied'
  if (outcome === 'failed' && maybeApplied === false && count > 0)
    return 'reports that it was not applied, and it was'
  return undefined
}

function deletionsOf(model: TreeModel, path: string): number {
  return (model.paths.get(path) ?? []).filter(({ change }) => change === 'deleted').length
}

/**
 * Checks what one client observed, in its own order, by tracking the earliest zxid at which all of it can have been
 * true.
 */
function orderProblems(client: string, log: CallLog, model: TreeModel): string[] {
  const wrong: string[] = []
  const calls = log.calls.filter((call) => call.client === client && call.observed !== undefined)
  const seen = calls
    .map(({ observed, armed }) => ({ observed: observed!, armed }))
    .filter(({ observed }) => observed.order >= 0)
    .sort((a, b) => a.observed.order - b.observed.order)
  const renewals = log.newSessions.filter((renewal) => renewal.client === client).map(({ order }) => order)
  let zxid = 0
  let waiting: { armed: ArmedWatch; since: number }[] = []
  for (const { observed, armed } of seen) {
    while (renewals.length > 0 && renewals[0]! < observed.order) {
      renewals.shift()
      zxid = 0
      waiting = []
    }
    const moment = momentOf(observed, model, zxid)
    if (moment === undefined) {
      wrong.push(
        `${client} saw ${observed.path} (${observed.stat === undefined ? 'missing' : formatZxid(observed.stat.mzxid)}, order ${observed.order}) after ${formatZxid(zxid)}, a state that no longer existed`,
      )
      continue
    }
    zxid = moment
    waiting = waiting.filter(({ armed: { event } }) => (event?.order ?? Infinity) > observed.order)
    for (const { armed: watch, since } of waiting) {
      const step = changeOf(watch, model, since)
      if (step === undefined || step.zxid > zxid) continue
      wrong.push(
        `${client} watched ${watch.kind} of ${watch.observed.path} and saw ${formatZxid(zxid)} (order ${observed.order}) before it was notified of ${formatZxid(step.zxid)}`,
      )
      waiting = waiting.filter((one) => one.armed !== watch)
      break
    }
    if (armed !== undefined && armed.observed.stat !== undefined) waiting.push({ armed, since: zxid })
  }
  return wrong
}

/** Returns the first zxid, from `from` on, at which a znode was as observed. */
function momentOf(
  { path, stat, data, children }: Observed,
  model: TreeModel,
  from: number,
): number | undefined {
  const fits = (zxid: number): boolean => {
    const state = model.stateAt(path, zxid)
    if (stat === undefined || state === undefined) return stat === undefined && state === undefined
    if (difference(state, data, stat) !== undefined) return false
    if (children === undefined) return true
    return [...model.childrenAt(path, zxid)].sort().join() === children.toSorted().join()
  }
  if (fits(from)) return from
  return model.firstChangeAfter(path, from, (step) => fits(step.zxid))?.zxid
}

/** Returns the next change that a watch must report. */
function changeOf({ kind, observed }: ArmedWatch, model: TreeModel, since: number): PathChange | undefined {
  const reported = kind === 'children' ? 'children' : 'data'
  return model.firstChangeAfter(
    observed.path,
    since,
    ({ change }) => change === 'deleted' || change === reported,
  )
}
