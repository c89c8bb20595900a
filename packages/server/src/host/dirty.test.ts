// oxlint-disable no-restricted-imports -- memory is looked at through the engine
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { expect, it } from 'vitest'
import { DirtyList, SENT_IN_A_TURN, type Dirty } from './dirty.ts'

/** A list, whose later turns come when the test says so, and who was sent to, in order. */
class World {
  readonly sent: number[] = []
  readonly turns: (() => void)[] = []
  /** How many were sent to in each call of `together`. */
  readonly together: number[] = []
  readonly list = new DirtyList({
    later: (action) => this.turns.push(action),
    together: (action) => {
      const before = this.sent.length
      action()
      this.together.push(this.sent.length - before)
    },
  })

  connection(number: number, flushed: () => void = () => {}): Dirty {
    const connection: Dirty = {
      dirty: false,
      flush: () => {
        connection.dirty = false
        this.sent.push(number)
        flushed()
      },
    }
    return connection
  }

  mark(from: number, count: number): void {
    for (let number = from; number < from + count; number++) this.list.mark(this.connection(number))
  }

  /** Ends the turn; then runs one later turn, if there is one. */
  next(): void {
    this.turns.shift()?.()
    this.list.flush()
  }
}

const upTo = (count: number): number[] => Array.from({ length: count }, (_, number) => number)

it('sends to a few at the end of the turn, one after the other', () => {
  const world = new World()
  world.mark(0, 100)
  world.list.flush()
  expect(world.sent).toEqual(upTo(100))
  expect(world.together).toEqual([])
  expect(world.turns).toEqual([])
})

it('sends to many together, so many in a turn, in their order', () => {
  const world = new World()
  world.mark(0, 2 * SENT_IN_A_TURN + 1)
  world.list.flush()
  expect(world.together).toEqual([SENT_IN_A_TURN])
  world.next()
  world.next()
  expect(world.turns).toEqual([])
  expect(world.together).toEqual([SENT_IN_A_TURN, SENT_IN_A_TURN, 1])
  expect(world.sent).toEqual(upTo(2 * SENT_IN_A_TURN + 1))
})

it('sends to those of a later turn before those that wait', () => {
  const world = new World()
  world.mark(0, SENT_IN_A_TURN + 200)
  world.list.flush()
  world.mark(5000, 2)
  world.list.flush()
  expect(world.sent.slice(SENT_IN_A_TURN)).toEqual([5000, 5001])
  world.next()
  expect(world.sent.slice(SENT_IN_A_TURN + 2)).toEqual(upTo(SENT_IN_A_TURN + 200).slice(SENT_IN_A_TURN))
})

it('puts further many behind those that wait, without a second row of turns', () => {
  const world = new World()
  world.mark(0, SENT_IN_A_TURN + 100)
  world.list.flush()
  world.mark(SENT_IN_A_TURN + 100, 300)
  world.list.flush()
  expect(world.turns).toHaveLength(1)
  world.next()
  expect(world.turns).toEqual([])
  expect(world.sent).toEqual(upTo(SENT_IN_A_TURN + 400))
})

it('begins anew when those who waited are through', () => {
  const world = new World()
  for (let round = 0; round < 3; round++) {
    world.mark(0, SENT_IN_A_TURN + 1)
    world.list.flush()
    world.next()
  }
  expect(world.sent).toHaveLength(3 * (SENT_IN_A_TURN + 1))
  expect(world.turns).toEqual([])
})

it('does not keep those that it has sent to, although others always wait', async () => {
  const world = new World()
  const sentTo: WeakRef<Dirty>[] = []
  const markMany = (): void => {
    for (let number = 0; number < SENT_IN_A_TURN; number++) {
      const connection = world.connection(number)
      if (number === 0) sentTo.push(new WeakRef(connection))
      world.list.mark(connection)
    }
    world.list.flush()
  }
  markMany()
  world.mark(0, SENT_IN_A_TURN + 1)
  for (let round = 0; round < 5; round++) {
    markMany()
    world.next()
  }
  expect(world.turns).toHaveLength(1)
  // References are kept until the end of the turn in which they were made.
  await new Promise((resolve) => setImmediate(resolve))
  setFlagsFromString('--expose-gc')
  const collect = runInNewContext('gc') as () => void
  collect()
  expect(sentTo.map((reference) => reference.deref() === undefined)).toEqual([...Array(5).fill(true), false])
})

it('has a connection once, however often it is marked, and again when it is marked while it is sent to', () => {
  const world = new World()
  let again = true
  const one = world.connection(1, () => {
    if (again) world.list.mark(one)
    again = false
  })
  world.list.mark(one)
  world.list.mark(one)
  world.list.flush()
  expect(world.sent).toEqual([1, 1])
})
