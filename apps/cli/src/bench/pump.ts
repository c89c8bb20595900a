import { ErrorCode, errors } from '@zabra/protocol'
import type { Histogram } from './histogram.ts'
import type { RawSession } from './raw-session.ts'

/** A failed request, which makes the measurement invalid. */
export class LoadError extends Error {
  override readonly name = 'LoadError'
}

/** Returns the error for a request that the server has answered with an error code. */
export const replyError = (what: string, err: number): LoadError =>
  new LoadError(`${what} failed with the error ${errors.get(err)?.name ?? err} of the server`)

export interface PumpOptions {
  /** Requests in flight. */
  readonly depth: number
  /** Sends request `index`, from 0 on; returns false when there are no more. */
  readonly send: (index: number) => boolean
  /** Receives the latency of each reply in microseconds. */
  readonly latency: Pick<Histogram, 'add'>
  /** Called for each reply. */
  readonly onReply?: () => void
  /** Name of the requests in error messages. */
  readonly what: string
  /** Whether `NONODE` counts as success. */
  readonly allowMissing?: boolean
  readonly signal: AbortSignal
}

/**
 * Keeps `depth` requests in flight on a session until there are no more. Sends one batch of requests after each batch of replies,
 * so that both sides handle few packets. Rejects with a `LoadError` at the first failed request.
 */
export function pump(
  session: RawSession,
  { depth, send, latency, onReply = () => {}, what, allowMissing = false, signal }: PumpOptions,
): Promise<void> {
  return new Promise((resolve, reject) => {
    // Send times of the requests in flight; replies come in the order of the requests.
    const sentAt = new Float64Array(depth)
    let [sent, received] = [0, 0]
    let more = true
    let isScheduled = false
    const refill = (): void => {
      isScheduled = false
      const now = performance.now()
      while (more && !signal.aborted && sent - received < depth) {
        more = send(sent)
        if (more) sentAt[sent++ % depth] = now
      }
      session.flush()
      if (sent > received) return
      if (signal.aborted) reject(signal.reason as Error)
      else resolve()
    }
    session.onFailure = reject
    session.onReply = (err) => {
      latency.add((performance.now() - sentAt[received++ % depth]!) * 1000)
      if (err !== 0 && !(allowMissing && err === ErrorCode.NONODE)) return reject(replyError(what, err))
      onReply()
      if (isScheduled) return
      isScheduled = true
      queueMicrotask(refill)
    }
    refill()
  })
}
