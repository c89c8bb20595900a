import { ErrorCode, Xid } from '@zabra/protocol'
import { expect, it } from 'vitest'
import { client, other, setupEachTest, world } from '../testing/setup.ts'
import { bytes } from '../testing/manual-world.ts'

setupEachTest({}, {})

it('a rejected SetWatches ends its one-shot watches, which could never fire', async () => {
  await world.outcome(client.create('/a', { data: bytes('1') }))
  const watch = await world.outcome(client.watchOnce('/a', 'data'))
  let settled = false
  watch.fired.then(
    () => (settled = true),
    () => (settled = true),
  )
  // As Apache's server may reply.
  const refused = world.answerWith(ErrorCode.THROTTLEDOP, { matches: ({ xid }) => xid === Xid.setWatches })
  world.connections[0]!.cut()
  await world.advance(3000)
  expect(refused()).toBeGreaterThan(0)
  await world.outcome(other.setData('/a', bytes('2')))
  await world.advance(20_000)
  expect(settled).toBe(true)
})

it('a SetWatches that finds the session expired ends no persistent watch: they outlive sessions', async () => {
  const events = world.collect(await world.outcome(client.watch('/a')))
  // As Apache's servers reply to a session that ends just then.
  const refused = world.answerWith(ErrorCode.SESSIONEXPIRED, { matches: ({ xid }) => xid === Xid.setWatches })
  world.connections[0]!.cut()
  await world.advance(3000)
  expect(refused()).toBe(1)
  await world.outcome(other.create('/a'))
  expect(events).toMatchObject([{ type: 'resync' }, { type: 'nodeCreated' }])
})

it('a SetWatches that a server refuses without a login closes the client, as any other request', async () => {
  await world.outcome(client.watch('/a'))
  world.answerWith(ErrorCode.SESSIONCLOSEDREQUIRESASLAUTH, { matches: ({ xid }) => xid === Xid.setWatches })
  world.connections[0]!.cut()
  await world.advance(3000)
  expect(client.state).toBe('authFailed')
})
