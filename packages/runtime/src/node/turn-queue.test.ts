import { expect, it, onTestFinished, vi } from 'vitest'
import { TurnQueue } from './turn-queue.ts'

/** Queues with turns of two milliseconds, whose steps take one and note their names. */
class Fixture {
  #now = 0
  #turns: (() => void)[] = []
  #ran = ''

  constructor() {
    const clock = vi.spyOn(performance, 'now').mockImplementation(() => this.#now)
    const immediate = vi
      .spyOn(globalThis, 'setImmediate')
      .mockImplementation(((turn: () => void) => this.#turns.push(turn)) as never)
    onTestFinished(() => {
      clock.mockRestore()
      immediate.mockRestore()
    })
  }

  step(name: string, action = (): void => {}): () => void {
    return () => {
      this.#now++
      this.#ran += name
      action()
    }
  }

  /** Returns the names of the steps that have run since the last call. */
  ran(): string {
    const ran = this.#ran
    this.#ran = ''
    return ran
  }

  /** Begins the turns that are due. Returns what ran in each of them, until there are none. */
  turns(): string[] {
    const ran: string[] = []
    while (this.#turns.length > 0) {
      for (const turn of this.#turns.splice(0)) turn()
      ran.push(this.ran())
    }
    return ran
  }

  /** Begins one turn, which may throw. */
  turn(): void {
    this.#turns.shift()!()
  }
}

it('steps run in order: in this turn while there is time, and then in later ones', () => {
  const fixture = new Fixture()
  const queue = new TurnQueue(2)
  for (const name of 'abcde') queue.run(fixture.step(name))
  expect([fixture.ran(), ...fixture.turns()]).toEqual(['ab', 'cd', 'e', ''])
  queue.run(fixture.step('f'))
  expect([fixture.ran(), ...fixture.turns()]).toEqual(['f', ''])
})

it('a step that is new waits behind those that wait, also where there is time', () => {
  const fixture = new Fixture()
  const queue = new TurnQueue(2)
  queue.runLater(fixture.step('a'))
  queue.run(fixture.step('b'))
  expect([fixture.ran(), ...fixture.turns()]).toEqual(['', 'ab', ''])
})

it('steps that run in the time of those that have waited leave no more to new ones', () => {
  const fixture = new Fixture()
  const queue = new TurnQueue(2)
  for (const name of 'ab') queue.runLater(fixture.step(name))
  fixture.turn()
  queue.run(fixture.step('c'))
  expect([fixture.ran(), ...fixture.turns()]).toEqual(['ab', 'c', ''])
})

it('at most a number of steps that have waited run in a turn', () => {
  const fixture = new Fixture()
  const queue = new TurnQueue(2, 1)
  for (const name of 'abc') queue.runLater(fixture.step(name))
  expect(fixture.turns()).toEqual(['a', 'b', 'c', ''])
})

it('a step may add others, itself and one that is dropped, and none of them holds the turn', () => {
  const fixture = new Fixture()
  const queue = new TurnQueue(2)
  let left = 3
  const dropped = fixture.step('x')
  const again = fixture.step('a', () => {
    if (--left === 0) return
    queue.runLater(again)
    queue.run(dropped)
    queue.drop(dropped)
  })
  queue.runLater(again)
  queue.runLater(fixture.step('b'))
  expect(fixture.turns()).toEqual(['ab', 'aa', ''])
})

it('the steps behind one that throws run in a later turn', () => {
  const fixture = new Fixture()
  const queue = new TurnQueue(9)
  queue.runLater(
    fixture.step('a', () => {
      throw new Error('broken')
    }),
  )
  queue.runLater(fixture.step('b'))
  expect(() => fixture.turn()).toThrow('broken')
  queue.run(fixture.step('c'))
  expect([fixture.ran(), ...fixture.turns()]).toEqual(['a', 'bc', ''])
})

it('queues have times of their own', () => {
  const fixture = new Fixture()
  const [queue, other] = [new TurnQueue(1), new TurnQueue(2)]
  queue.run(fixture.step('a'))
  queue.run(fixture.step('b'))
  other.run(fixture.step('c'))
  expect([fixture.ran(), ...fixture.turns()]).toEqual(['ac', 'b', ''])
})
