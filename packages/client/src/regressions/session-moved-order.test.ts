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

it.each([false, true])(
  'a session that has moved is connected again, also by a read that must not be retried (batched: %s)',
  async (batchReads) => {
    const own = await world.client({ batchReads, retry: () => false })
    world.answerWith(ErrorCode.SESSIONMOVED)
    const reads = [own.getData('/'), own.getData('/')]
    for (const { status } of await world.within(1000, Promise.allSettled(reads)))
      expect(status).toBe('rejected')
    await world.advance(3000)
    expect([own.state, own.stats().reconnects]).toEqual(['connected', 1])
  },
)

it('a function that allows some retries of a batch whose session has moved is asked once about each', async () => {
  const asked: (string | undefined)[] = []
  const own = await world.client({
    batchReads: true,
    retry: ({ path }) => {
      asked.push(path)
      return path === '/' && 0
    },
  })
  world.answerWith(ErrorCode.SESSIONMOVED)
  const reads = Promise.allSettled([own.getData('/'), own.getData('/zookeeper'), own.getData('/')])
  const results = await world.within(5000, reads)
  expect(results.map(({ status }) => status)).toEqual(['fulfilled', 'rejected', 'fulfilled'])
  expect(asked).toEqual(['/', '/zookeeper', '/'])
})
