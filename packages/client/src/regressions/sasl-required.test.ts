import { expect, it } from 'vitest'
import { setupEachTest, world } from '../testing/setup.ts'

setupEachTest()

it('SESSION_CLOSED_REQUIRE_SASL_AUTH ends the client as authFailed instead of renewing without end', async () => {
  const client = await world.client({ sessionTimeout: 3000 })
  world.faults.toServer = (chunk, connection) => {
    const view = new DataView(chunk.buffer, chunk.byteOffset, chunk.byteLength)
    if (chunk.length > 44 || view.getInt32(4) <= 0) return chunk
    const reply = new Uint8Array(20)
    const r = new DataView(reply.buffer)
    r.setInt32(0, 16)
    r.setInt32(4, view.getInt32(4))
    r.setInt32(16, -124)
    world.clock.immediate(() => {
      connection.deliver(reply)
      connection.cut()
    })
    return undefined
  }
  await expect(world.outcome(client.getData('/'))).rejects.toMatchObject({
    code: 'SESSION_CLOSED_REQUIRE_SASL_AUTH',
  })
  await world.settle()
  expect(client.state).toBe('authFailed')
})
