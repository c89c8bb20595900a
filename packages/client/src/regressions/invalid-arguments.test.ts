import { expect, it } from 'vitest'
import { client, setupEachTest, world } from '../testing/setup.ts'
import { bytes, text } from '../testing/manual-world.ts'

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

it('data that is not a Uint8Array is rejected instead of stored as zeros', async () => {
  const done = (async () => client.create('/text', 'hello' as never))()
  done.catch(() => {})
  await world.settle()
  const found = await world.outcome(client.getData('/text')).catch(() => undefined)
  // Would store "\0\0\0\0\0".
  expect(found && text(found.data)).not.toBe(text(new Uint8Array(5)))
  await expect(done).rejects.toThrow()
  void bytes
})
