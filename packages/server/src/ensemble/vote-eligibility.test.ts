import { OpCode } from '@zabra/protocol'
import { expect, it } from 'vitest'
import { Ensemble } from './testing/ensemble.ts'

it('lets a member that has lost its data vote only when a leader has sent it everything', async () => {
  const ensemble = await Ensemble.start(3)
  const client = await ensemble.client(1)
  client.create(1, '/kept')
  await ensemble.until('the answer', () => client.frames.length > 0)
  const lost = ensemble.member(1)
  for (const id of [1, 2, 3]) await ensemble.member(id).crash()
  for (const path of lost.disk.paths()) await lost.disk.remove(path)
  lost.settings = Object.freeze({ ...lost.settings, autoCreateDatabase: false })
  // With the one other it is no quorum, although it is there.
  await lost.start()
  await ensemble.member(2).start()
  await ensemble.advance(30_000)
  expect([ensemble.server(1).role, ensemble.server(2).role]).toEqual(['looking', 'looking'])
  await ensemble.member(3).start()
  await ensemble.until('everybody serves', () => ensemble.running.every(({ serving }) => serving))
  expect(ensemble.leader).toBe(3)
  const reader = await ensemble.client(1)
  reader.read(1, OpCode.exists, '/kept')
  await ensemble.until('the answer', () => reader.frames.length > 0)
  expect(reader.takeReceived()).toEqual(['1:0'])
  // From then on its voice counts.
  await ensemble.member(3).crash()
  await ensemble.until('a leader of two', () => ensemble.leader !== undefined)
})

it('begins with nothing on three members only when all of them may', async () => {
  const ensemble = new Ensemble(3, { autoCreateDatabase: false })
  for (const member of ensemble.members.values()) await member.start()
  await ensemble.advance(30_000)
  expect(ensemble.leader).toBe(undefined)
  for (const member of ensemble.members.values()) {
    await member.crash()
    await member.disk.replaceFile('/data/initialize', new Uint8Array(0))
    await member.start()
  }
  await ensemble.until('everybody serves', () => ensemble.running.every(({ serving }) => serving))
})

it('goes on as a follower when its files turn out not to be those of the ensemble', async () => {
  const ensemble = await Ensemble.start(3)
  const client = await ensemble.client(2)
  for (const [xid, path] of ['/a', '/later', '/latest'].entries()) client.create(xid + 1, path)
  await ensemble.until('the answers', () => client.frames.length > 2)
  await ensemble.member(1).stop()
  const { disk } = ensemble.member(1)
  // A snapshot of another ensemble beside its log: each is whole, and they do not belong together.
  const other = await Ensemble.start(3)
  const stranger = await other.client(2)
  stranger.create(1, '/b')
  await other.until('the answer', () => stranger.frames.length > 0)
  await other.server(1).snapshot()
  const name = '/data/version-2/snapshot.100000002'
  await disk.replaceFile(name, await other.member(1).disk.readFile(name))
  await ensemble.member(1).start()
  await ensemble.until('the return', () => ensemble.server(1).serving)
  expect(ensemble.lines.join('\n')).toContain('it sets them aside')
  const reader = await ensemble.client(1)
  reader.read(1, OpCode.exists, '/a')
  reader.read(2, OpCode.exists, '/b')
  await ensemble.until('the answers', () => reader.frames.length > 1)
  expect(reader.takeReceived()).toEqual(['1:0', '2:-101'])
})
