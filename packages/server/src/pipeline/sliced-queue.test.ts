import { describe, expect, it } from 'vitest'
import { SlicedQueue } from './sliced-queue.ts'

/** Turns that are begun by hand; a step takes so many milliseconds. */
class Bench {
  readonly done: string[] = []
  readonly #later: (() => void)[] = []
  #now = 0
  readonly stepper = new SlicedQueue({
    defer: (action) => void this.#later.push(action),
    clock: { monotonic: () => this.#now },
  })

  add(name: string, steps: number, ms = 0): void {
    this.stepper.add({
      begin: () => this.#work(name, steps, ms),
      onDropped: () => this.done.push(`no ${name}`),
    })
  }

  *#work(name: string, steps: number, ms: number): Generator<void> {
    for (let step = 1; step <= steps; step++) {
      this.#now += ms
      this.done.push(`${name}${step}`)
      if (step < steps) yield
    }
  }

  /** What is done in the next turn. */
  turn(): string[] {
    this.done.length = 0
    this.#later.shift()?.()
    return [...this.done]
  }
}

describe('a stepper', () => {
  it('does three short steps in a turn, and begins at once', () => {
    const bench = new Bench()
    bench.add('a', 7, 0.2)
    expect(bench.done).toEqual(['a1', 'a2', 'a3'])
    expect(bench.stepper.isBusy).toBe(true)
    expect([bench.turn(), bench.turn(), bench.turn()]).toEqual([['a4', 'a5', 'a6'], ['a7'], []])
    expect(bench.stepper.isBusy).toBe(false)
  })

  it('does nothing more in a turn in which steps have taken a millisecond', () => {
    const bench = new Bench()
    bench.add('a', 4, 4)
    bench.add('b', 5, 0.5)
    expect(bench.done).toEqual(['a1'])
    expect([bench.turn(), bench.turn()]).toEqual([['a2'], ['a3']])
    expect(bench.turn()).toEqual(['a4', 'b1', 'b2'])
    expect([bench.turn(), bench.turn()]).toEqual([['b3', 'b4'], ['b5']])
  })

  it('does what is being done to its end when it is told to, and nothing that waits', () => {
    const bench = new Bench()
    for (const name of ['a', 'b']) bench.add(name, 5)
    bench.stepper.drainCurrent()
    expect(bench.done).toEqual(['a1', 'a2', 'a3', 'a4', 'a5'])
    expect(bench.turn()).toEqual([])
  })

  it('does all to the end when it is told to', () => {
    const bench = new Bench()
    for (const name of ['a', 'b']) bench.add(name, 4)
    bench.stepper.drain()
    expect(bench.done).toEqual(['a', 'b'].flatMap((name) => [1, 2, 3, 4].map((step) => `${name}${step}`)))
    expect(bench.turn()).toEqual([])
  })

  it('drops what is being done and what waits', () => {
    const bench = new Bench()
    for (const name of ['a', 'b']) bench.add(name, 4)
    bench.stepper.abort()
    expect(bench.done).toEqual(['a1', 'a2', 'a3', 'no a', 'no b'])
    expect(bench.turn()).toEqual([])
    expect(bench.stepper.isBusy).toBe(false)
  })
})
