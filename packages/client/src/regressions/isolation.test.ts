import { ErrorCode } from '@zabra/protocol'
import { expect, it } from 'vitest'
import { SessionExpiredError } from '../errors.ts'
import { setupEachTest, world } from '../testing/setup.ts'
import { bytes, text } from '../testing/manual-world.ts'

// Bugs of other ZooKeeper clients for Node.
setupEachTest()

it('a consumer of events that throws breaks neither the connection nor other consumers', async () => {
  const client = await world.client()
  const first = await world.outcome(client.watch('/a'))
  const second = await world.outcome(client.watch('/a'))
  const broken = (async () => {
    for await (const event of first) throw new Error(`no use for ${event.type}`)
  })()
  broken.catch(() => {})
  const received = world.collect(second)
  await world.outcome(client.create('/a'))
  await expect(world.outcome(broken)).rejects.toThrow('no use for nodeCreated')
  await world.outcome(client.setData('/a', bytes('1')))
  expect(received).toMatchObject([{ type: 'nodeCreated' }, { type: 'nodeDataChanged' }])
  expect(world.connections).toHaveLength(1)
})

it('a client whose connection is lost repeatedly keeps one connection', async () => {
  const client = await world.client()
  const lasting = await world.outcome(client.watch('/a'))
  const received = world.collect(lasting)
  for (let i = 0; i < 10; i++) {
    world.lastConnection.cut()
    await world.within(5000, client.getData('/'))
  }
  expect(world.connections).toHaveLength(11)
  expect(world.server.stats().connections).toBe(1)
  received.length = 0
  await world.outcome(client.create('/a'))
  expect(received).toMatchObject([{ type: 'nodeCreated' }])
})

it('an expiry carries error code -112, in the client and in every pending call', async () => {
  const client = await world.client()
  const once = await world.outcome(client.watchOnce('/a', 'exists'))
  world.refuseConnections()
  world.lastConnection.cut()
  await world.settle()
  const waiting = client.getData('/')
  waiting.catch(() => {})
  await world.advance(17_000)
  for (const promise of [once.fired, waiting] as Promise<unknown>[]) {
    await expect(world.outcome(promise)).rejects.toMatchObject({
      name: 'SessionExpiredError',
      wireCode: ErrorCode.SESSIONEXPIRED,
      maybeApplied: false,
    })
    await expect(promise).rejects.toThrow(SessionExpiredError)
  }
  delete world.faults.open
})

it('two clients of one process share no state', async () => {
  const [one, two] = [await world.client(), await world.client()]
  await world.outcome(one.create('/a', { data: bytes('1') }))
  await world.outcome(one.close())
  expect(text((await world.outcome(two.getData('/a'))).data)).toBe('1')
  expect(two.state).toBe('connected')
})
