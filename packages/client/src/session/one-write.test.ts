import { afterEach, beforeEach, expect, it } from 'vitest'
import { bytes, ManualWorld } from '../testing/manual-world.ts'

let world: ManualWorld
beforeEach(async () => {
  world = await ManualWorld.start()
})
afterEach(() => world.end())

/** Counts writes of the client from now on. */
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
  await world.outcome(client.create('/a', bytes('1')))
  const count = writes()
  await world.outcome(Promise.all(Array.from({ length: 300 }, () => client.getData('/a'))))
  expect(count()).toBe(1)
})

it('requests that callers make as their answers come leave in one write too', async () => {
  const client = await world.client()
  await world.outcome(client.create('/a', bytes('1')))
  const count = writes()
  const twice = async (): Promise<void> => {
    await client.getData('/a')
    // Some turns of promises later, as in real programs.
    await Promise.resolve()
    await client.exists('/a')
  }
  await world.outcome(Promise.all(Array.from({ length: 100 }, twice)))
  expect(count()).toBe(2)
})

it('what waited for a connection leaves behind the watches, in one write with them', async () => {
  const client = await world.client()
  await world.outcome(client.create('/a', bytes('1')))
  await world.outcome(client.watchOnce('/a', 'data'))
  world.lastConnection.cut()
  await world.settle()
  const count = writes()
  const waiting = Promise.all(Array.from({ length: 50 }, () => client.getData('/a')))
  await world.within(10_000, waiting)
  // The handshake, and then everything.
  expect(count()).toBe(2)
})
