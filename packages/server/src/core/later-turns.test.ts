import { expect, it } from 'vitest'
import { LaterTurns } from './later-turns.ts'

function fixture() {
  let now = 0
  let ran = ''
  const due: (() => void)[] = []
  const turns = new LaterTurns({
    clock: { monotonic: () => now, immediate: (action) => void due.push(action) },
    runTurn: (action) => action(),
  })
  const add = (name: string, ms: number, then?: () => void): void =>
    turns.add(() => {
      ran += name
      now += ms
      then?.()
    })
  /** Runs the later turns of one iteration of the event loop. Returns the names of those that ran. */
  const iterate = (): string => {
    ran = ''
    for (const run of due.splice(0)) run()
    return ran
  }
  return { turns, add, iterate, due }
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

it('a turn that is run passes on what its function returns or throws', async () => {
  const { turns, iterate } = fixture()
  const [made, failed] = [turns.run(() => 1), turns.run(() => JSON.parse('') as number)]
  iterate()
  await expect(made).resolves.toBe(1)
  await expect(failed).rejects.toThrow(SyntaxError)
})
