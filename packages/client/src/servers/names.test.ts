import { expect, it } from 'vitest'
import { setupEachTest, world } from '../testing/setup.ts'

setupEachTest()

it('each attempt passes the server name to the transport, so that it is resolved again', async () => {
  const client = await world.client({ servers: 'zk.example.com:2181' })
  const requested: string[] = []
  world.faults.open = ({ host }) => {
    requested.push(host)
    if (requested.length < 3) throw new Error('getaddrinfo ENOTFOUND')
  }
  world.lastConnection.cut()
  await world.advance(10_000)
  expect(requested).toEqual(['zk.example.com', 'zk.example.com', 'zk.example.com'])
  expect(client.state).toBe('connected')
})
