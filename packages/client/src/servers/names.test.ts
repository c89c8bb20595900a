import { expect, it } from 'vitest'
import { World } from '../testdata/world.ts'

it('the name of a server goes to the transport at every attempt, so that it is looked up anew', async () => {
  const world = await World.start()
  const client = await world.client({ servers: 'zk.example.com:2181' })
  const asked: string[] = []
  world.interference.open = ({ host }) => {
    asked.push(host)
    if (asked.length < 3) throw new Error('getaddrinfo ENOTFOUND')
  }
  world.wire.cut()
  await world.advance(10_000)
  expect(asked).toEqual(['zk.example.com', 'zk.example.com', 'zk.example.com'])
  expect(client.state).toBe('connected')
  await world.end()
})
