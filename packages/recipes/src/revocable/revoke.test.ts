import { expect, it } from 'vitest'
import { client as a, cutOff, setupEachTest, meters, other as b, run, world } from '../testing/setup.ts'
import { watchSettled } from '../testing/world.ts'
import { RevocableMutex } from './revocable-mutex.ts'
import { revoke } from './revoke.ts'

setupEachTest('a', 'b')

it('a revoker reads once after a reconnect, without a loop', async () => {
  const held = await run(new RevocableMutex(a, '/lock').acquire())
  const asked = revoke(b, '/lock')
  await world.settle()
  meters[1]!.take()
  cutOff('b')()
  await world.advance(1000)
  expect(meters[1]!.take().requests.length).toBeLessThanOrEqual(3)
  expect(watchSettled(asked)()).toBe(false)
  await run(held.release())
  expect(await run(asked)).toBe('released')
  expect(world.server.stats().watches).toBe(0)
})
