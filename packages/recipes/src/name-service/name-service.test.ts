import { describe, expect, it } from 'vitest'
import { NodeExistsError, NoNodeError, utf8, type Client } from '@zabra/client/core'
import { client, setupEachTest, other, run, world } from '../testing/setup.ts'
import { connectionFaults, enumerateFaults, tree } from '../testing/fault-fixture.ts'
import { AmbiguousResultError } from '../support/ambiguous-result.ts'
import { NameService } from './name-service.ts'

setupEachTest('a', 'a')
const namesOf = (on: Client): NameService<string> => new NameService(on, '/names', utf8)

describe('a name service', () => {
  it('maps names of any text to values', async () => {
    for (const name of ['a', '.', '..', 'a/b', '', 'ä', '😀', '%']) {
      await run(namesOf(client).register(name, `value of ${name}`))
      expect(await run(namesOf(other).resolve(name, { fresh: true }))).toBe(`value of ${name}`)
    }
    expect(await run(namesOf(other).names())).toEqual(['', '%', '.', '..', 'a', 'a/b', 'ä', '😀'])
    expect(await run(namesOf(other).resolve('none'))).toBeUndefined()
  })

  it('registers a name for exactly one of several clients', async () => {
    const wanting = Array.from({ length: 5 }, (_, n) =>
      namesOf(n % 2 ? client : other).register('a', String(n)),
    )
    const got = await run(Promise.allSettled(wanting))
    expect(got.filter(({ status }) => status === 'fulfilled')).toHaveLength(1)
    const refused = got.find(({ status }) => status === 'rejected') as PromiseRejectedResult
    expect(refused.reason).toBeInstanceOf(NodeExistsError)
  })

  it('updates and unregisters a name', async () => {
    const mine = await run(namesOf(client).register('a', '1'))
    await run(mine.update('2'))
    expect(await run(namesOf(other).resolve('a'))).toBe('2')
    await run(mine.release())
    expect(await run(namesOf(other).resolve('a'))).toBeUndefined()
  })

  it('removes an ephemeral name with its owner', async () => {
    await run(namesOf(other).register('a', '1', { ephemeral: true }))
    await run(other.close())
    expect(await run(namesOf(client).resolve('a'))).toBeUndefined()
  })

  it('renames atomically, and rejects invalid renames', async () => {
    await run(client.create('/names/a', { data: utf8.encode('1'), parents: true }))
    await run(namesOf(client).rename('a', 'b'))
    expect(await run(namesOf(other).names())).toEqual(['b'])
    expect(await run(namesOf(other).resolve('b'))).toBe('1')
    await expect(run(namesOf(client).rename('a', 'c'))).rejects.toBeInstanceOf(NoNodeError)
    await run(client.create('/names/c'))
    await expect(run(namesOf(client).rename('b', 'c'))).rejects.toBeInstanceOf(NodeExistsError)
  })

  it('takes a renamed name from its holder, and does not bring the old name back', async () => {
    const mine = await run(namesOf(client).register('a', '1'))
    await run(namesOf(other).rename('a', 'b'))
    await world.advance(1000)
    expect(await run(namesOf(other).names())).toEqual(['b'])
    await expect(run(mine.update('2'))).rejects.toBeInstanceOf(NoNodeError)
    await run(mine.release())
    expect(await run(namesOf(other).names())).toEqual(['b'])
  })

  it('rejects renaming an ephemeral name, which its holder would create again', async () => {
    await run(namesOf(client).register('a', '1', { ephemeral: true }))
    await expect(run(namesOf(other).rename('a', 'b'))).rejects.toThrow(
      'Expected a name that outlives its session',
    )
    expect(await run(namesOf(other).names())).toEqual(['a'])
  })

  it('never changes or removes a later registration of the same name by another client', async () => {
    const mine = await run(namesOf(client).register('a', '1'))
    await run(other.delete('/names/a'))
    await run(namesOf(other).register('a', 'theirs'))
    await expect(run(mine.update('2'))).rejects.toBeInstanceOf(NoNodeError)
    await run(mine.release())
    expect(await run(namesOf(other).resolve('a'))).toBe('theirs')
  })

  it('applies the last of several concurrent updates, and sets no watch', async () => {
    const mine = await run(namesOf(client).register('a', '1'))
    await run(Promise.all(['2', '3', '4'].map((value) => mine.update(value))))
    expect(await run(namesOf(other).resolve('a', { fresh: true }))).toBe('4')
    expect(world.server.stats().watches).toBe(0)
  })
})

it('example: a service is found by its name', async () => {
  const mine = await run(namesOf(client).register('billing/eu', 'a.example', { ephemeral: true }))
  expect(await run(namesOf(other).resolve('billing/eu'))).toBe('a.example')
  await run(mine.release())
})

it('registers and renames exactly once under any fault at any request', async () => {
  await enumerateFaults(async (fixture, victim) => {
    const observer = await fixture.world.client()
    const names = namesOf(victim.client)
    try {
      const mine = await names.register('a', '1')
      await mine.update('2')
      await names.register('e', '1', { ephemeral: true })
      await observer.create('/names/x', { data: utf8.encode('x') })
      await names.rename('x', 'y')
      await fixture.waitUntilQuiet()
      expect(await namesOf(observer).names()).toEqual(['a', 'e', 'y'])
      expect(await namesOf(observer).resolve('a')).toBe('2')
      await mine.release()
      expect(await namesOf(observer).resolve('a')).toBeUndefined()
    } catch (error) {
      if (!(error instanceof AmbiguousResultError) || !victim.fault?.startsWith('session')) throw error
    }
    await fixture.waitUntilQuiet()
    const left = (await tree(observer)).filter((path) => path.startsWith('/names-marks/'))
    if (left.length > 0) throw new Error(`left behind: ${left.join(' ')}`)
    await victim.client.close()
  }, connectionFaults)
})
