import { ErrorCode } from '@zabra/protocol'
import { expect, it } from 'vitest'
import type { TappedConnection } from '../testing/manual-world.ts'
import { setupEachTest, world } from '../testing/setup.ts'

setupEachTest()

it('SESSION_CLOSED_REQUIRE_SASL_AUTH ends the client as authFailed instead of renewing without end', async () => {
  const client = await world.client({ sessionTimeoutMs: 3000 })
  const deliver = (connection: TappedConnection, reply: Uint8Array): void =>
    world.clock.immediate(() => {
      connection.deliver(reply)
      connection.cut()
    })
  world.answerWith(ErrorCode.SESSIONCLOSEDREQUIRESASLAUTH, { times: Infinity, deliver })
  await expect(world.outcome(client.getData('/'))).rejects.toMatchObject({
    code: 'SESSION_CLOSED_REQUIRE_SASL_AUTH',
  })
  await world.settle()
  expect(client.state).toBe('authFailed')
})
