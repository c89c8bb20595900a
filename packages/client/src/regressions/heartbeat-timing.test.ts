import { ManualClock } from '@zabra/runtime'
import { expect, it } from 'vitest'
import { Heartbeat } from '../session/heartbeat.ts'
import type { FramedConnection } from '../session/framed-connection.ts'

it.each([1000, 2000, 4000, 5000, 10_000, 40_000])(
  'timeout %i ms: the heartbeat timer never fires repeatedly without delay',
  (timeout) => {
    for (let start = 1000; start < 1200; start += 0.7) {
      const clock = new ManualClock({ monotonic: start })
      let timers = 0
      const after = clock.after.bind(clock)
      clock.after = (ms, name, action) => {
        // A silent connection needs one ping and one disconnect.
        if (++timers > 20)
          throw new Error(`the timer spins at ${clock.monotonic()} (connected at ${start}, in ${ms} ms)`)
        return after(ms, name, action)
      }
      let hasFailed = false
      const connection: Pick<FramedConnection, 'lastSentAt' | 'lastReceivedAt' | 'ping' | 'fail'> = {
        lastSentAt: start,
        lastReceivedAt: start,
        ping: () => {},
        fail: () => {
          hasFailed = true
          heartbeat.stop()
        },
      }
      const heartbeat = new Heartbeat(clock, { onStall: () => {} })
      heartbeat.start(connection as FramedConnection, timeout)
      clock.advance(timeout)
      expect(hasFailed).toBe(true)
    }
  },
)
