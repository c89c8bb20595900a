import { expect, it } from 'vitest'
import { ErrorCode } from '@zabra/protocol'
import { client, run, setupEachTest, world } from './testing/setup.ts'
import type { ZooKeeperError } from './errors.ts'

setupEachTest({})

it('a function decides on the delay of each retry, by the error and the number of attempts', async () => {
  world.answerWith(ErrorCode.THROTTLEDOP, { times: 2 })
  const asked: unknown[] = []
  const retry = (error: ZooKeeperError, attempt: number): number => {
    asked.push([error.code, error.path, attempt])
    return attempt * 100
  }
  const read = client.getData('/', { retry })
  let done = false
  void read.then(() => (done = true))
  await world.advance(299)
  expect(done).toBe(false)
  await world.advance(1)
  expect(done).toBe(true)
  expect(asked).toEqual([
    ['THROTTLED_OP', '/', 1],
    ['THROTTLED_OP', '/', 2],
  ])
})

it.each([
  ['returns false', () => false as const],
  ['returns no number', () => 'soon' as never],
  [
    'throws',
    () => {
      throw new Error('broken')
    },
  ],
])('a call rejects with its own error when the function %s', async (_name, retry) => {
  world.answerWith(ErrorCode.THROTTLEDOP)
  await expect(run(client.getData('/', { retry }))).rejects.toMatchObject({ code: 'THROTTLED_OP' })
})

it('the function of a client decides on the calls that have none', async () => {
  const asked: string[] = []
  const own = await world.client({
    retry: (error) => {
      asked.push(`${error.code} ${error.operation}`)
      return error.operation === 'exists' ? 0 : false
    },
  })
  world.loseRequest()
  const results = Promise.allSettled([own.getData('/'), own.exists('/'), own.create('/a')])
  await world.advance(5000)
  expect((await results).map(({ status }) => status)).toEqual(['rejected', 'fulfilled', 'rejected'])
  // No function is asked about a create that must not be sent twice.
  expect(asked).toEqual(['CONNECTION_LOSS getData', 'CONNECTION_LOSS exists'])
})

it('batched reads ask the function when their session has moved', async () => {
  const own = await world.client({ batchReads: true, retry: (error) => error.code !== 'SESSION_MOVED' && 0 })
  world.answerWith(ErrorCode.SESSIONMOVED)
  const reads = Promise.allSettled([own.getData('/'), own.getData('/')])
  await world.advance(1000)
  for (const read of await reads)
    expect(read).toMatchObject({ status: 'rejected', reason: { code: 'SESSION_MOVED' } })
})
