import { describe, expect, it } from 'vitest'
import { ManualClock } from './manual-clock.ts'

describe('ManualClock', () => {
  it('runs timers in order, each at its own time, and timers that these start', () => {
    const clock = new ManualClock({ monotonic: 0, wall: 100 })
    const seen: [string, number, number][] = []
    const note = (name: string) => () => void seen.push([name, clock.monotonic(), clock.wall()])
    clock.after(20, 'b', note('b'))
    clock.after(10, 'a', () => {
      note('a')()
      clock.after(5, 'nested', note('nested'))
    })
    clock.after(20, 'c', note('c'))
    clock.after(31, 'late', note('late'))
    clock.advance(30)
    expect(seen).toEqual([
      ['a', 10, 110],
      ['nested', 15, 115],
      ['b', 20, 120],
      ['c', 20, 120],
    ])
    expect(clock.monotonic()).toBe(30)
    expect(clock.pendingTimers()).toEqual([{ name: 'late', at: 31 }])
  })

  it('does not run a cancelled timer, and cancelling twice or late does nothing', () => {
    const clock = new ManualClock()
    let runs = 0
    const cancel = clock.after(1, 'never', () => runs++)
    cancel()
    cancel()
    clock.after(1, 'once', () => runs++)
    clock.advance(5)
    expect(runs).toBe(1)
  })

  it('never goes back when an action advances it', () => {
    const clock = new ManualClock({ monotonic: 0 })
    clock.after(10, 'nested', () => clock.advance(100))
    clock.advance(20)
    expect(clock.monotonic()).toBe(110)
    expect(() => clock.advance(-1)).toThrow(RangeError)
  })

  it('standStill runs the timers that became due late, before actions that are ready', () => {
    const clock = new ManualClock({ monotonic: 0 })
    const seen: [string, number][] = []
    const note = (name: string) => () => void seen.push([name, clock.monotonic()])
    for (const [delay, name] of [
      [10, 'a'],
      [20, 'b'],
      [101, 'later'],
    ] as const)
      clock.after(delay, name, note(name))
    clock.immediate(note('ready'))
    clock.standStill(100)
    expect(seen).toEqual([
      ['a', 100],
      ['b', 100],
    ])
    clock.advance(1)
    expect(seen.slice(2)).toEqual([
      ['ready', 100],
      ['later', 101],
    ])
  })

  it('jumpWall moves the wall clock alone', () => {
    const clock = new ManualClock({ wall: 500, monotonic: 0 })
    clock.jumpWall(-100)
    expect([clock.wall(), clock.monotonic()]).toEqual([400, 0])
  })

  it('untilIdle resolves after promises and immediate actions', async () => {
    const clock = new ManualClock()
    const seen: number[] = []
    clock.immediate(() => {
      void Promise.resolve().then(() => clock.immediate(() => seen.push(2)))
      seen.push(1)
    })
    await clock.untilIdle()
    expect(seen).toEqual([1, 2])
  })
})
