import { expect, it } from 'vitest'
import { drawPlan } from './plan.ts'
import { runPlan } from './run.ts'

it('an unhandled rejection is a violation of the run in each way to run a plan', async () => {
  // Vitest would count it as an error of this file.
  const listeners = process.listeners('unhandledRejection')
  process.removeAllListeners('unhandledRejection')
  try {
    let isRejected = false
    const { violations } = await runPlan(drawPlan(1, { servers: 1, minutes: 0.005 }), {
      onLog() {
        if (isRejected) return
        isRejected = true
        void Promise.reject(new Error('no handler'))
      },
    })
    expect(violations).toContainEqual({
      checker: 'unhandled',
      message: expect.stringContaining('no handler'),
    })
  } finally {
    for (const listener of listeners) process.on('unhandledRejection', listener)
  }
})
