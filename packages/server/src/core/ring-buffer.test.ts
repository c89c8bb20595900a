// oxlint-disable no-restricted-imports, no-restricted-globals -- memory is observed through the engine
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import fc from 'fast-check'
import { expect, it } from 'vitest'
import { RingBuffer } from './ring-buffer.ts'

it('RingBuffer behaves like an array with push and shift, in random histories', () => {
  const step = fc.oneof(
    { weight: 6, arbitrary: fc.record({ do: fc.constant('push' as const), count: fc.nat(50) }) },
    { weight: 5, arbitrary: fc.record({ do: fc.constant('shift' as const), count: fc.nat(60) }) },
    { weight: 2, arbitrary: fc.record({ do: fc.constant('set' as const), count: fc.nat(80) }) },
    { weight: 1, arbitrary: fc.record({ do: fc.constant('drop' as const), count: fc.nat(30) }) },
    { weight: 1, arbitrary: fc.record({ do: fc.constant('clear' as const), count: fc.constant(0) }) },
  )
  fc.assert(
    fc.property(fc.array(step, { maxLength: 60 }), (steps) => {
      const queue = new RingBuffer<string | undefined>(undefined)
      let model: string[] = []
      let next = 0
      for (const { do: kind, count } of steps) {
        if (kind === 'clear') {
          queue.clear()
          model = []
        } else if (kind === 'drop') {
          const dropped = Math.min(count, model.length)
          queue.drop(dropped)
          model.length -= dropped
        } else if (kind === 'set') {
          if (count >= model.length) continue
          queue.set(count, (model[count] = `set ${next++}`))
        } else {
          for (let left = count; left > 0; left--) {
            if (kind === 'shift') expect(queue.shift()).toBe(model.shift())
            else queue.push((model[model.length] = `pushed ${next++}`))
          }
        }
        expect(queue.length).toBe(model.length)
        expect(queue.first).toBe(model[0])
        expect(queue.last).toBe(model.at(-1))
        expect([...queue]).toEqual(model)
        expect(model.map((_, index) => queue.at(index))).toEqual(model)
      }
    }),
    { seed: 8, numRuns: 300 },
  )
})

it('RingBuffer of numbers returns them, and its empty value when it is empty', () => {
  const queue = new RingBuffer<number>(0)
  for (let i = 1; i <= 100; i++) queue.push(i + 0.5)
  expect(Array.from({ length: 101 }, () => queue.shift())).toEqual([
    ...Array.from({ length: 100 }, (_, i) => i + 1.5),
    0,
  ])
})

it('RingBuffer does not retain items that were removed', async () => {
  const queue = new RingBuffer<object | undefined>(undefined)
  const pushed = (): WeakRef<object> => {
    const item = {}
    queue.push(item)
    return new WeakRef(item)
  }
  const items = Array.from({ length: 100 }, pushed)
  for (let i = 0; i < 40; i++) queue.shift()
  queue.drop(20)
  // A WeakRef keeps its target alive until the end of the turn in which it was created.
  await new Promise((resolve) => setImmediate(resolve))
  setFlagsFromString('--expose-gc')
  const collect = runInNewContext('gc') as () => void
  collect()
  const kept = items.flatMap((item, i) => (item.deref() === undefined ? [] : [i]))
  expect(kept).toEqual(Array.from({ length: 40 }, (_, i) => i + 40))
})
