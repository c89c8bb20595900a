import { expect, it } from 'vitest'
import { setupEachTest, world } from '../testing/setup.ts'
import { bytes } from '../testing/manual-world.ts'

setupEachTest()

/** Counts the writes of the client from now on. */
function writes(): () => number {
  let count = 0
  world.faults.toServer = (chunk) => {
    count++
    return chunk
  }
  return () => count
}

it('requests of one turn leave in one write', async () => {
  const client = await world.client()
  await world.outcome(client.create('/a', { data: bytes('1') }))
  const count = writes()
  await world.outcome(Promise.all(Array.from({ length: 300 }, () => client.getData('/a'))))
  expect(count()).toBe(1)
})

it('requests made in reply handlers of one turn leave in one write', async () => {
  const client = await world.client()
  await world.outcome(client.create('/a', { data: bytes('1') }))
  const count = writes()
  const twice = async (): Promise<void> => {
    await client.getData('/a')
    // After some promise turns, as in real programs.
    await Promise.resolve()
    await client.exists('/a')
  }
  await world.outcome(Promise.all(Array.from({ length: 100 }, twice)))
  expect(count()).toBe(2)
})

it('requests that waited for a connection leave in one write, after the watches', async () => {
  const client = await world.client()
  await world.outcome(client.create('/a', { data: bytes('1') }))
  await world.outcome(client.watchOnce('/a', 'data'))
  world.lastConnection.cut()
  await world.settle()
  const count = writes()
  const waiting = Promise.all(Array.from({ length: 50 }, () => client.getData('/a')))
  await world.within(10_000, waiting)
  // The handshake, then all requests.
  expect(count()).toBe(2)
})
