import { expect, it } from 'vitest'
import { LaterTurns } from './later-turns.ts'

function fixture() {
  const state = { now: 0, ran: [] as string[] }
  const due: (() => void)[] = []
  const turns = new LaterTurns({
    clock: { monotonic: () => state.now, immediate: (action) => void due.push(action) },
    runTurn: (action) => {
      turns.began(state.now)
      action()
    },
  })
  const add = (name: string, ms: number, then?: () => void): void =>
    turns.add(() => {
      state.ran.push(name)
      state.now += ms
      then?.()
    }, state.now)
  /** Runs the later turns of one iteration of the event loop, after sockets that took `ms` of it. Returns the actions that ran. */
  const iterate = (ms = 0): string => {
    state.ran = []
    if (ms > 0) turns.began(state.now)
    state.now += ms
    for (const run of due.splice(0)) run()
    return state.ran.join('')
  }
  return { add, iterate, due, state }
}

it('turns run in their order, as many in an iteration of the event loop as fit into 2 ms', () => {
  const { add, iterate, due } = fixture()
  for (const name of 'abcdefg') add(name, 0.7)
  expect([due.length, iterate(), iterate(), iterate(), due.length]).toEqual([1, 'abc', 'def', 'g', 0])
})

it('a turn that is added by another one runs in the next iteration, behind those that wait', () => {
  const { add, iterate, due } = fixture()
  add('a', 1, () => add('d', 0))
  add('b', 3)
  add('c', 0)
  expect([iterate(), due.length, iterate(), due.length]).toEqual(['ab', 1, 'cd', 0])
})

it('a turn after sockets that have taken the time of their iteration waits for the next one, and no longer', () => {
  const { add, iterate, due } = fixture()
  add('a', 3)
  add('b', 3)
  expect([5, 5, 5, 5].map(iterate)).toEqual(['', 'a', '', 'b'])
  expect(due).toEqual([])
  add('c', 0)
  expect([iterate(1), due.length]).toEqual(['c', 0])
})

it('a turn is not put off by what came before the event that it follows', () => {
  const { add, iterate, state } = fixture()
  add('a', 0)
  iterate()
  state.now = 50
  add('b', 0)
  expect(iterate(1)).toBe('b')
})
