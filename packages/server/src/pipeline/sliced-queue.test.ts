import { OpCode, type ACL } from '@zabra/protocol'
import { describe, expect, it } from 'vitest'
import { runToEnd } from '../core/steps.ts'
import type { Txn } from '../core/types.ts'
import { isLongTxn, SlicedQueue } from './sliced-queue.ts'

/** A queue whose turns the test runs; a step takes `ms` milliseconds. */
class QueueFixture {
  readonly done: string[] = []
  readonly #later: (() => void)[] = []
  #now = 0
  isHeldUp = false
  readonly queue = new SlicedQueue({
    defer: (action) => void this.#later.push(action),
    clock: { monotonic: () => this.#now },
    isHeldUp: () => this.isHeldUp,
  })

  /** Turns that are scheduled. */
  get turns(): number {
    return this.#later.length
  }

  add(name: string, steps: number, ms = 0): void {
    this.queue.add({
      begin: () => this.#work(name, steps, ms),
      onDropped: () => this.done.push(`no ${name}`),
    })
  }

  /** Adds a task that is done when it begins. */
  addAtOnce(name: string, ms: number): void {
    this.queue.add({
      begin: () => {
        this.pass(ms)
        this.done.push(name)
        return undefined
      },
    })
  }

  pass(ms: number): void {
    this.#now += ms
  }

  /** Runs steps of which the first is often the last. */
  run(name: string, steps: number, ms = 0): void {
    this.queue.run(this.#work(name, steps, ms))
  }

  *#work(name: string, steps: number, ms: number): Generator<void> {
    for (let step = 1; step <= steps; step++) {
      this.#now += ms
      this.done.push(`${name}${step}`)
      if (step < steps) yield
    }
  }

  /** Runs the next turn and returns its steps. */
  turn(): string[] {
    this.done.length = 0
    this.#later.shift()?.()
    return [...this.done]
  }
}

function* yieldOften(steps: number): Generator<void> {
  for (let step = 0; step < steps; step++) yield
}

const list = (entries: number): ACL[] =>
  Array.from({ length: entries }, () => ({ perms: 31, id: { scheme: 'ip', id: '::1' } }))

it.each([
  ['a path of 4096 characters', { path: '/'.padEnd(4096, 'x') }, true],
  ['a path of one less', { path: '/'.padEnd(4095, 'x') }, false],
  ['a list of a hundred entries', { path: '/a', acl: list(100) }, true],
  ['a list of one less', { path: '/a', acl: list(99) }, false],
])('a transaction with %s may take a millisecond', (_what, fields, isLong) => {
  const txn = { type: OpCode.setACL, acl: [], version: 0, ...fields } as Txn
  expect(isLongTxn(txn)).toBe(isLong)
})

it('a transaction without a path takes a moment', () => {
  expect(isLongTxn({ type: OpCode.createSession, timeOut: 1 })).toBe(false)
})

describe('SlicedQueue', () => {
  it('begins a task at once and runs three short steps in a turn', () => {
    const fixture = new QueueFixture()
    fixture.add('a', 7, 0.2)
    expect(fixture.done).toEqual(['a1', 'a2', 'a3'])
    expect(fixture.queue.isBusy).toBe(true)
    expect([fixture.turn(), fixture.turn(), fixture.turn()]).toEqual([['a4', 'a5', 'a6'], ['a7'], []])
    expect(fixture.queue.isBusy).toBe(false)
  })

  it('runs one of the steps of which the first is often the last, and the rest in later turns', () => {
    const fixture = new QueueFixture()
    fixture.run('a', 1)
    expect([...fixture.done, fixture.queue.isBusy]).toEqual(['a1', false])
    fixture.run('b', 5, 0.2)
    expect(fixture.done).toEqual(['a1', 'b1'])
    fixture.add('c', 2, 0.2)
    expect([fixture.turn(), fixture.turn()]).toEqual([
      ['b2', 'b3', 'b4'],
      ['b5', 'c1', 'c2'],
    ])
    expect(fixture.queue.isBusy).toBe(false)
  })

  it('ends a slice after a millisecond', () => {
    const fixture = new QueueFixture()
    fixture.add('a', 4, 4)
    fixture.add('b', 5, 0.5)
    expect(fixture.done).toEqual(['a1'])
    expect([fixture.turn(), fixture.turn()]).toEqual([['a2'], ['a3']])
    expect(fixture.turn()).toEqual(['a4', 'b1', 'b2'])
    expect([fixture.turn(), fixture.turn()]).toEqual([['b3', 'b4'], ['b5']])
  })

  it('gives up the steps that the current task has left, and drops the tasks behind it, in takeCurrent', () => {
    const fixture = new QueueFixture()
    for (const name of ['a', 'b']) fixture.add(name, 5)
    const steps = fixture.queue.takeCurrent()!
    expect([fixture.queue.isBusy, fixture.done]).toEqual([false, ['a1', 'a2', 'a3', 'no b']])
    expect(fixture.turn()).toEqual([])
    runToEnd(steps)
    expect(fixture.done).toEqual(['a4', 'a5'])
    expect(fixture.queue.takeCurrent()).toBe(undefined)
  })

  it('drops the current task and the waiting ones in abort', () => {
    const fixture = new QueueFixture()
    for (const name of ['a', 'b']) fixture.add(name, 4)
    fixture.queue.abort()
    expect(fixture.done).toEqual(['a1', 'a2', 'a3', 'no a', 'no b'])
    expect(fixture.turn()).toEqual([])
    expect(fixture.queue.isBusy).toBe(false)
  })

  it('begins tasks that wait until they have taken two milliseconds of a turn', () => {
    const fixture = new QueueFixture()
    fixture.add('a', 4)
    for (let i = 0; i < 20; i++) fixture.addAtOnce(`t${i}`, 0.5)
    expect(fixture.turn()).toEqual(['a4', 't0', 't1', 't2', 't3', 't4', 't5', 't6', 't7'])
    expect(fixture.queue.isBusy).toBe(true)
    fixture.addAtOnce('last', 0)
    const rest = [...fixture.turn(), ...fixture.turn(), ...fixture.turn()]
    expect(rest).toEqual([...Array.from({ length: 12 }, (_, i) => `t${i + 8}`), 'last'])
    expect(fixture.queue.isBusy).toBe(false)
  })

  it('is busy for the rest of a turn once tasks outside of it have taken two milliseconds, and then goes on', () => {
    const fixture = new QueueFixture()
    let ran = 0
    while (!fixture.queue.isBusy) {
      fixture.pass(0.5)
      fixture.queue.countRun(false)
      ran++
    }
    expect(ran).toBe(5)
    fixture.addAtOnce('next', 0)
    expect(fixture.done).toEqual([])
    expect(fixture.turn()).toEqual(['next'])
    expect(fixture.queue.isBusy).toBe(false)
    fixture.queue.countRun(true)
    fixture.pass(3)
    fixture.queue.countRun(true)
    expect(fixture.queue.isBusy).toBe(true)
    expect([fixture.turn(), fixture.queue.isBusy]).toEqual([[], false])
  })

  it('is not busy while tasks outside of it take less, however many they are', () => {
    const fixture = new QueueFixture()
    for (let i = 0; i < 100; i++) {
      fixture.pass(0.01)
      fixture.queue.countRun(i % 2 === 0)
      expect(fixture.queue.isBusy).toBe(false)
    }
    // What is cheap is timed only now and then.
    fixture.pass(3)
    const busy = Array.from({ length: 4 }, () => (fixture.queue.countRun(false), fixture.queue.isBusy))
    expect(busy.filter(Boolean)).toHaveLength(busy.length - busy.indexOf(true))
    expect(busy[0]).toBe(false)
  })

  it('runs an action at once while it is not busy, counts it, and runs it in order otherwise', () => {
    const fixture = new QueueFixture()
    const run = (name: string): void => fixture.queue.runInOrder(() => void fixture.done.push(name))
    run('a')
    expect([...fixture.done, fixture.turns]).toEqual(['a', 1])
    fixture.add('b', 4)
    run('c')
    expect(fixture.done).toEqual(['a', 'b1', 'b2', 'b3'])
    expect([...fixture.turn(), ...fixture.turn()]).toEqual(['b4', 'c'])
  })

  it('begins no task while it is held up, and asks again in each turn', () => {
    const fixture = new QueueFixture()
    fixture.add('a', 4)
    fixture.isHeldUp = true
    expect(fixture.queue.isBusy).toBe(true)
    for (const name of ['b', 'c']) fixture.addAtOnce(name, 0)
    // A task that has begun goes on.
    expect([fixture.turn(), fixture.turn(), fixture.turn()]).toEqual([['a4'], [], []])
    expect(fixture.turns).toBe(1)
    fixture.isHeldUp = false
    expect(fixture.turn()).toEqual(['b', 'c'])
    expect([fixture.queue.isBusy, fixture.turns]).toEqual([false, 0])
    fixture.isHeldUp = true
    expect([fixture.queue.isBusy, fixture.queue.hasTasks]).toEqual([true, false])
  })

  it('schedules one turn at a time, and none once nothing is left', () => {
    const fixture = new QueueFixture()
    fixture.add('a', 5)
    fixture.queue.abort()
    fixture.add('b', 5)
    expect(fixture.turns).toBe(1)
    while (fixture.turns > 0) fixture.turn()
    expect(fixture.queue.isBusy).toBe(false)
  })

  it('goes on with the next task when a step has thrown', () => {
    const fixture = new QueueFixture()
    const { queue, done } = fixture
    const broken = {
      *begin(): Generator<void> {
        yield
        throw new Error('broken')
      },
    }
    expect(() => queue.add(broken)).toThrow('broken')
    queue.add({ begin: () => void done.push('b') as undefined })
    expect([done, queue.isBusy]).toEqual([['b'], false])
  })

  it('counts the task in progress and those that wait', () => {
    // Nothing holds it up.
    const queue = new SlicedQueue({ defer: () => {}, clock: { monotonic: () => 0 } })
    expect(queue.length).toBe(0)
    const lengths = [4, 4, 1].map((steps) => {
      queue.add({ begin: () => yieldOften(steps) })
      return queue.length
    })
    expect(lengths).toEqual([1, 2, 3])
    queue.abort()
    expect([queue.length, queue.isBusy]).toEqual([0, false])
  })

  it('drops tasks that need not know of it', () => {
    const fixture = new QueueFixture()
    fixture.add('a', 4)
    fixture.addAtOnce('b', 0)
    fixture.queue.abort()
    expect([fixture.turn(), fixture.queue.isBusy]).toEqual([[], false])
  })
})
