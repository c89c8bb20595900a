import { replyError, type PumpOptions } from './pump.ts'
import type { RawSession } from './raw-session.ts'

/** Milliseconds between two checks for due requests. */
const TICK_MS = 1

/** Tick handlers of all paced connections; they share one timer. */
const tickHandlers = new Set<() => void>()
let timer: NodeJS.Timeout | undefined

function start(tick: () => void): void {
  tickHandlers.add(tick)
  timer ??= setInterval(() => {
    for (const each of tickHandlers) each()
  }, TICK_MS)
}

function stop(tick: () => void): void {
  tickHandlers.delete(tick)
  if (tickHandlers.size > 0) return
  clearInterval(timer)
  timer = undefined
}

export interface PaceOptions extends PumpOptions {
  readonly perSecond: number
  /**
   * Offset of the first request within its interval, from 0 to 1. Without it all connections would send at the same
   * moments, and most latencies would be those of bursts that the load itself causes.
   */
  readonly phase: number
}

/**
 * Sends requests at a fixed rate, independent of replies, with at most `depth` in flight. Latency counts from the time at which a
 * request was due, so that a stalled server is charged for the requests it has delayed (no coordinated omission).
 */
export function pace(
  session: RawSession,
  { depth, send, latency, onReply = () => {}, what, signal, perSecond, phase }: PaceOptions,
): Promise<void> {
  return new Promise((resolve, reject) => {
    const began = performance.now()
    const dueAt = (index: number): number => began + ((index + phase) * 1000) / perSecond
    let [sent, received] = [0, 0]
    let more = true
    const end = (settle: () => void): void => {
      stop(tick)
      settle()
    }
    const settle = (): void => {
      if (more && !signal.aborted) return
      if (signal.aborted) end(() => reject(signal.reason as Error))
      else if (sent === received) end(resolve)
    }
    const tick = (): void => {
      const now = performance.now()
      while (more && sent - received < depth && dueAt(sent) <= now) {
        more = send(sent)
        if (more) sent++
      }
      session.flush()
      settle()
    }
    start(tick)
    session.onFailure = (cause) => end(() => reject(cause))
    session.onReply = (err) => {
      latency.add((performance.now() - dueAt(received++)) * 1000)
      if (err !== 0) return end(() => reject(replyError(what, err)))
      onReply()
      settle()
    }
  })
}
