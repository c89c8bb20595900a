import { CreateMode, OpCode, writeMultiRequest } from '@zabra/protocol'
import { expect, it } from 'vitest'
import { Ensemble } from './testing/ensemble.ts'

const hasSameState = (ensemble: Ensemble): boolean =>
  new Set(ensemble.running.map((server) => `${server.stats().nodes} ${server.stats().lastZxid}`)).size === 1

it('closing a session with many ephemeral nodes deletes them on every member, in order with later requests', async () => {
  const ensemble = await Ensemble.start(3)
  const [owner, other] = [await ensemble.client(1), await ensemble.client(2)]
  const before = ensemble.server(1).stats().nodes
  for (let i = 0; i < 1500; i++) owner.create(i, `/own ${i}`, CreateMode.EPHEMERAL)
  await ensemble.until('all ephemerals', () => owner.frames.length === 1500)
  owner.frames.length = 0
  owner.ask(1, OpCode.closeSession)
  await ensemble.untilIdle()
  for (let i = 0; i < 20; i++) other.set(i, '/', `value ${i}`)
  other.read(20, OpCode.exists, '/own 7')
  await ensemble.until('all replies', () => owner.frames.length === 1 && other.frames.length === 21)
  expect(owner.takeReceived()).toEqual(['1:0'])
  expect(other.takeReceived()).toEqual([...Array.from({ length: 20 }, (_, i) => `${i}:0`), '20:-101'])
  await ensemble.until('the same state on all members', () => hasSameState(ensemble))
  expect(ensemble.server(3).stats().nodes).toBe(before)
})

it('a large multi through a follower is applied on every member, also after a crash', async () => {
  const { ensemble, client } = await Ensemble.withClient(1)
  const parts = Array.from({ length: 1200 }, (_, i) => ({
    type: OpCode.setData,
    path: '/',
    data: new TextEncoder().encode(`value ${i}`),
    version: -1,
  }))
  client.ask(1, OpCode.multi, (w) => writeMultiRequest(w, parts))
  client.read(2, OpCode.getData, '/')
  await ensemble.until('the replies', () => client.frames.length === 2)
  expect(new TextDecoder().decode(client.replies()[1]!.body.buffer()!)).toBe('value 1199')
  await ensemble.restart(2)
  await ensemble.until('the same state on all members', () => hasSameState(ensemble))
  const later = await ensemble.client(2)
  later.read(1, OpCode.getData, '/')
  await ensemble.until('the reply', () => later.frames.length === 1)
  expect(new TextDecoder().decode(later.replies()[0]!.body.buffer()!)).toBe('value 1199')
})

it('closing a session whose ephemeral paths exceed the request limit deletes them on every member', async () => {
  const ensemble = await Ensemble.start(3)
  const owner = await ensemble.client(1)
  const before = ensemble.server(1).stats().nodes
  for (let i = 0; i < 2400; i++) owner.create(i, `/own ${i} ${'x'.repeat(1000)}`, CreateMode.EPHEMERAL)
  await ensemble.until('all ephemerals', () => owner.frames.length === 2400)
  owner.frames.length = 0
  owner.ask(1, OpCode.closeSession)
  await ensemble.until('the reply', () => owner.frames.length === 1)
  expect(owner.takeReceived()).toEqual(['1:0'])
  await ensemble.until('the same state on all members', () => hasSameState(ensemble))
  expect(ensemble.server(3).stats().nodes).toBe(before)
  // The transaction can be read from the log by a member that restarts.
  await ensemble.restart(2)
  expect(ensemble.server(2).stats().nodes).toBe(before)
})
