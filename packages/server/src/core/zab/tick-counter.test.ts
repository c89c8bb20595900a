import { expect, it } from 'vitest'
import { TickCounter } from './tick-counter.ts'

it('completes a tick with every second half', () => {
  const ticks = new TickCounter()
  expect(Array.from({ length: 4 }, () => [ticks.advance(), ticks.now])).toEqual([
    [false, 0],
    [true, 1],
    [false, 1],
    [true, 2],
  ])
})
