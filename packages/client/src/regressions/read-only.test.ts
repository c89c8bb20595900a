import { expect, it } from 'vitest'
import { setupEachTest, world } from '../testing/setup.ts'

setupEachTest()

it('a probe that throws counts as an unknown result, and the timer does not throw', async () => {
  let ro = true
  world.faults.toClient = (chunk) => {
    if (ro && chunk.length === 41) {
      chunk = chunk.slice()
      chunk[40] = 1
      ro = false
    }
    return chunk
  }
  const { transport } = world
  const client = await world.client({
    readOnly: true,
    transport: {
      ...transport,
      probe: () => {
        throw new Error('no such thing')
      },
    },
  })
  expect(client.state).toBe('connectedReadOnly')
  await world.advance(10_000)
  expect(client.state).toBe('connected')
})

it('a session that only read-only servers know is requested with an empty password', async () => {
  let ro = true
  const passwords: string[] = []
  world.faults.toClient = (chunk) => {
    if (ro && chunk.length === 41) {
      chunk = chunk.slice()
      chunk[40] = 1
      ro = false
    }
    return chunk
  }
  const client = await world.client({ readOnly: true })
  expect(client.state).toBe('connectedReadOnly')
  world.faults.toServer = (chunk) => {
    if (chunk.length === 49) passwords.push(Buffer.from(chunk.subarray(32, 48)).toString('hex'))
    return chunk
  }
  const waiting = client.create('/a', undefined, { waitForReadWrite: true })
  await world.advance(3000)
  expect(client.state).toBe('connected')
  await waiting
  expect(new Set(passwords)).toEqual(new Set(['0'.repeat(32)]))
})

it('requests that waited for a read-write server are sent before later ones', async () => {
  const client = await world.client()
  let refused = false
  world.faults.toServer = (chunk, connection) => {
    const view = new DataView(chunk.buffer, chunk.byteOffset, chunk.byteLength)
    if (refused || view.getInt32(4) <= 0) return chunk
    refused = true
    const reply = new Uint8Array(20)
    const r = new DataView(reply.buffer)
    r.setInt32(0, 16)
    r.setInt32(4, view.getInt32(4))
    r.setInt32(16, -119)
    world.clock.immediate(() => connection.deliver(reply))
    return undefined
  }
  const parent = client.create('/p', undefined, { waitForReadWrite: true })
  await world.settle()
  world.lastConnection.cut()
  await world.settle()
  const child = client.create('/p/c', undefined, { waitForReadWrite: true })
  const results = await world.within(5000, Promise.allSettled([parent, child]))
  expect(results.map(({ status }) => status)).toEqual(['fulfilled', 'fulfilled'])
})
