import { ManualClock, silentLogger } from '@zabra/runtime'
import { expect, it } from 'vitest'
import { dataLimits, dataMemoryLimit } from './data-limits.ts'

function fixture(dataMemory = 0) {
  const clock = new ManualClock()
  const turnTime = (): number => clock.monotonic()
  const lines: object[] = []
  const logger = { ...silentLogger, warn: (facts: object) => lines.push(facts) }
  const heap = { used: 1000, external: 500 }
  const system = { memoryLimits: () => ({ heap: 4000, process: 8000 }), heap: () => heap }
  const tree = { freeBytes: 0 }
  const limits = dataLimits({ turnTime, logger, system, dataMemory, freeBytes: () => tree.freeBytes })
  return { clock, lines, heap, tree, limits }
}

it('access control lists may take a quarter of the heap, and refused ones are logged once a minute', () => {
  const { clock, lines, limits } = fixture()
  expect(limits.maxAclBytes).toBe(1000)
  for (let i = 0; i < 5; i++) limits.onAclsFull!()
  clock.advance(60_000)
  limits.onAclsFull!()
  expect(lines).toEqual([{ limit: 1000 }, { limit: 1000 }])
})

it('data grow up to three quarters of the memory of the process, or nine tenths of the heap, and further once there is room', () => {
  const { clock, heap, tree, limits } = fixture()
  const isFullWith = (used: number, external: number, freeBytes = 0): boolean => {
    Object.assign(heap, { used, external })
    tree.freeBytes = freeBytes
    clock.advance(100)
    return limits.isMemoryFull!()
  }
  expect(isFullWith(1000, 5000)).toBe(false)
  expect(isFullWith(1000, 5001)).toBe(true)
  expect(isFullWith(1000, 5001, 1)).toBe(false)
  expect(isFullWith(3600, 0)).toBe(false)
  expect(isFullWith(3601, 0)).toBe(true)
  expect(isFullWith(1000, 0)).toBe(false)
})

it('the memory is looked at ten times in a second, and refused writes are logged once a minute', () => {
  const { clock, heap, lines, limits } = fixture(1500)
  expect(limits.isMemoryFull!()).toBe(false)
  heap.external = 501
  clock.advance(99)
  expect(limits.isMemoryFull!()).toBe(false)
  clock.advance(1)
  expect(limits.isMemoryFull!()).toBe(true)
  for (let i = 0; i < 5; i++) limits.onMemoryFull!()
  expect(lines).toEqual([{ limit: 1500, used: 1000, external: 501 }])
})

it('there is no limit where the platform does not know its memory, unless one is set', () => {
  expect(
    dataLimits({ turnTime: () => 0, logger: silentLogger, system: {}, dataMemory: 0, freeBytes: () => 0 }),
  ).toEqual({})
  expect([dataMemoryLimit(0, {}), dataMemoryLimit(7, {})]).toEqual([Infinity, 7])
})
