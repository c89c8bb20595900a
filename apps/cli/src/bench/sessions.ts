import { RawSession } from './raw-session.ts'
import type { Histogram } from './histogram.ts'
import type { Control, LoadTarget } from './plan.ts'

export interface OpenOptions {
  /** Index of the first connection; connections are distributed round-robin over the servers. */
  readonly first: number
  readonly count: number
  /** Number of concurrent handshakes. */
  readonly concurrency: number
  readonly data: Uint8Array
  /** Receives the duration of each handshake in microseconds. */
  readonly latency?: Histogram
}

/** Opens sessions, `concurrency` at a time. When one fails, closes the connections of the others and rejects. */
export async function openSessions(
  target: LoadTarget,
  { first, count, concurrency, data, latency }: OpenOptions,
  { progress, signal }: Pick<Control, 'progress' | 'signal'>,
): Promise<RawSession[]> {
  const sessions: RawSession[] = []
  let next = first
  const open = async (): Promise<void> => {
    while (next < first + count) {
      const server = target.servers[next++ % target.servers.length]!
      signal.throwIfAborted()
      const began = performance.now()
      sessions.push(await RawSession.open(await target.open(server, signal), data, target))
      latency?.add((performance.now() - began) * 1000)
      progress(1)
    }
  }
  const lanes = await Promise.allSettled(Array.from({ length: Math.min(concurrency, count) }, open))
  const failure = lanes.find((lane) => lane.status === 'rejected')
  if (failure === undefined) return sessions
  for (const session of sessions) session.destroy()
  throw failure.reason
}

/** Closes sessions and waits until the server has removed them. */
export async function closeSessions(sessions: readonly RawSession[]): Promise<void> {
  await Promise.all(sessions.map((session) => session.close()))
}
