import { expect, it } from 'vitest'
import { isOneStep, partsOf, STEP, StepCounter } from './steps.ts'

const short = Array.from({ length: STEP }, (_, i) => `/${i}`)

it('a step has a hundred parts with short paths, and fewer with long ones', () => {
  const begun = (paths: readonly string[]): number[] => {
    const counter = new StepCounter()
    return paths.flatMap((path, i) => (counter.begins(path) ? [i] : []))
  }
  expect(begun([...short, ...short, '/'])).toEqual([100, 200])
  expect(partsOf('x'.repeat(10_000))).toBe(40)
  expect(begun(Array.from({ length: 6 }, () => 'x'.repeat(10_000)))).toEqual([2, 4])
})

it('a part with a path that is longer than a step is a step of its own', () => {
  const counter = new StepCounter()
  const long = 'x'.repeat(1_000_000)
  expect([long, '/', long, long].map((path) => counter.begins(path))).toEqual([false, true, true, true])
})

it('a step has fewer parts where long access control lists were looked at for them', () => {
  const counter = new StepCounter()
  const begun = short.flatMap((path, i) => {
    const isFirst = counter.begins(path)
    counter.addAclEntries(485)
    return isFirst ? [i] : []
  })
  expect(begun.slice(0, 3)).toEqual([3, 6, 9])
})

it('a transaction is one step while its paths fit into one', () => {
  expect([isOneStep([]), isOneStep(short), isOneStep([...short, '/'])]).toEqual([true, true, false])
  expect(isOneStep(['x'.repeat(20_000), 'x'.repeat(20_000)])).toBe(false)
})
