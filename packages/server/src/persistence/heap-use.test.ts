import { ManualClock, type System } from '@zabra/runtime'
import { expect, it } from 'vitest'
import { HeapUse, memoryCheck } from './heap-use.ts'

const MIB = 1 << 20

/** A process of which the tests say what it uses. */
class Process implements Pick<System, 'heap' | 'memoryLimits'> {
  looks = 0
  used = 0
  external = 0
  limits = { heap: 1000 * MIB, process: 10_000 * MIB }

  heap(): { used: number; external: number } {
    this.looks++
    return { used: this.used, external: this.external }
  }

  memoryLimits(): { heap: number; process: number } {
    return this.limits
  }
}

it('the memory is looked at once in 100 ms', () => {
  const system = new Process()
  const use = new HeapUse(system)
  system.used = 5
  expect(use.at(0)).toEqual({ used: 5, external: 0, isFull: false, leavesNone: false })
  system.used = 6
  expect(use.at(99).used).toBe(5)
  expect(use.at(100).used).toBe(6)
  expect(use.at(199).used).toBe(6)
  expect([use.at(200).used, system.looks]).toEqual([6, 3])
})

it.each([
  ['is not full at nine tenths of its heap', 900, 0, false, false],
  ['is full above nine tenths of its heap', 901, 0, true, true],
  [
    'leaves some at nine tenths of all that it may take, with 80 MiB beside the heap',
    900,
    8020,
    false,
    false,
  ],
  ['leaves none above that', 900, 8021, false, true],
  ['leaves none where only buffers are above that', 0, 8921, false, true],
])('a process %s', (_, used, external, isFull, leavesNone) => {
  const system = new Process()
  system.used = used * MIB
  system.external = external * MIB
  expect(new HeapUse(system).at(7)).toEqual({
    used: used * MIB,
    external: external * MIB,
    isFull,
    leavesNone,
  })
})

it('a system that does not tell what it uses, or has no limits, is never full', () => {
  expect(new HeapUse({}).at(0)).toEqual({ used: 0, external: 0, isFull: false, leavesNone: false })
  const heap = (): { used: number; external: number } => ({ used: 2 ** 50, external: 2 ** 50 })
  expect(new HeapUse({ heap }).at(0)).toMatchObject({ used: 2 ** 50, isFull: false, leavesNone: false })
})

it('memoryCheck throws once the process leaves no memory', () => {
  const system = new Process()
  const clock = new ManualClock()
  const check = memoryCheck({ clock, system }, () => new Error('too large'))
  check()
  system.used = 950 * MIB
  check()
  clock.advance(100)
  expect(check).toThrow('too large')
})
