import { ManualClock } from '@zabra/runtime'
import { expect, it } from 'vitest'
import type { Session } from '../core/sessions/index.ts'
import type { ClientService } from './client-service.ts'
import { endSessionsInSlices } from './session-expiry.ts'

/** Ends sessions, each of which takes so many milliseconds, and gives their numbers, turn by turn. */
function turnsOf(count: number, eachMs: number): number[][] {
  const clock = new ManualClock()
  const turns: number[][] = []
  let next: (() => void) | undefined
  const core = { ports: { clock }, turnTime: 0, later: (action: () => void) => (next = action) }
  const begin = (): void => {
    core.turnTime = clock.monotonic()
    turns.push([])
  }
  const sessions = Array.from({ length: count }, (_, id) => ({ id }))
  begin()
  endSessionsInSlices(core as unknown as ClientService, sessions as unknown as Session[], (session) => {
    turns.at(-1)!.push(Number(session.id))
    clock.advance(eachMs)
  })
  while (next !== undefined) {
    const action = next
    next = undefined
    begin()
    action()
  }
  return turns.filter((turn) => turn.length > 0)
}

it('ends a hundred sessions in a turn, in their order', () => {
  const turns = turnsOf(250, 0)
  expect(turns.map((turn) => turn.length)).toEqual([100, 100, 50])
  expect(turns.flat()).toEqual(Array.from({ length: 250 }, (_, id) => id))
})

it('ends fewer where they take time, and one in a turn at least', () => {
  expect(turnsOf(9, 0.5).map((turn) => turn.length)).toEqual([4, 4, 1])
  expect(turnsOf(3, 50).map((turn) => turn.length)).toEqual([1, 1, 1])
})

it('ends none where none is over', () => {
  expect(turnsOf(0, 1)).toEqual([])
})
