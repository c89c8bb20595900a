import { expect, it } from 'vitest'
import { NeutralClock } from './neutral-clock.ts'

/** A clock whose requests are answered by a call of `answer`, `ms` of real time after the one before. */
function manual() {
  let real = 0
  let pending = (): void => {}
  const clock = new NeutralClock({
    request: () => new Promise<void>((resolve) => (pending = resolve)),
    now: () => real,
    interval: () => Promise.resolve(),
  })
  const answer = async (ms: number): Promise<void> => {
    await settled()
    real += ms
    pending()
    await settled()
  }
  return { clock, answer, pass: (ms: number) => (real += ms) }
}

const settled = async (): Promise<void> => {
  for (let step = 0; step < 10; step++) await Promise.resolve()
}

it('a neutral clock goes on with the time while requests are answered as fast as on a machine without other work', async () => {
  const { clock, answer } = manual()
  for (let count = 0; count < 100; count++) await answer(25)
  expect(clock.now()).toBe(2500)
})

it('a neutral clock stands still while a request is not answered, and is slow while they are slow', async () => {
  const { clock, answer, pass } = manual()
  pass(10_000)
  expect(clock.now()).toBe(30)
  for (let count = 0; count < 10; count++) await answer(300)
  expect(clock.now()).toBe(300)
})

it('a neutral clock aborts a signal by its own time', async () => {
  const { clock, answer } = manual()
  const signal = clock.after(90)
  await answer(1000)
  await answer(1000)
  expect(signal.aborted).toBe(false)
  await answer(1000)
  expect(signal.aborted).toBe(true)
})

it('a neutral clock says that its server has failed', async () => {
  const clock = new NeutralClock({ request: () => Promise.reject(new Error('The server is gone')) })
  await expect(clock.end()).rejects.toThrow('The server is gone')
})
