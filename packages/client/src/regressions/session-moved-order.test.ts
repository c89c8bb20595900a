import { ErrorCode } from '@zabra/protocol'
import { expect, it } from 'vitest'
import { client, setupEachTest, world } from '../testing/setup.ts'

setupEachTest({})

it('requests keep their order when the first of several is answered with SessionMoved', async () => {
  // The requests do not reach the server, since both are in one chunk.
  const moved = world.answerWith(ErrorCode.SESSIONMOVED)
  const parent = client.create('/p', { idempotent: true })
  const child = client.create('/p/c', { idempotent: true })
  const results = await world.within(10_000, Promise.allSettled([parent, child]))
  expect(moved()).toBe(1)
  expect(
    results.map((one) => (one.status === 'fulfilled' ? one.value.path : (one.reason as Error).name)),
  ).toEqual(['/p', '/p/c'])
})
