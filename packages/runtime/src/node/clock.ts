import type { Cancel, Clock } from '../clock.ts'

/** The longest delay of Node's timers. */
const MAX_DELAY_MS = 2 ** 31 - 1

/** The clock of the process. Its timers do not keep the process alive. */
export const nodeClock: Clock = clockOf(false)

/** As `nodeClock`, with timers that keep the process alive. */
export const keepAliveNodeClock: Clock = clockOf(true)

function clockOf(keepsAlive: boolean): Clock {
  function after(delayMs: number, name: string, action: () => void): Cancel {
    // Node runs timers with a longer delay at once, so the delay is split.
    if (delayMs > MAX_DELAY_MS) {
      let cancel = after(MAX_DELAY_MS, name, () => (cancel = after(delayMs - MAX_DELAY_MS, name, action)))
      return () => cancel()
    }
    return start(delayMs, action)
  }
  // A separate function, so that the closure that cancels a timer holds nothing but the timer.
  function start(delayMs: number, action: () => void): Cancel {
    const timer = setTimeout(action, delayMs)
    if (!keepsAlive) timer.unref()
    return () => clearTimeout(timer)
  }
  return {
    wall: () => Date.now(),
    monotonic: () => performance.now(),
    after,
    immediate: (action) => void setImmediate(action),
    // Node runs these when the queue of microtasks is empty.
    afterMicrotasks: (action) => process.nextTick(action),
  }
}
