import { ErrorCode } from '@zabra/protocol'
import { hexOf, formatZxid, type History, type SessionAttached } from '../history/records.ts'
import type { Checker, Evidence } from './checker.ts'
import { describeOperation } from './describe-operation.ts'
import { highestAcknowledgedBefore } from './highest-acknowledged.ts'

/** Rounding error of clocks, in milliseconds. */
const ROUNDING_MS = 2

export const sessions: Checker = {
  name: 'sessions',
  proves:
    'A session id is issued once, a session lives at least its timeout after the last answered request or ping, is neither served nor attached again once it has ended, and expires with its ephemeral znodes when its client is gone or never knew it.',
  check(evidence) {
    return [
      ...issuedOnce(evidence),
      ...endedForEver(evidence),
      ...neverServedAfterEnd(evidence),
      ...neverEarly(evidence),
      ...neverRefusedEarly(evidence),
      ...alwaysGone(evidence),
    ]
  },
}

function issuedOnce({ history }: Evidence): string[] {
  const seen = new Set<string>()
  return history.events
    .filter((arrival): arrival is SessionAttached => arrival.kind === 'attached' && arrival.isNew)
    .filter(({ session }) => seen.has(session) || !seen.add(session))
    .map(
      ({ session, server, at }) =>
        `Session ${session} was issued a second time, by ${server} at ${at.toFixed(1)} ms`,
    )
}

/** Checks that a session known to have ended, by a reply or a refusal, is never attached again. */
function endedForEver({ history, committed }: Evidence): string[] {
  const endedAt = new Map<string, number>()
  const wrong: string[] = []
  for (const arrival of history.events) {
    const { session } = arrival
    if (arrival.kind === 'attached' && endedAt.has(session))
      wrong.push(
        `Session ${session} was over at ${endedAt.get(session)!.toFixed(1)} ms and attached again by ${arrival.server}`,
      )
    if (arrival.kind === 'operation' && arrival.request.op === 'close' && arrival.result.err === 0)
      endedAt.set(session, arrival.returned)
    if (arrival.kind !== 'ended' || session === '0') continue
    endedAt.set(session, arrival.at)
    const known = committed.model.sessions.get(session)
    if (known !== undefined && known.ended === Infinity)
      wrong.push(
        `Session ${session} was refused by ${arrival.server} at ${arrival.at.toFixed(1)} ms, and it never ended`,
      )
  }
  return wrong
}

/** Checks that no reply shows a state of after the end of its session. */
function neverServedAfterEnd({ history, committed }: Evidence): string[] {
  const wrong: string[] = []
  for (const operation of history.operations) {
    const { outcome, result, session, zxid, isReadOnly } = operation
    if (outcome !== 'answered' || isGone(result.err) || isReadOnly === true) continue
    const ended = committed.model.sessions.get(session)?.ended ?? Infinity
    if (zxid > ended)
      wrong.push(
        `${describeOperation(operation)} is answered at ${formatZxid(zxid)}, and its session ended at ${formatZxid(ended)}`,
      )
  }
  return wrong
}

function neverEarly({ history, committed, maxClockErrorMs }: Evidence): string[] {
  if (maxClockErrorMs === undefined) return []
  const contacts = contactsOf(history)
  const timeouts = new Map<string, number>()
  for (const arrival of history.events)
    if (arrival.kind === 'attached') timeouts.set(arrival.session, arrival.timeoutMs)
  const wrong: string[] = []
  for (const { id, ended, endedWall } of committed.model.sessions.values()) {
    if (ended === Infinity) continue
    const { logged } = committed.byZxid.get(ended)!
    // The client closed it.
    if (logged.header.cxid !== 0 || hexOf(logged.header.sessionId) !== id) continue
    const timeout = timeouts.get(id)
    if (timeout === undefined) continue
    const endedAt = endedWall - WALL_START
    // Requests that arrive between the decision of the leader and its commit are answered and prolong nothing.
    const last = Math.max(0, ...(contacts.get(id) ?? []).filter((at) => at <= endedAt))
    if (endedAt + maxClockErrorMs + ROUNDING_MS < last + timeout)
      wrong.push(
        `Session ${id} with a timeout of ${timeout} ms was ended at ${formatZxid(ended)}, ${endedAt.toFixed(0)} ms, and had been answered a request of ${last.toFixed(0)} ms`,
      )
  }
  return wrong
}

/**
 * Checks the same by the clock of the world, also where wall clocks jump: a client learns that its session is over only when its
 * last answered request is older than the timeout.
 */
function neverRefusedEarly({ history, committed, maxEarlyEndMs }: Evidence): string[] {
  if (maxEarlyEndMs === undefined) return []
  const contacts = contactsOf(history)
  const closed = new Set<string>()
  for (const { request, session } of history.operations) if (request.op === 'close') closed.add(session)
  const timeouts = new Map<string, number>()
  const wrong: string[] = []
  for (const arrival of history.events) {
    const { session } = arrival
    if (arrival.kind === 'attached') timeouts.set(session, arrival.timeoutMs)
    const timeout = timeouts.get(session)
    // A local session ends with its server.
    if (arrival.kind !== 'ended' || timeout === undefined || closed.has(session)) continue
    if (!committed.model.sessions.has(session)) continue
    const last = contacts.get(session)?.findLast((at) => at <= arrival.at) ?? 0
    if (arrival.at + maxEarlyEndMs + ROUNDING_MS < last + timeout)
      wrong.push(
        `Session ${session} with a timeout of ${timeout} ms was over at ${arrival.at.toFixed(0)} ms, and had been answered a request of ${last.toFixed(0)} ms`,
      )
  }
  return wrong
}

/** Wall clock of a world at time 0. */
const WALL_START = 1_700_000_001_000

const isGone = (err: number): boolean => err === ErrorCode.SESSIONEXPIRED || err === ErrorCode.SESSIONMOVED

/** Returns, by session, when the answered requests and pings were sent, in order. */
function contactsOf({ operations, pings }: History): Map<string, number[]> {
  const contacts = new Map<string, number[]>()
  const add = (session: string, sent: number): void => {
    const known = contacts.get(session)
    if (known === undefined) contacts.set(session, [sent])
    else known.push(sent)
  }
  for (const { outcome, session, invoked, result } of operations)
    if (outcome === 'answered' && !isGone(result.err)) add(session, invoked)
  for (const { session, sent } of pings) add(session, sent)
  for (const times of contacts.values()) times.sort((a, b) => a - b)
  return contacts
}

function alwaysGone({ history, committed, silentSessions, healedAt }: Evidence): string[] {
  const wrong: string[] = []
  const attached = new Set<string>()
  for (const { kind, session } of history.events) if (kind === 'attached') attached.add(session)
  const healed = healedAt === Infinity ? 0 : highestAcknowledgedBefore(history)(healedAt)
  for (const { id, created, ended } of committed.model.sessions.values()) {
    if (ended < Infinity) continue
    if (silentSessions.has(id))
      wrong.push(`Session ${id} still exists although its client has been silent for longer than its timeout`)
    // The answer to its handshake was lost. A session of after healing may end later than the run.
    else if (created <= healed && !attached.has(id))
      wrong.push(`Session ${id} still exists although no client has ever been attached to it`)
  }
  for (const path of committed.model.existingPaths()) {
    const { owner } = committed.model.stateAt(path, Infinity)!.stat
    const known = committed.model.sessions.get(hexOf(owner))
    if (known !== undefined && known.ended < Infinity)
      wrong.push(`${path} is left of session ${known.id}, which ended at ${formatZxid(known.ended)}`)
  }
  return wrong
}
