import type { Cancel, Clock } from '../clock.ts'

/** The longest delay that the platform's timers know. */
const LONGEST_MS = 2 ** 31 - 1

/** The clocks and timers of the process. Timers do not keep it alive. */
export const nodeClock: Clock = {
  wall: () => Date.now(),
  monotonic: () => performance.now(),
  after(delayMs: number, name: string, action: () => void): Cancel {
    // A longer delay would run at once, so it is waited for in parts.
    if (delayMs > LONGEST_MS) {
      let cancel = nodeClock.after(
        LONGEST_MS,
        name,
        () => (cancel = nodeClock.after(delayMs - LONGEST_MS, name, action)),
      )
      return () => cancel()
    }
    const timer = setTimeout(action, delayMs)
    timer.unref()
    return () => clearTimeout(timer)
  },
  soon: (action) => void setImmediate(action),
}
