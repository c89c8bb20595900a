import { json, UsageError } from '@zabra/client/core'
import { UnhandledRejections } from '@zabra/testkit'
import { afterEach, beforeEach, expect, it } from 'vitest'
import { AtomicValue, Configuration, TreeCache } from './index.ts'
import { ServiceDiscovery } from './service-discovery/index.ts'
import { client, run, setupEachTest } from './testing/setup.ts'

// A promise is no result: as JSON it is an object without members, and a filter takes it for true. Its rejection would end the process.

setupEachTest('a')

const unhandled = new UnhandledRejections()
beforeEach(unhandled.begin)
afterEach(unhandled.end)

const results: [string, () => Promise<never>][] = [
  ['resolves', () => Promise.resolve(1) as never],
  ['rejects', () => Promise.reject(new Error('the function of the test'))],
]
const codec = json<number>()

const uses: Record<string, (result: () => never) => Promise<unknown>> = {
  'the function of an update': async (change) => {
    const value = new AtomicValue(client, '/v', { codec, initial: 1 })
    const updated = await run(value.update(change).catch((error: unknown) => error))
    expect((await run(value.get())).value).toBe(1)
    return updated
  },
  'the function of an update of settings': (change) =>
    run(
      new Configuration(client, '/c', { codec, defaults: 1 }).update(change).catch((error: unknown) => error),
    ),
  'the filter of a tree cache': (filter) =>
    run(new TreeCache(client, '/', { filter }).ready.catch((error: unknown) => error)),
  'the filter of a provider': async (filter) => {
    const discovery = new ServiceDiscovery(client, '/s')
    await run(discovery.register({ name: 'api' }))
    const provider = await run(discovery.provider('api', { filter }))
    try {
      return provider.next()
    } catch (error) {
      return error
    }
  },
}

const cases = Object.entries(uses).flatMap(([name, use]) =>
  results.map(([how, result]) => [name, how, use, result] as const),
)

it.each(cases)('%s that is async and %s is refused', async (_name, _how, use, result) => {
  expect(await use(result as never)).toBeInstanceOf(UsageError)
  expect(await unhandled.reasons()).toEqual([])
})
