import { expect, it } from 'vitest'
import { ManualWorld } from '../testing/manual-world.ts'

it('the name of a server goes to the transport at every attempt, so that it is looked up anew', async () => {
  const world = await ManualWorld.start()
  const client = await world.client({ servers: 'zk.example.com:2181' })
  const asked: string[] = []
  world.faults.open = ({ host }) => {
    asked.push(host)
    if (asked.length < 3) throw new Error('getaddrinfo ENOTFOUND')
  }
  world.lastConnection.cut()
  await world.advance(10_000)
  expect(asked).toEqual(['zk.example.com', 'zk.example.com', 'zk.example.com'])
  expect(client.state).toBe('connected')
  await world.end()
})
