import { ManualClock } from '@zabra/runtime'
import { expect, it } from 'vitest'
import { SlicedWork } from './sliced-work.ts'

it('the work of many connections takes 3 ms of a turn together, and each has its step before another has its next one', () => {
  let now = 0
  const clock = Object.assign(new ManualClock(), { monotonic: () => now })
  const due: (() => void)[] = []
  const work = new SlicedWork(clock, (action) => void due.push(action))
  const steps: number[] = []
  for (let connection = 0; connection < 10; connection++) {
    let left = 3
    work.add(() => {
      now += 1
      steps.push(connection)
      return --left > 0
    })
  }
  const turns: number[] = []
  while (due.length > 0) {
    const began = now
    expect(due).toHaveLength(1)
    due.shift()!()
    turns.push(now - began)
  }
  expect(Math.max(...turns)).toBeLessThanOrEqual(3)
  expect(steps).toEqual([0, 1, 2].flatMap(() => [0, 1, 2, 3, 4, 5, 6, 7, 8, 9]))
})

it('one work has one step in a turn', () => {
  const due: (() => void)[] = []
  const work = new SlicedWork(new ManualClock(), (action) => void due.push(action))
  let left = 5
  work.add(() => --left > 0)
  for (let turn = 4; turn >= 0; turn--) {
    due.shift()!()
    expect(left).toBe(turn)
  }
  expect(due).toEqual([])
})
