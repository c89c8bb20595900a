import fc from 'fast-check'
import { expect, it } from 'vitest'
import { FirstItems } from './first-items.ts'

it('keeps the same items as sorting all of them would', () => {
  fc.assert(
    fc.property(fc.array(fc.nat(50)), fc.nat(20), (numbers, limit) => {
      const items = new FirstItems<number>(limit, (a, b) => a - b)
      for (const number of numbers) items.add(number)
      const taking = items.takeSorted()
      let step = taking.next()
      while (step.done !== true) step = taking.next()
      expect(step.value).toEqual(numbers.toSorted((a, b) => a - b).slice(0, limit))
      expect(items.size).toBe(0)
    }),
  )
})
