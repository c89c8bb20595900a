import { expect, it } from 'vitest'
import { LeastValue } from './least-value.ts'

it('the least value is that of the last five parts, and undefined without any', () => {
  const values = new LeastValue()
  expect(values.least).toBeUndefined()
  values.add(3)
  values.add(-2)
  values.add(7)
  expect(values.least).toBe(-2)
  values.rotate()
  values.add(5)
  for (let part = 0; part < 3; part++) values.rotate()
  expect(values.least).toBe(-2)
  values.rotate()
  expect(values.least).toBe(5)
  values.clear()
  expect(values.least).toBeUndefined()
})
