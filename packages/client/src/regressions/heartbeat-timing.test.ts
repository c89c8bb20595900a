import { ManualClock } from '@zabra/runtime'
import { expect, it } from 'vitest'
import { Heartbeat } from '../session/heartbeat.ts'
import type { FramedConnection } from '../session/framed-connection.ts'

it.each([1000, 2000, 4000, 5000, 10_000, 40_000])(
  'T = %i ms: the timer never falls due at once, over and over',
  (timeout) => {
    for (let start = 1000; start < 1200; start += 0.7) {
      const clock = new ManualClock({ monotonic: start })
      let timers = 0
      const after = clock.after.bind(clock)
      clock.after = (ms, name, action) => {
        // One ping and one end are all that a silent connection needs.
        if (++timers > 20)
          throw new Error(`the timer spins at ${clock.monotonic()} (connected at ${start}, in ${ms} ms)`)
        return after(ms, name, action)
      }
      let over = false
      const wire = {
        lastSent: start,
        lastHeard: start,
        ping: () => {},
        fail: () => {
          over = true
          heartbeat.stop()
        },
      }
      const heartbeat = new Heartbeat(clock, { onStall: () => {} })
      heartbeat.start(wire as unknown as FramedConnection, timeout)
      clock.advance(timeout)
      expect(over).toBe(true)
    }
  },
)
