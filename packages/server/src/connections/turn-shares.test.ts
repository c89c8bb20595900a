import { ManualClock } from '@zabra/runtime'
import { expect, it } from 'vitest'
import { TurnShares, type WaitingChannel } from './turn-shares.ts'

it('a connection that waits again and again gets one share in a turn', () => {
  let due: (() => void)[] = []
  const clock = new ManualClock()
  const shares = new TurnShares({
    clock,
    runLater: (action) => void due.push(action),
    turnTime: () => clock.monotonic(),
  })
  let left = 20
  const channel: WaitingChannel = {
    proceed() {
      if (left-- > 0) shares.wait(channel)
      if (left > 0) shares.wait(channel)
    },
  }
  shares.wait(channel)
  const runs: number[] = []
  while (due.length > 0) {
    const turn = due
    due = []
    runs.push(turn.length)
    for (const run of turn) run()
  }
  expect(runs).toEqual(new Array<number>(21).fill(1))
})

it('looks at the clock after a large request', () => {
  let now = 100
  const clock = Object.assign(new ManualClock(), { monotonic: () => now })
  const shares = new TurnShares({ clock, runLater() {}, turnTime: () => 0 })
  expect([10, 9000, 10].map((bytes) => shares.isSpent(bytes))).toEqual([false, true, false])
  shares.checkNext()
  expect([10, 10].map((bytes) => shares.isSpent(bytes))).toEqual([true, false])
  now = 1
  shares.checkNext()
  expect(shares.isSpent(10)).toBe(false)
})

it('looks at the clock after every 15th request of 150 bytes, replies included', () => {
  const clock = Object.assign(new ManualClock(), { monotonic: () => 100 })
  const shares = new TurnShares({ clock, runLater() {}, turnTime: () => 0 })
  const looks = Array.from({ length: 60 }, () => shares.isSpent(150))
  expect(looks.flatMap((isSpent, index) => (isSpent ? [index + 1] : []))).toEqual([15, 30, 45, 60])
})

it('connections that all have more requests than their share take 6 ms of one iteration of the event loop together', () => {
  let now = 0
  let turnTime = 0
  const shares = new TurnShares({
    clock: Object.assign(new ManualClock(), { monotonic: () => now }),
    runLater() {},
    turnTime: () => turnTime,
  })
  for (let connection = 0; connection < 50; connection++) {
    turnTime = now
    do now += 0.001
    while (!shares.isSpent(0))
    shares.wait({ proceed() {} })
  }
  expect(now).toBeLessThan(6.5)
})

it('reads of one connection that follow each other have one share, and a read of another one has its own', () => {
  let now = 0
  let turnTime = 0
  const shares = new TurnShares({
    clock: Object.assign(new ManualClock(), { monotonic: () => now }),
    runLater() {},
    turnTime: () => turnTime,
  })
  const [greedy, other]: WaitingChannel[] = [{ proceed() {} }, { proceed() {} }]
  const read = (channel: WaitingChannel): boolean => {
    turnTime = now
    shares.beginRead(channel)
    now += 1.2
    shares.checkNext()
    return shares.isSpent(0)
  }
  expect([1, 2, 3, 4].map(() => read(greedy!))).toEqual([false, false, true, true])
  expect([read(other!), read(greedy!), read(greedy!)]).toEqual([false, false, false])
  now += 4
  expect([read(greedy!), read(greedy!)]).toEqual([false, false])
  // An event that is no read has its own share.
  turnTime = now
  shares.checkNext()
  expect(shares.isSpent(10)).toBe(false)
})

it.each([
  ['a costly request', [[], [9]]],
  ['a large request', [[], [17]]],
  ['many small ones', [[8], [8, 17]]],
] as const)(
  'a run waits for the next iteration after a costly or large request, and no longer: %s',
  (which, expected) => {
    let now = 0
    let turnTime = 0
    const due: (() => void)[] = []
    const shares = new TurnShares({
      clock: Object.assign(new ManualClock(), { monotonic: () => now }),
      runLater: (action) => void due.push(action),
      turnTime: () => turnTime,
    })
    const proceeded: number[] = []
    const channel: WaitingChannel = { proceed: () => void proceeded.push(now) }
    /** Executes a costly request if it is admitted, or others as long; lets the connection wait. */
    const iterate = (): void => {
      turnTime = now
      if (which === 'a costly request' ? shares.admitsCostly() : true) now += 8
      shares.isSpent(which === 'a large request' ? 5000 : 10)
      shares.wait(channel)
      const turn = due.splice(0)
      for (const run of turn) run()
      now += 1
    }
    iterate()
    expect(proceeded).toEqual(expected[0])
    iterate()
    expect(proceeded).toEqual(expected[1])
  },
)
