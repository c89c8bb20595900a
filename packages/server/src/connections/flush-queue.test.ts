// oxlint-disable no-restricted-imports -- garbage collection is observed through the engine
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { describe, expect, it } from 'vitest'
import { FlushQueue, NOTIFIED_PER_TURN, type Flushable } from './flush-queue.ts'

/** A queue whose later turns run when the test says so. Records the connections in the order of their flushes. */
class Fixture {
  readonly flushed: number[] = []
  readonly laterTurns: (() => void)[] = []
  readonly queue = new FlushQueue((action) => this.laterTurns.push(action))

  connection(number: number, onFlush: () => void = () => {}): Flushable {
    return {
      isFlushQueued: false,
      isNotifyQueued: false,
      flush: () => {
        this.flushed.push(number)
        onFlush()
      },
    }
  }

  /** Notifies `count` new connections with the numbers from `from` on. */
  notify(from: number, count: number): void {
    for (let number = from; number < from + count; number++) this.queue.notify(this.connection(number))
  }

  /** Runs the oldest later turn, if there is one, and ends it. */
  nextTurn(): void {
    this.laterTurns.shift()?.()
    this.queue.flush()
  }
}

const upTo = (count: number): number[] => Array.from({ length: count }, (_, number) => number)

describe('FlushQueue', () => {
  it('flushes a few notified connections at the end of the turn', () => {
    const fixture = new Fixture()
    fixture.notify(0, 100)
    fixture.queue.flush()
    expect(fixture.flushed).toEqual(upTo(100))
    expect(fixture.laterTurns).toEqual([])
  })

  it('flushes many notified connections in slices, one in a turn, in their order', () => {
    const fixture = new Fixture()
    fixture.notify(0, 2 * NOTIFIED_PER_TURN + 1)
    fixture.queue.flush()
    expect(fixture.flushed).toEqual(upTo(NOTIFIED_PER_TURN))
    fixture.nextTurn()
    expect(fixture.flushed).toEqual(upTo(2 * NOTIFIED_PER_TURN))
    fixture.nextTurn()
    expect(fixture.laterTurns).toEqual([])
    expect(fixture.flushed).toEqual(upTo(2 * NOTIFIED_PER_TURN + 1))
  })

  it('flushes the few connections of a later change before the backlog of an earlier one', () => {
    const fixture = new Fixture()
    fixture.notify(0, 2 * NOTIFIED_PER_TURN)
    fixture.queue.flush()
    fixture.notify(5000, 2)
    fixture.queue.flush()
    expect(fixture.flushed.slice(NOTIFIED_PER_TURN)).toEqual([5000, 5001])
    fixture.nextTurn()
    expect(fixture.flushed.slice(NOTIFIED_PER_TURN + 2)).toEqual(
      upTo(2 * NOTIFIED_PER_TURN).slice(NOTIFIED_PER_TURN),
    )
  })

  it('appends the many connections of a later change to the backlog, without a second chain of turns', () => {
    const fixture = new Fixture()
    const few = NOTIFIED_PER_TURN - 140
    fixture.notify(0, NOTIFIED_PER_TURN + few)
    fixture.queue.flush()
    fixture.notify(NOTIFIED_PER_TURN + few, 140)
    fixture.queue.flush()
    expect(fixture.laterTurns).toHaveLength(1)
    fixture.nextTurn()
    expect(fixture.laterTurns).toEqual([])
    expect(fixture.flushed).toEqual(upTo(2 * NOTIFIED_PER_TURN))
  })

  it('flushes every connection with a reply at the end of the turn, whatever their number and the backlog', () => {
    const fixture = new Fixture()
    fixture.notify(1000, NOTIFIED_PER_TURN + 1)
    for (const number of upTo(NOTIFIED_PER_TURN + 1)) fixture.queue.add(fixture.connection(number))
    fixture.queue.flush()
    expect(fixture.flushed.slice(NOTIFIED_PER_TURN)).toEqual(upTo(NOTIFIED_PER_TURN + 1))
  })

  it('flushes a connection of the backlog early when it gets a reply, and keeps its one place in the backlog', () => {
    const fixture = new Fixture()
    const connection = fixture.connection(5000)
    fixture.notify(0, NOTIFIED_PER_TURN)
    fixture.queue.notify(connection)
    fixture.queue.flush()
    for (let round = 0; round < 2; round++) {
      fixture.queue.add(connection)
      fixture.queue.notify(connection)
      fixture.queue.flush()
      fixture.queue.notify(connection)
      fixture.queue.flush()
    }
    expect(fixture.flushed.slice(NOTIFIED_PER_TURN)).toEqual([5000, 5000])
    fixture.nextTurn()
    expect(fixture.flushed.slice(NOTIFIED_PER_TURN)).toEqual([5000, 5000, 5000])
    fixture.queue.notify(connection)
    fixture.queue.flush()
    expect(fixture.flushed.slice(NOTIFIED_PER_TURN)).toEqual([5000, 5000, 5000, 5000])
    expect(fixture.laterTurns).toEqual([])
  })

  it('flushes a connection once that has a reply and then an event in the same turn', () => {
    const fixture = new Fixture()
    const connection = fixture.connection(1)
    fixture.queue.add(connection)
    fixture.queue.notify(connection)
    fixture.queue.flush()
    expect(fixture.flushed).toEqual([1])
  })

  it('starts a new backlog after an earlier one is flushed', () => {
    const fixture = new Fixture()
    for (let round = 0; round < 3; round++) {
      fixture.notify(0, NOTIFIED_PER_TURN + 1)
      fixture.queue.flush()
      fixture.nextTurn()
    }
    expect(fixture.flushed).toHaveLength(3 * (NOTIFIED_PER_TURN + 1))
    expect(fixture.laterTurns).toEqual([])
  })

  it('keeps no reference to flushed connections while its backlog never gets empty', async () => {
    const fixture = new Fixture()
    const references: WeakRef<Flushable>[] = []
    const notifyMany = (): void => {
      for (let number = 0; number < NOTIFIED_PER_TURN; number++) {
        const connection = fixture.connection(number)
        if (number === 0) references.push(new WeakRef(connection))
        fixture.queue.notify(connection)
      }
      fixture.queue.flush()
    }
    notifyMany()
    fixture.notify(0, NOTIFIED_PER_TURN + 1)
    for (let round = 0; round < 5; round++) {
      notifyMany()
      fixture.nextTurn()
    }
    expect(fixture.laterTurns).toHaveLength(1)
    // A WeakRef keeps its target alive until the end of the turn that made it.
    await new Promise((resolve) => setImmediate(resolve))
    setFlagsFromString('--expose-gc')
    const collect = runInNewContext('gc') as () => void
    collect()
    const isCollected = references.slice(0, -1).map((reference) => reference.deref() === undefined)
    expect(isCollected).toEqual(Array(5).fill(true))
  })

  it('flushes a connection once however often it is added, and again when it is added during its flush', () => {
    const fixture = new Fixture()
    let again = true
    const connection = fixture.connection(1, () => {
      if (again) fixture.queue.add(connection)
      again = false
    })
    fixture.queue.add(connection)
    fixture.queue.add(connection)
    fixture.queue.flush()
    expect(fixture.flushed).toEqual([1, 1])
  })
})
