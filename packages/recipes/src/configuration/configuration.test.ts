import { describe, expect, it } from 'vitest'
import { BadVersionError, json, UsageError, type Client } from '@zabra/client/core'
import { client, setupEachTest, other, run, world } from '../testing/setup.ts'
import { connectionFaults, enumerateFaults } from '../testing/fault-fixture.ts'
import { bytes } from '../testing/world.ts'
import { Configuration } from './configuration.ts'

interface Limits {
  readonly jobs: number
}
const codec = json<Limits>((value) => {
  if (typeof (value as Limits).jobs !== 'number') throw new TypeError('no number of jobs')
  return value as Limits
})

setupEachTest('a', 'a')
const configOf = (on: Client): Configuration<Limits> =>
  new Configuration(on, '/c/limits', { codec, defaults: { jobs: 1 } })

describe('a configuration', () => {
  it('starts with its defaults, written once', async () => {
    const [a, b] = await run(Promise.all([configOf(client).get(), configOf(other).get()]))
    expect(a).toEqual(b)
    expect(a).toMatchObject({ value: { jobs: 1 }, version: 0 })
  })

  it('rejects when the znode is missing and there are no defaults', async () => {
    await expect(run(new Configuration(client, '/none', { codec }).get())).rejects.toBeInstanceOf(UsageError)
  })

  it('delivers the newest value to every reader', async () => {
    const abort = new AbortController()
    const seen = world.collect(configOf(other).updates({ signal: abort.signal }))
    await world.settle()
    await run(configOf(client).set({ jobs: 2 }))
    await world.settle()
    expect(await run(configOf(client).update(({ jobs }) => ({ jobs: jobs * 2 })))).toEqual({ jobs: 4 })
    await world.settle()
    expect(seen.map(({ value }) => value.jobs)).toEqual([1, 2, 4])
    abort.abort()
    await world.settle()
    expect(world.server.stats().watches).toBe(0)
  })

  it('rejects a versioned set over a newer value', async () => {
    const { version } = await run(configOf(client).get())
    await run(configOf(client).set({ jobs: 2 }, { version }))
    await expect(run(configOf(other).set({ jobs: 3 }, { version }))).rejects.toBeInstanceOf(BadVersionError)
  })

  it('keeps the last valid value when an invalid one is written, and reports it', async () => {
    const bad: unknown[] = []
    const config = new Configuration(client, '/c', {
      codec,
      defaults: { jobs: 1 },
      onInvalid: (cause) => void bad.push(cause),
    })
    const seen = world.collect(config.updates())
    await world.settle()
    await run(other.setData('/c', bytes('{"jobs":"many"}')))
    await world.settle()
    await run(other.setData('/c', bytes('{"jobs":3}')))
    await world.settle()
    expect(seen.map(({ value }) => value.jobs)).toEqual([1, 3])
    expect(bad).toMatchObject([{ code: 'DECODE_FAILED', cause: { message: 'no number of jobs' } }])
  })

  it.each<[string, (error: Error) => void]>([
    [
      'throws',
      (error) => {
        throw error
      },
    ],
    ['rejects', (error) => Promise.reject(error)],
  ])('ends the loop with the error of an onInvalid that %s', async (_how, onInvalid) => {
    const failure = new Error('the callback of the test')
    const config = new Configuration(client, '/c', { codec, onInvalid: () => onInvalid(failure) })
    await run(other.create('/c', { data: bytes('{"jobs":"many"}') }))
    await expect(run(config.updates().next())).rejects.toBe(failure)
  })

  it('delivers a value that was deleted and written again with the same version (Curator issue 911)', async () => {
    const seen = world.collect(configOf(other).updates())
    await world.settle()
    world.faults.open = ({ host }) => {
      if (host === 'a') throw new Error('cut off')
    }
    world.connections[1]!.cut()
    await run(client.delete('/c/limits'))
    await run(client.create('/c/limits', { data: bytes('{"jobs":9}') }))
    delete world.faults.open
    await world.advance(12_000)
    expect(seen.at(-1)).toMatchObject({ value: { jobs: 9 }, version: 0 })
  })

  it('delivers the last of ten thousand values without delivering all of them', async () => {
    const seen = world.collect(configOf(other).updates())
    await world.settle()
    const writes = Array.from({ length: 10_000 }, (_, jobs) => configOf(client).set({ jobs }))
    await run(Promise.all(writes))
    await world.settle()
    expect(seen.at(-1)!.value.jobs).toBe(9999)
  })

  it('spreads the reads of many readers with jitterMs', async () => {
    const config = new Configuration(other, '/c', { codec, defaults: { jobs: 1 }, jitterMs: 1000 })
    const seen = world.collect(config.updates())
    await world.settle()
    await run(client.setData('/c', bytes('{"jobs":2}')))
    await world.advance(1100)
    expect(seen.map(({ value }) => value.jobs)).toEqual([1, 2])
  })
})

it('example: limits that follow the servers', async () => {
  const config = configOf(client)
  const applied: number[] = []
  const following = (async () => {
    for await (const { value } of config.updates()) if (applied.push(value.jobs) === 2) break
  })()
  await world.settle()
  await run(config.set({ jobs: 8 }))
  await run(following)
  expect(applied).toEqual([1, 8])
})

it('delivers the newest value in the end under any fault at any request', async () => {
  await enumerateFaults(async (fixture, victim) => {
    const writer = await fixture.world.client()
    const abort = new AbortController()
    const seen = fixture.world.collect(configOf(victim.client).updates({ signal: abort.signal }))
    await configOf(writer).set({ jobs: 2 })
    await configOf(victim.client).set({ jobs: 3 })
    await configOf(writer).set({ jobs: 4 })
    await fixture.waitUntilQuiet()
    expect(seen.at(-1)).toMatchObject({ value: { jobs: 4 } })
    abort.abort()
    await fixture.waitUntilQuiet()
  }, connectionFaults)
})
