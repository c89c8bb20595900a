import { expect, it } from 'vitest'
import { client, setupEachTest, world } from '../testing/setup.ts'
import { text } from '../testing/manual-world.ts'

setupEachTest({})

it('an argument of the wrong type rejects its own call and no other', async () => {
  const states = world.states(client)
  // A caller without types: a version as a number.
  const wrong = (async () => client.reconfig({ joining: 'x', version: 5 as never }))()
  await expect(wrong).rejects.toThrow()
  expect(await world.outcome(client.exists('/'))).toBeDefined()
  await world.settle()
  expect(states).toEqual(['connected'])
})

it('an argument of the wrong type in the offline queue does not fail the calls behind it', async () => {
  world.lastConnection.cut()
  await world.settle()
  const wrong = (async () => client.setACL('/', [{ perms: 1, scheme: 'world' } as never]))()
  wrong.catch(() => {})
  const good = client.exists('/')
  expect(await world.within(20_000, good)).toBeDefined()
  await expect(wrong).rejects.toThrow()
})

it('no call throws synchronously', async () => {
  let promise: Promise<unknown> | undefined
  expect(() => {
    promise = client.reconfig({ joining: 'x', version: 5 as never })
    promise.catch(() => {})
  }).not.toThrow()
})

it('text is stored as UTF-8, in a create, a write and a transaction', async () => {
  await world.outcome(client.create('/text', { data: 'hällo' }))
  const read = async (): Promise<string> => text((await world.outcome(client.getData('/text'))).data)
  expect(await read()).toBe('hällo')
  await world.outcome(client.setData('/text', '漢'))
  expect(await read()).toBe('漢')
  await world.outcome(client.multi([{ op: 'setData', path: '/text', data: 'é' }]))
  expect(await read()).toBe('é')
})
