import { replyError, type PumpOptions } from './pump.ts'
import type { RawSession } from './raw-session.ts'

/** Milliseconds between two looks at what is due. */
const TICK_MS = 1

/** All paces of the process, which one timer calls. */
const tickHandlers = new Set<() => void>()
let timer: NodeJS.Timeout | undefined

function start(turn: () => void): void {
  tickHandlers.add(turn)
  timer ??= setInterval(() => {
    for (const each of tickHandlers) each()
  }, TICK_MS)
}

function stop(turn: () => void): void {
  tickHandlers.delete(turn)
  if (tickHandlers.size > 0) return
  clearInterval(timer)
  timer = undefined
}

export interface PaceOptions extends PumpOptions {
  readonly perSecond: number
  /**
   * How far into its first interval the first request is due, from 0 to 1. Connections that all begin at once would
   * otherwise go on sending all at once, and most of the times would be those of a crowd that the load itself makes.
   */
  readonly phase: number
}

/**
 * Sends so many requests a second, whether answers come or not, up to `depth` of them in flight. Times count from the
 * moment at which a request was due, so that a server that stands still is charged for what it kept waiting.
 */
export function pace(
  session: RawSession,
  { depth, send, latency, onReply: answered = () => {}, what, signal, perSecond, phase }: PaceOptions,
): Promise<void> {
  return new Promise((resolve, reject) => {
    const began = performance.now()
    const dueAt = (index: number): number => began + ((index + phase) * 1000) / perSecond
    let [sent, back] = [0, 0]
    let more = true
    const end = (settle: () => void): void => {
      stop(turn)
      settle()
    }
    const settle = (): void => {
      if (more && !signal.aborted) return
      if (signal.aborted) end(() => reject(signal.reason as Error))
      else if (sent === back) end(resolve)
    }
    const turn = (): void => {
      const now = performance.now()
      while (more && sent - back < depth && dueAt(sent) <= now) {
        more = send(sent)
        if (more) sent++
      }
      session.flush()
      settle()
    }
    start(turn)
    session.onFailure = (cause) => end(() => reject(cause))
    session.onReply = (err) => {
      latency.add((performance.now() - dueAt(back++)) * 1000)
      if (err !== 0) return end(() => reject(replyError(what, err)))
      answered()
      settle()
    }
  })
}
