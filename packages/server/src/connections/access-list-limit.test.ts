import { ManualClock, silentLogger } from '@zabra/runtime'
import { expect, it } from 'vitest'
import { accessListLimit } from './access-list-limit.ts'

it('access control lists may take a quarter of the heap, and refused ones are logged once a minute', () => {
  const clock = new ManualClock()
  const lines: object[] = []
  const logger = { ...silentLogger, warn: (facts: object) => lines.push(facts) }
  const system = { memoryLimits: () => ({ heap: 4000, process: 9000 }) }
  const { maxAclBytes, onAclsFull } = accessListLimit({ clock, logger, system })
  expect(maxAclBytes).toBe(1000)
  for (let i = 0; i < 5; i++) onAclsFull!()
  clock.advance(60_000)
  onAclsFull!()
  expect(lines).toEqual([{ limit: 1000 }, { limit: 1000 }])
  expect(accessListLimit({ clock, logger, system: {} })).toEqual({})
})
