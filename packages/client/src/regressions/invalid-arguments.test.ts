import { afterEach, beforeEach, expect, it } from 'vitest'
import { bytes, text, ManualWorld } from '../testing/manual-world.ts'
import type { Client } from '../types.ts'

let world: ManualWorld
let client: Client
beforeEach(async () => {
  world = await ManualWorld.start()
  client = await world.client()
})
afterEach(() => world.end())

it('an argument of the wrong type rejects its own call and hurts no other one', async () => {
  const states = world.states(client)
  // What a caller without types writes: a version as a number, an entry without an id.
  const wrong = (async () => client.reconfig({ joining: 'x', version: 5 as never }))()
  await expect(wrong).rejects.toThrow()
  expect(await world.outcome(client.exists('/'))).toBeDefined()
  await world.settle()
  expect(states).toEqual(['connected'])
})

it('an argument of the wrong type that waits offline does not take the calls behind it along', async () => {
  world.lastConnection.cut()
  await world.settle()
  const wrong = (async () => client.setACL('/', [{ perms: 1, scheme: 'world' } as never]))()
  wrong.catch(() => {})
  const good = client.exists('/')
  expect(await world.within(20_000, good)).toBeDefined()
  await expect(wrong).rejects.toThrow()
})

it('never throws synchronously', async () => {
  let promise: Promise<unknown> | undefined
  expect(() => {
    promise = client.reconfig({ joining: 'x', version: 5 as never })
    promise.catch(() => {})
  }).not.toThrow()
})

it('refuses data that is no Uint8Array instead of storing zeros', async () => {
  const done = (async () => client.create('/text', 'hello' as never))()
  done.catch(() => {})
  await world.settle()
  const found = await world.outcome(client.getData('/text')).catch(() => undefined)
  // Stored is "\0\0\0\0\0".
  expect(found && text(found.data)).not.toBe(text(new Uint8Array(5)))
  await expect(done).rejects.toThrow()
  void bytes
})
