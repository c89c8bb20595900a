import { expect, it } from 'vitest'
import { setupEachTest, world } from '../testing/setup.ts'

setupEachTest()

it('an unchanged server list does not interrupt the current connection attempt', async () => {
  const client = await world.client()
  const { transport } = world
  void transport
  // The next connection takes 400 ms to open.
  const inner = world.network.connect.bind(world.network)
  world.network.connect = async (to) => {
    await new Promise<void>((resolve) => world.clock.after(400, 'slow network', resolve))
    return inner(to)
  }
  world.lastConnection.cut()
  for (let i = 0; i < 60; i++) {
    await world.advance(300)
    await world.outcome(client.updateServerList('a:2181'))
  }
  expect(client.state).toBe('connected')
  await world.advance(3000)
})

it('two server list updates during a pending move leave no timer that breaks a later move', async () => {
  const client = await world.client({ servers: 'a:2181' })
  // The server delays its replies, so that the move has to wait.
  let held: Uint8Array[] | undefined = []
  world.faults.toClient = (chunk) => (held === undefined ? chunk : (held.push(chunk.slice()), undefined))
  const first = client.getData('/')
  await world.settle()
  await world.outcome(client.updateServerList('b:2181'))
  await world.outcome(client.updateServerList('c:2181'))
  const connection = world.lastConnection
  for (const chunk of held.splice(0)) connection.deliver(chunk)
  held = undefined
  await world.outcome(first)
  await world.advance(3000)
  expect(client.state).toBe('connected')
  expect(world.lastConnection.server.host).toBe('c')
  const drains = world.clock.pendingTimers().filter(({ name }) => name.startsWith('drain'))
  expect(drains).toEqual([])
})

it('a move after two superseded updates takes place', async () => {
  const client = await world.client({ servers: 'a:2181' })
  let held: Uint8Array[] | undefined = []
  world.faults.toClient = (chunk) => (held === undefined ? chunk : (held.push(chunk.slice()), undefined))
  const first = client.getData('/')
  await world.settle()
  await world.outcome(client.updateServerList('b:2181'))
  await world.advance(500)
  await world.outcome(client.updateServerList('c:2181'))
  let connection = world.lastConnection
  for (const chunk of held.splice(0)) connection.deliver(chunk)
  held = undefined
  await world.outcome(first)
  await world.advance(1500)
  expect(world.lastConnection.server.host).toBe('c')
  // A third update, again behind a request with a delayed reply: after the stale timer (T/3 = 4 s) has fired.
  held = []
  const second = client.getData('/')
  await world.settle()
  await world.outcome(client.updateServerList('d:2181'))
  const waiting = client.getData('/')
  await world.advance(3000)
  connection = world.lastConnection
  for (const chunk of held.splice(0)) connection.deliver(chunk)
  held = undefined
  await world.outcome(second)
  expect(await world.within(8000, waiting)).toBeDefined()
  expect(world.lastConnection.server.host).toBe('d')
})
