import { ManualClock } from '@zabra/runtime'
import { expect, it } from 'vitest'
import { pauseAfter } from './pause.ts'

it('a pause comes once the time is over, in a later turn, and again after the same time', async () => {
  const clock = new ManualClock()
  const pause = pauseAfter(clock, 3)
  for (let round = 0; round < 2; round++) {
    clock.advance(2)
    expect(pause()).toBeUndefined()
    clock.advance(1)
    const pausing = pause()
    expect(pausing).toBeInstanceOf(Promise)
    await clock.untilIdle()
    await pausing
  }
})

it('a pause ends the work where its check throws', () => {
  const pause = pauseAfter(new ManualClock(), 3, () => {
    throw new Error('stopped')
  })
  expect(pause).toThrow('stopped')
})
