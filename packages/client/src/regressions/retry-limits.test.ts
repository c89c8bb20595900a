import { ErrorCode } from '@zabra/protocol'
import { expect, it } from 'vitest'
import { client, setupEachTest, world } from '../testing/setup.ts'

setupEachTest({ sessionTimeoutMs: 3000 })

it('maxElapsedMs also limits waiting for a connection', async () => {
  const options = { retry: { maxElapsedMs: 1000 } }
  const done = client.getData('/', options)
  await world.outcome(done)
  world.faults.toServer = () => undefined
  let failed = false
  client.getData('/', options).catch(() => (failed = true))
  await world.settle()
  delete world.faults.toServer
  world.refuseConnections()
  world.lastConnection.cut()
  await world.advance(2500)
  delete world.faults.open
  expect(failed).toBe(true)
})

it('maxElapsedMs also limits a call whose retry is due while there is no connection', async () => {
  world.answerWith(ErrorCode.THROTTLEDOP)
  let failed = false
  client.getData('/', { retry: { maxElapsedMs: 1000, capMs: 100 } }).catch(() => (failed = true))
  await world.settle()
  world.refuseConnections()
  world.lastConnection.cut()
  await world.advance(2500)
  expect(failed).toBe(true)
})

it('a retry begins within maxElapsedMs, however long its delay would be', async () => {
  const refused = world.answerWith(ErrorCode.THROTTLEDOP, { times: 100 })
  let failed = false
  client
    .getData('/', { retry: { maxElapsedMs: 500, baseMs: 100_000, capMs: 100_000 } })
    .catch(() => (failed = true))
  await world.advance(600)
  expect([failed, refused()]).toEqual([true, 2])
})
