import { ManualClock } from '@zabra/runtime'
import { expect, it } from 'vitest'
import { LearnerFlowControl } from './learner-flow-control.ts'

/** A connection to a leader whose bytes wait for the disk, or transactions to be applied. */
function fixture() {
  const clock = new ManualClock()
  const state = { pendingBytes: 0, unapplied: 0, isOpen: true, isPaused: false }
  let flushed!: (error?: Error) => void
  const flowControl = new LearnerFlowControl({
    clock,
    connection: {
      get isOpen() {
        return state.isOpen
      },
      pause: () => void (state.isPaused = true),
      resume: () => void (state.isPaused = false),
    },
    pendingBytes: () => state.pendingBytes,
    unapplied: () => state.unapplied,
    flush: () =>
      new Promise<void>((resolve, reject) => {
        flushed = (error) => (error === undefined ? resolve() : reject(error))
      }),
  })
  return { clock, state, flowControl, flushed: (error?: Error) => flushed(error) }
}

it('a learner does not read while hundreds of transactions are committed and not applied', async () => {
  const { clock, state, flowControl } = fixture()
  state.unapplied = 299
  flowControl.check()
  expect(state.isPaused).toBe(false)
  state.unapplied = 700
  flowControl.check()
  expect(state.isPaused).toBe(true)
  clock.immediate(() => {
    state.unapplied = 400
    clock.immediate(() => (state.unapplied = 200))
  })
  await clock.untilIdle()
  expect(state.isPaused).toBe(false)
})

it('a learner does not read while 64 MiB are not on disk, and goes on when a flush ends, also in an error', async () => {
  for (const error of [undefined, new Error('the disk fails')]) {
    const { clock, state, flowControl, flushed } = fixture()
    state.pendingBytes = 64 << 20
    flowControl.check()
    await clock.untilIdle()
    expect(state.isPaused).toBe(true)
    flushed(error)
    await clock.untilIdle()
    expect(state.isPaused).toBe(false)
  }
})

it('a learner whose connection is lost meanwhile waits for nothing', async () => {
  const { clock, state, flowControl } = fixture()
  state.unapplied = 700
  flowControl.check()
  state.isOpen = false
  await clock.untilIdle()
  expect(state.isPaused).toBe(true)
})
