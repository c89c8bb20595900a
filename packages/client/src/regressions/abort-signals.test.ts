import { expect, it } from 'vitest'
import { setupEachTest, world } from '../testing/setup.ts'

setupEachTest()

it('one signal for many calls causes no listener leak warning (Node 20: more than 10 listeners)', async () => {
  const client = await world.client()
  const warnings: string[] = []
  const note = (warning: Error): void => void warnings.push(warning.name)
  process.on('warning', note)
  const { signal } = new AbortController()
  await world.outcome(Promise.all(Array.from({ length: 20 }, () => client.getData('/', { signal }))))
  await new Promise((resolve) => setImmediate(resolve))
  process.off('warning', note)
  expect(warnings).toEqual([])
})
