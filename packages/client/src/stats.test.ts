import { expect, it } from 'vitest'
import { client, run, setupEachTest, world } from './testing/setup.ts'

setupEachTest({})

it('a client counts its requests, replies and bytes, and measures the latency of replies', async () => {
  const fresh = client.stats()
  expect(fresh).toMatchObject({ inFlight: 0, waiting: 0, sent: 0, received: 0, reconnects: 0 })
  expect(fresh.latencyMs).toBeUndefined()
  const reads = Promise.all([client.getData('/'), client.exists('/none'), client.getChildren('/')])
  expect(client.stats()).toMatchObject({ inFlight: 3, sent: 3, received: 0 })
  await run(reads)
  const after = client.stats()
  expect(after).toMatchObject({ inFlight: 0, sent: 3, received: 3, latencyMs: 0 })
  expect(after.sentBytes - fresh.sentBytes).toBe(58)
  expect(after.receivedBytes - fresh.receivedBytes).toBeGreaterThan(200)
})

it('the latency is the time between request and reply, averaged', async () => {
  const late: Uint8Array[] = []
  world.faults.toClient = (chunk) => void late.push(chunk)
  const read = client.getData('/')
  await world.advance(80)
  delete world.faults.toClient
  for (const chunk of late) world.lastConnection.deliver(chunk)
  await run(read)
  expect(client.stats().latencyMs).toBe(80)
  await run(client.getData('/'))
  expect(client.stats().latencyMs).toBe(70)
})

it('requests without a connection wait, and counts go on over connections', async () => {
  await run(client.getData('/'))
  const { receivedBytes } = client.stats()
  const restore = world.refuseConnections()
  world.lastConnection.cut()
  await world.settle()
  const read = client.getData('/')
  expect(client.stats()).toMatchObject({ inFlight: 0, waiting: 1, reconnects: 0, sent: 1 })
  restore()
  await world.within(5000, read)
  const after = client.chroot('/a').stats()
  expect(after).toMatchObject({ inFlight: 0, waiting: 0, sent: 2, received: 2, reconnects: 1 })
  expect(after.receivedBytes).toBeGreaterThan(receivedBytes)
})

it('a batch of reads counts as one request', async () => {
  const own = await world.client({ batchReads: true })
  await run(Promise.all([own.getData('/'), own.getData('/'), own.getData('/')]))
  expect(own.stats()).toMatchObject({ sent: 1, received: 1, inFlight: 0 })
})
