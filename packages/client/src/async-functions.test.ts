import { UnhandledRejections } from '@zabra/testkit'
import { afterEach, beforeEach, expect, it } from 'vitest'
import { json } from './codecs.ts'
import { UsageError } from './errors.ts'
import { client, run, setupEachTest } from './testing/setup.ts'

// A promise is no result: as JSON it is an object without members, and a filter takes it for true. Its rejection would end the process.

setupEachTest({})

const unhandled = new UnhandledRejections()
beforeEach(unhandled.begin)
afterEach(unhandled.end)

const results: [string, () => Promise<never>][] = [
  ['resolves', () => Promise.resolve(1) as never],
  ['rejects', () => Promise.reject(new Error('the function of the test'))],
]

it.each(results)(
  'an update whose function is async and %s is refused, and writes nothing',
  async (_how, change) => {
    const typed = client.withCodec(json<number>())
    await run(typed.create('/n', 1))
    await expect(run(typed.update('/n', change as never))).rejects.toBeInstanceOf(UsageError)
    expect((await run(typed.get('/n'))).value).toBe(1)
    expect(await unhandled.reasons()).toEqual([])
  },
)

it.each(results)('a walk whose filter is async and %s is refused', async (_how, filter) => {
  await run(client.createMissing(['/t/a']))
  const walk = client.walk('/t', { filter: filter as never })
  expect(await run(walk.next())).toMatchObject({ value: '/t' })
  await expect(run(walk.next())).rejects.toBeInstanceOf(UsageError)
  expect(await unhandled.reasons()).toEqual([])
})
