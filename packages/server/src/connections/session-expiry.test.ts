import { ManualClock } from '@zabra/runtime'
import { describe, expect, it } from 'vitest'
import type { Session } from '../core/sessions/index.ts'
import { closeInSlices } from './session-expiry.ts'

/** Closes `count` sessions, each of which takes `eachMs` milliseconds. Returns the ids of the sessions closed in each turn. */
function closedByTurn(count: number, eachMs: number): number[][] {
  const clock = new ManualClock()
  const turns: number[][] = [[]]
  let next: (() => void) | undefined
  const sessions = Array.from({ length: count }, (_, id) => ({ id }))
  closeInSlices(
    sessions as unknown as Session[],
    ({ id }) => {
      turns.at(-1)!.push(Number(id))
      clock.advance(eachMs)
    },
    { now: () => clock.monotonic(), runLater: (action) => (next = action) },
  )
  while (next !== undefined) {
    const action = next
    next = undefined
    turns.push([])
    action()
  }
  return turns.filter((turn) => turn.length > 0)
}

describe('closeInSlices', () => {
  it('closes a hundred sessions in a turn, in their order', () => {
    const turns = closedByTurn(250, 0)
    expect(turns.map((turn) => turn.length)).toEqual([100, 100, 50])
    expect(turns.flat()).toEqual(Array.from({ length: 250 }, (_, id) => id))
  })

  it('closes fewer sessions in a turn when each takes long, and at least one', () => {
    expect(closedByTurn(9, 0.5).map((turn) => turn.length)).toEqual([4, 4, 1])
    expect(closedByTurn(3, 50).map((turn) => turn.length)).toEqual([1, 1, 1])
  })

  it('closes nothing when no session has expired', () => {
    expect(closedByTurn(0, 1)).toEqual([])
  })
})
