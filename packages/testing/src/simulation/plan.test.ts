import { expect, it } from 'vitest'
import { planOf } from './plan.ts'

it('gives every leader that is deposed clients that only read', () => {
  const plans = Array.from({ length: 100 }, (_, seed) => planOf(seed, { minutes: 0.05 }))
  const deposing = plans.filter(({ faults }) => faults.some(({ kind }) => kind === 'deposed'))
  expect(deposing.length).toBeGreaterThan(5)
  for (const { servers, clients } of deposing) {
    expect(servers).toBeGreaterThan(1)
    expect(clients.filter(({ weights }) => weights.set === 0 && weights.sync > 0).length).toBeGreaterThan(0)
  }
})
