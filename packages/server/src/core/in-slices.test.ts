import { ManualClock } from '@zabra/runtime'
import { expect, it } from 'vitest'
import { inSlices } from './in-slices.ts'

const DONE = -1

/** Handles `count` items, each of which takes `eachMs` milliseconds. Returns the items of each turn. */
function itemsByTurn(count: number, eachMs: number): number[][] {
  const clock = new ManualClock()
  const turns: number[][] = [[]]
  let next: (() => void) | undefined
  inSlices(
    Array.from({ length: count }, (_, index) => index),
    (item) => {
      turns.at(-1)!.push(item)
      clock.advance(eachMs)
    },
    { now: () => clock.monotonic(), runLater: (action) => (next = action), done: () => turns.push([DONE]) },
  )
  while (next !== undefined) {
    const action = next
    next = undefined
    turns.push([])
    action()
  }
  expect(turns.pop()).toEqual([DONE])
  return turns.filter((turn) => turn.length > 0)
}

it('handles a hundred items in a turn, in their order', () => {
  const turns = itemsByTurn(250, 0)
  expect(turns.map((turn) => turn.length)).toEqual([100, 100, 50])
  expect(turns.flat()).toEqual(Array.from({ length: 250 }, (_, index) => index))
})

it('handles fewer items in a turn when each takes long, and at least one', () => {
  expect(itemsByTurn(9, 0.5).map((turn) => turn.length)).toEqual([4, 4, 1])
  expect(itemsByTurn(3, 50).map((turn) => turn.length)).toEqual([1, 1, 1])
})

it('handles no more items once one of them says so', () => {
  const handled: number[] = []
  let isDone = false
  const turns = { now: () => 0, runLater: () => {}, done: () => void (isDone = true) }
  inSlices([1, 2, 3], (item) => handled.push(item) < 2, turns)
  expect([handled, isDone]).toEqual([[1, 2], true])
})

it('is done at once when there is no item', () => {
  expect(itemsByTurn(0, 1)).toEqual([])
})

it('leaves out items of a set that are deleted before their turn', () => {
  const items = new Set(Array.from({ length: 150 }, (_, index) => index))
  const handled: number[] = []
  let next = (): void => {}
  const turns = { now: () => 0, runLater: (slice: () => void) => void (next = slice), done: () => {} }
  inSlices(items, (item) => void handled.push(item), turns)
  for (let item = 90; item < 149; item++) items.delete(item)
  next()
  expect(handled).toEqual([...Array.from({ length: 100 }, (_, index) => index), 149])
})
