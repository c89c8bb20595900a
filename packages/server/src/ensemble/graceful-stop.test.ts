import { OpCode } from '@zabra/protocol'
import { holdWrites } from '@zabra/testkit'
import { expect, it } from 'vitest'
import { Ensemble } from './testing/ensemble.ts'

it.each([
  { role: 'follower', id: 1 },
  { role: 'leader', id: 3 },
  { role: 'observer', id: 4 },
])('a $role that stops answers the requests that it has received, and takes no later one', async ({ id }) => {
  const ensemble = await Ensemble.start(4, { observers: [4] })
  const [client, watcher] = [await ensemble.client(id), await ensemble.client(id)]
  watcher.read(1, OpCode.exists, '/second', true)
  expect(await ensemble.receive(watcher, 1)).toEqual(['1:-101'])
  client.batch(() => {
    client.create(1, '/first')
    client.sync(2)
    client.create(3, '/second')
    client.read(4, OpCode.exists, '/second')
  })
  // The server has received them when it is asked to stop.
  ensemble.clock.advance(0)
  const stopping = ensemble.member(id).stop()
  client.create(5, '/late')
  await ensemble.until('the end of the connections', () => client.closed && watcher.closed, 2000)
  expect(client.takeReceived()).toEqual(['1:0', '2:0', '3:0', '4:0'])
  expect(watcher.takeReceived()).toEqual(['event 1 /second'])
  await stopping
  await ensemble.until('a leader', () => ensemble.leader !== undefined)
  expect(await ensemble.read(2, '/second', '/late')).toEqual(['1:0', '2:-101'])
})

it.each([1, 3])('member %i stops in time when its writes cannot be committed', async (id) => {
  const ensemble = await Ensemble.start(3)
  const client = await ensemble.client(id)
  for (const other of [1, 2, 3]) if (other !== id) holdWrites(ensemble.member(other).disk)
  client.create(1, '/a')
  await ensemble.untilIdle()
  let isStopped = false
  const stopping = ensemble
    .member(id)
    .stop()
    .then(() => (isStopped = true))
  await ensemble.until('the stop', () => isStopped, 12_000)
  expect([client.closed, client.takeReceived()]).toEqual([true, []])
  await stopping
})
