import { RawSession } from './raw-session.ts'
import type { Histogram } from './histogram.ts'
import type { Control, LoadTarget } from './plan.ts'

export interface OpenOptions {
  /** Numbers of the connections; each goes to the next server of the list. */
  readonly first: number
  readonly count: number
  /** Handshakes at a time. */
  readonly concurrency: number
  readonly data: Uint8Array
  /** Takes how long each handshake took, in microseconds. */
  readonly latency?: Histogram
}

/** Opens sessions, some at a time. When one fails the others are dropped. */
export async function openSessions(
  reach: LoadTarget,
  { first, count, concurrency: together, data, latency }: OpenOptions,
  { progress, signal }: Pick<Control, 'progress' | 'signal'>,
): Promise<RawSession[]> {
  const sessions: RawSession[] = []
  let next = first
  const open = async (): Promise<void> => {
    while (next < first + count) {
      const server = reach.servers[next++ % reach.servers.length]!
      signal.throwIfAborted()
      const began = performance.now()
      sessions.push(await RawSession.open(await reach.open(server, signal), data, reach))
      latency?.add((performance.now() - began) * 1000)
      progress(1)
    }
  }
  const lanes = await Promise.allSettled(Array.from({ length: Math.min(together, count) }, open))
  const failure = lanes.find((lane) => lane.status === 'rejected')
  if (failure === undefined) return sessions
  for (const session of sessions) session.destroy()
  throw failure.reason
}

/** Ends sessions, so that nothing of them is left at the server. */
export async function closeSessions(sessions: readonly RawSession[]): Promise<void> {
  await Promise.all(sessions.map((session) => session.close()))
}
