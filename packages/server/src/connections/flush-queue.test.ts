// oxlint-disable no-restricted-imports -- memory is looked at through the engine
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { expect, it } from 'vitest'
import { FlushQueue, NOTIFIED_PER_TURN, type Flushable } from './flush-queue.ts'

/** A list, whose later turns come when the test says so, and who was sent to, in order. */
class World {
  readonly sent: number[] = []
  readonly turns: (() => void)[] = []
  /** How many were sent to in each call of `together`. */
  readonly together: number[] = []
  readonly list = new FlushQueue({
    runLater: (action) => this.turns.push(action),
    together: (action) => {
      const before = this.sent.length
      action()
      this.together.push(this.sent.length - before)
    },
  })

  connection(number: number, flushed: () => void = () => {}): Flushable {
    const connection: Flushable = {
      isFlushQueued: false,
      isNotifyQueued: false,
      flush: () => {
        this.sent.push(number)
        flushed()
      },
    }
    return connection
  }

  tell(from: number, count: number): void {
    for (let number = from; number < from + count; number++) this.list.notify(this.connection(number))
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
  world.tell(0, 100)
  world.list.flush()
  expect(world.sent).toEqual(upTo(100))
  expect(world.together).toEqual([])
  expect(world.turns).toEqual([])
})

it('sends to many together, so many in a turn, in their order', () => {
  const world = new World()
  world.tell(0, 2 * NOTIFIED_PER_TURN + 1)
  world.list.flush()
  expect(world.together).toEqual([NOTIFIED_PER_TURN])
  world.next()
  world.next()
  expect(world.turns).toEqual([])
  // One alone is no case for it.
  expect(world.together).toEqual([NOTIFIED_PER_TURN, NOTIFIED_PER_TURN])
  expect(world.sent).toEqual(upTo(2 * NOTIFIED_PER_TURN + 1))
})

it('sends to those of a later turn before those that wait', () => {
  const world = new World()
  world.tell(0, NOTIFIED_PER_TURN + 200)
  world.list.flush()
  world.tell(5000, 2)
  world.list.flush()
  expect(world.sent.slice(NOTIFIED_PER_TURN)).toEqual([5000, 5001])
  world.next()
  expect(world.sent.slice(NOTIFIED_PER_TURN + 2)).toEqual(
    upTo(NOTIFIED_PER_TURN + 200).slice(NOTIFIED_PER_TURN),
  )
})

it('puts further many behind those that wait, without a second row of turns', () => {
  const world = new World()
  world.tell(0, NOTIFIED_PER_TURN + 100)
  world.list.flush()
  world.tell(NOTIFIED_PER_TURN + 100, 300)
  world.list.flush()
  expect(world.turns).toHaveLength(1)
  world.next()
  expect(world.turns).toEqual([])
  expect(world.sent).toEqual(upTo(NOTIFIED_PER_TURN + 400))
})

it('sends to those that are marked at the end of the turn, however many they are and whoever waits', () => {
  const world = new World()
  world.tell(1000, NOTIFIED_PER_TURN + 1)
  for (const number of upTo(NOTIFIED_PER_TURN + 1)) world.list.add(world.connection(number))
  world.list.flush()
  expect(world.sent.slice(NOTIFIED_PER_TURN)).toEqual(upTo(NOTIFIED_PER_TURN + 1))
  expect(world.together).toEqual([NOTIFIED_PER_TURN, NOTIFIED_PER_TURN + 1])
})

it('sends to one that waits when it is marked, and has it in the row once whatever it is told', () => {
  const world = new World()
  const one = world.connection(5000)
  world.tell(0, NOTIFIED_PER_TURN)
  world.list.notify(one)
  world.list.flush()
  for (let round = 0; round < 2; round++) {
    world.list.add(one)
    world.list.notify(one)
    world.list.flush()
    world.list.notify(one)
    world.list.flush()
  }
  expect(world.sent.slice(NOTIFIED_PER_TURN)).toEqual([5000, 5000])
  world.next()
  expect(world.sent.slice(NOTIFIED_PER_TURN)).toEqual([5000, 5000, 5000])
  world.list.notify(one)
  world.list.flush()
  expect(world.sent.slice(NOTIFIED_PER_TURN)).toEqual([5000, 5000, 5000, 5000])
  expect(world.turns).toEqual([])
})

it('sends once to one that is marked and then told', () => {
  const world = new World()
  const one = world.connection(1)
  world.list.add(one)
  world.list.notify(one)
  world.list.flush()
  expect(world.sent).toEqual([1])
})

it('begins anew when those who waited are through', () => {
  const world = new World()
  for (let round = 0; round < 3; round++) {
    world.tell(0, NOTIFIED_PER_TURN + 1)
    world.list.flush()
    world.next()
  }
  expect(world.sent).toHaveLength(3 * (NOTIFIED_PER_TURN + 1))
  expect(world.turns).toEqual([])
})

it('does not keep those that it has sent to, although others always wait', async () => {
  const world = new World()
  const sentTo: WeakRef<Flushable>[] = []
  const tellMany = (): void => {
    for (let number = 0; number < NOTIFIED_PER_TURN; number++) {
      const connection = world.connection(number)
      if (number === 0) sentTo.push(new WeakRef(connection))
      world.list.notify(connection)
    }
    world.list.flush()
  }
  tellMany()
  world.tell(0, NOTIFIED_PER_TURN + 1)
  for (let round = 0; round < 5; round++) {
    tellMany()
    world.next()
  }
  expect(world.turns).toHaveLength(1)
  // References are kept until the end of the turn in which they were made.
  await new Promise((resolve) => setImmediate(resolve))
  setFlagsFromString('--expose-gc')
  const collect = runInNewContext('gc') as () => void
  collect()
  const forgotten = sentTo.slice(0, -1).map((reference) => reference.deref() === undefined)
  expect(forgotten).toEqual(Array(5).fill(true))
})

it('has a connection once, however often it is marked, and again when it is marked while it is sent to', () => {
  const world = new World()
  let again = true
  const one = world.connection(1, () => {
    if (again) world.list.add(one)
    again = false
  })
  world.list.add(one)
  world.list.add(one)
  world.list.flush()
  expect(world.sent).toEqual([1, 1])
})
