import { failure, type PumpOptions } from './pump.ts'
import type { RawSession } from './raw-session.ts'

/** Milliseconds between two looks at what is due. */
const TURN_MS = 1

/**
 * Sends so many requests a second, whether answers come or not, up to `depth` of them in flight. Times count from the
 * moment at which a request was due, so that a server that stands still is charged for what it kept waiting.
 */
export function pace(
  session: RawSession,
  { depth, send, latency, answered = () => {}, what, signal, perSecond }: PumpOptions & { perSecond: number },
): Promise<void> {
  return new Promise((resolve, reject) => {
    const began = performance.now()
    const dueAt = (index: number): number => began + ((index + 1) * 1000) / perSecond
    let [sent, back] = [0, 0]
    let more = true
    const end = (settle: () => void): void => {
      clearInterval(timer)
      settle()
    }
    const settle = (): void => {
      if (more && !signal.aborted) return
      if (signal.aborted) end(() => reject(signal.reason as Error))
      else if (sent === back) end(resolve)
    }
    const timer = setInterval(() => {
      const now = performance.now()
      while (more && sent - back < depth && dueAt(sent) <= now) {
        more = send(sent)
        if (more) sent++
      }
      session.flush()
      settle()
    }, TURN_MS)
    session.failed = (cause) => end(() => reject(cause))
    session.answered = (err) => {
      latency.add((performance.now() - dueAt(back++)) * 1000)
      if (err !== 0) return end(() => reject(failure(what, err)))
      answered()
      settle()
    }
  })
}
