import { expect, it } from 'vitest'
import { client as a, cutOff, setupEachTest, meters, other as b, run, world } from '../testing/setup.ts'
import { rejectionOf, watchSettled } from '../testing/world.ts'
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

it.each(['while it waits', 'when the grace period has passed'])(
  'a revoker that aborts does not wait for a hanging connection: %s',
  async (when) => {
    const held = await run(new RevocableMutex(a, '/lock').acquire())
    const stop = new AbortController()
    const failed = rejectionOf(revoke(b, '/lock', { graceMs: 1000, signal: stop.signal }))
    await world.advance(100)
    world.faults.toServer = (chunk, { server }) => (server.host === 'b' ? undefined : chunk)
    if (when !== 'while it waits') await world.advance(1000)
    stop.abort()
    expect(await world.within(100, failed)).toMatchObject({ name: 'AbortError' })
    await run(held.release())
  },
)
