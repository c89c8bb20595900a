import { ManualClock, SeededRandom } from '@zabra/runtime'
import { describe, expect, it } from 'vitest'
import { TimerQueue, timerQueueOf, type TimerEntry } from './timer-queue.ts'

/** Records its name and the time when it is due. */
class Noted implements TimerEntry {
  dueAt = 0
  heapIndex = -1
  readonly #note: () => void

  constructor(note: () => void) {
    this.#note = note
  }

  onDue(): void {
    this.#note()
  }
}

function createQueue() {
  const clock = new ManualClock({ monotonic: 0 })
  const times = new TimerQueue(clock)
  const fired: string[] = []
  const one = (name: string, then?: (self: TimerEntry) => void): TimerEntry => {
    const due = new Noted(() => {
      fired.push(`${name} at ${clock.monotonic()}`)
      then?.(due)
    })
    return due
  }
  return { clock, times, fired, one }
}

describe('a timer queue', () => {
  it('runs entries at their times, in order, with a single platform timer', () => {
    const { clock, times, fired, one } = createQueue()
    for (const [name, due] of [
      ['c', 30],
      ['a', 10],
      ['d', 40],
      ['b', 20.5],
    ] as const)
      times.set(one(name), due)
    expect(clock.pendingTimers()).toEqual([{ name: 'heartbeat', at: 10 }])
    clock.advance(100)
    expect(fired).toEqual(['a at 10', 'b at 20.5', 'c at 30', 'd at 40'])
    expect(clock.pendingTimers()).toEqual([])
  })

  it('moves an entry that is set again, and ignores clear for an entry that is not set', () => {
    const { clock, times, fired, one } = createQueue()
    const [moved, gone] = [one('moved'), one('gone')]
    times.set(moved, 10)
    times.set(gone, 20)
    times.set(moved, 50)
    times.clear(gone)
    times.clear(gone)
    clock.advance(100)
    expect(fired).toEqual(['moved at 50'])
  })

  it('leaves no platform timer when it is empty', () => {
    const { clock, times, one } = createQueue()
    const only = one('only')
    times.set(only, 10)
    times.clear(only)
    expect(clock.pendingTimers()).toEqual([])
  })

  it('allows an entry to be set from a callback, also for a past time', () => {
    const { clock, times, fired, one } = createQueue()
    let left = 3
    times.set(
      one(
        'again',
        (self) => left-- > 0 && times.set(self, left === 1 ? clock.monotonic() : clock.monotonic() + 5),
      ),
      10,
    )
    clock.advance(100)
    expect(fired).toEqual(['again at 10', 'again at 15', 'again at 15', 'again at 20'])
  })

  it('runs an entry although the one before it throws', () => {
    const { clock, times, fired, one } = createQueue()
    const broken = one('broken', () => {
      throw new Error('It broke')
    })
    times.set(broken, 10)
    times.set(one('next'), 10)
    times.set(one('later'), 20)
    expect(() => clock.advance(15)).toThrow('It broke')
    clock.advance(15)
    expect(fired.map((line) => line.split(' ')[0])).toEqual(['broken', 'next', 'later'])
  })

  it('does not run an entry when the platform timer fires early', () => {
    const { clock, fired, one } = createQueue()
    let early = true
    const hasty = Object.create(clock, {
      after: {
        value: (ms: number, name: string, action: () => void) => {
          const shorter = early ? ms - 0.4 : ms
          early = false
          return clock.after(shorter, name, action)
        },
      },
      monotonic: { value: () => clock.monotonic() },
    }) as ManualClock
    new TimerQueue(hasty).set(one('one'), 10)
    clock.advance(20)
    expect(fired).toEqual(['one at 10'])
  })

  it('sets its platform timer again when fake timers have removed it', () => {
    const { clock, fired, one } = createQueue()
    let lost = true
    const forgetful = Object.create(clock, {
      after: {
        value: (ms: number, name: string, action: () => void) =>
          clock.after(ms, name, lost ? (): void => {} : action),
      },
      monotonic: { value: () => clock.monotonic() },
    }) as ManualClock
    const times = new TimerQueue(forgetful)
    times.set(one('forgotten'), 10)
    clock.advance(2000)
    lost = false
    times.set(one('next'), 3000)
    clock.advance(1500)
    expect(fired).toEqual(['forgotten at 2000', 'next at 3000'])
  })

  it('stays in order through random changes', () => {
    for (let seed = 1; seed <= 50; seed++) {
      const random = new SeededRandom(seed)
      const { clock, times, fired, one } = createQueue()
      const all = Array.from({ length: 40 }, (_, i) => one(String(i)))
      const expected = new Map<string, number>()
      for (let step = 0; step < 200; step++) {
        const i = random.below(all.length)
        if (random.below(4) === 0) {
          times.clear(all[i]!)
          expected.delete(String(i))
        } else {
          const due = random.below(1000)
          times.set(all[i]!, due)
          expected.set(String(i), due)
        }
      }
      expect(times.size, `seed ${seed}`).toBe(expected.size)
      clock.advance(1000)
      expect(new Set(fired), `seed ${seed}`).toEqual(
        new Set([...expected].map(([name, due]) => `${name} at ${due}`)),
      )
      expect(fired.length, `seed ${seed}`).toBe(expected.size)
      const at = fired.map((line) => Number(line.split(' at ')[1]))
      expect(at, `seed ${seed}`).toEqual(at.toSorted((a, b) => a - b))
    }
  })

  it('is shared by all users of a clock, and by no others', () => {
    const [one, two] = [new ManualClock(), new ManualClock()]
    expect(timerQueueOf(one)).toBe(timerQueueOf(one))
    expect(timerQueueOf(one)).not.toBe(timerQueueOf(two))
  })
})
