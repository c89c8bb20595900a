import { ManualClock, type Clock } from '@zabra/runtime'
import { expect, it } from 'vitest'
import { warmUp } from './warm-up.ts'

it('the warm-up runs in short turns of their own, and ends', async () => {
  const clock = new ManualClock()
  let turns = 0
  const counted: Pick<Clock, 'immediate'> = { immediate: (action) => (turns++, clock.immediate(action)) }
  warmUp(counted)
  expect(turns).toBe(1)
  for (let last = 0; last !== turns;) {
    last = turns
    clock.advance(0)
  }
  expect(turns).toBe(100)
})
