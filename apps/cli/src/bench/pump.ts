import { ErrorCode, errors } from '@zabra/protocol'
import type { Histogram } from './histogram.ts'
import type { RawSession } from './raw-session.ts'

/** A request that failed; the load is worth nothing then. */
export class LoadError extends Error {
  override readonly name = 'LoadError'
}

/** A request that was answered with an error. */
export const replyError = (what: string, err: number): LoadError =>
  new LoadError(`${what} failed with the error ${errors.get(err)?.name ?? err} of the server`)

export interface PumpOptions {
  /** Requests in flight. */
  readonly depth: number
  /** Sends request `index`, from 0 on; false when there are no more. */
  readonly send: (index: number) => boolean
  /** Takes the time of each answer in microseconds. */
  readonly latency: Pick<Histogram, 'add'>
  /** Called at each answer. */
  readonly onReply?: () => void
  /** What a failed request is called. */
  readonly what: string
  /** Whether a node that is not there is an answer like any other. */
  readonly allowMissing?: boolean
  readonly signal: AbortSignal
}

/**
 * Keeps requests in flight on a session until there are no more. Answers of one turn are followed by requests of one turn,
 * so that both sides see few packets. Rejects with a `LoadError` at the first request that fails.
 */
export function pump(
  session: RawSession,
  {
    depth,
    send,
    latency,
    onReply: answered = () => {},
    what,
    allowMissing: missing = false,
    signal,
  }: PumpOptions,
): Promise<void> {
  return new Promise((resolve, reject) => {
    // When each request in flight was sent: answers come in the order of the requests.
    const sentAt = new Float64Array(depth)
    let [sent, back] = [0, 0]
    let more = true
    let scheduled = false
    const refill = (): void => {
      scheduled = false
      const now = performance.now()
      while (more && !signal.aborted && sent - back < depth) {
        more = send(sent)
        if (more) sentAt[sent++ % depth] = now
      }
      session.flush()
      if (sent > back) return
      if (signal.aborted) reject(signal.reason as Error)
      else resolve()
    }
    session.onFailure = reject
    session.onReply = (err) => {
      latency.add((performance.now() - sentAt[back++ % depth]!) * 1000)
      if (err !== 0 && !(missing && err === ErrorCode.NONODE)) return reject(replyError(what, err))
      answered()
      if (scheduled) return
      scheduled = true
      queueMicrotask(refill)
    }
    refill()
  })
}
