import type { Cancel, Clock } from '../clock.ts'

/** The longest delay that the platform's timers know. */
const LONGEST_MS = 2 ** 31 - 1

/** The clocks and timers of the process. Timers do not keep it alive. */
export const nodeClock: Clock = clockOf(false)

/** The same, with timers that keep the process alive: for whoever waits for something that a timer brings. */
export const keepAliveNodeClock: Clock = clockOf(true)

function clockOf(wakeful: boolean): Clock {
  function after(delayMs: number, name: string, action: () => void): Cancel {
    // A longer delay would run at once, so it is waited for in parts.
    if (delayMs > LONGEST_MS) {
      let cancel = after(LONGEST_MS, name, () => (cancel = after(delayMs - LONGEST_MS, name, action)))
      return () => cancel()
    }
    return begun(delayMs, action)
  }
  // Apart from the above, so that what cancels a timer keeps nothing but the timer.
  function begun(delayMs: number, action: () => void): Cancel {
    const timer = setTimeout(action, delayMs)
    if (!wakeful) timer.unref()
    return () => clearTimeout(timer)
  }
  return {
    wall: () => Date.now(),
    monotonic: () => performance.now(),
    after,
    immediate: (action) => void setImmediate(action),
    // Node runs these between two turns, each time after the promises have come to rest.
    afterMicrotasks: (action) => process.nextTick(action),
  }
}
