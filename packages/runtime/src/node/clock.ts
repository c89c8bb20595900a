import type { Cancel, Clock } from '../clock.ts'

/** The clocks and timers of the process. Timers do not keep it alive. */
export const nodeClock: Clock = {
  wall: () => Date.now(),
  monotonic: () => performance.now(),
  after(delayMs: number, _name: string, action: () => void): Cancel {
    const timer = setTimeout(action, delayMs)
    timer.unref()
    return () => clearTimeout(timer)
  },
  soon: (action) => void setImmediate(action),
}
