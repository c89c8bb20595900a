import { expect, it } from 'vitest'
import { Ensemble } from './testing/ensemble.ts'

it('a member that has lost its data votes only after a full sync', async () => {
  const { ensemble, client } = await Ensemble.withClient(1)
  client.create(1, '/kept')
  await ensemble.until('the reply', () => client.frames.length > 0)
  const lost = ensemble.member(1)
  for (const id of [1, 2, 3]) await ensemble.member(id).crash()
  for (const path of lost.disk.paths()) await lost.disk.remove(path)
  lost.settings = Object.freeze({ ...lost.settings, autoCreateDatabase: false })
  // It does not vote, so with one other member there is no quorum.
  await lost.start()
  await ensemble.member(2).start()
  await ensemble.advance(30_000)
  expect([ensemble.server(1).role, ensemble.server(2).role]).toEqual(['looking', 'looking'])
  await ensemble.member(3).start()
  await ensemble.allServe()
  expect(ensemble.leader).toBe(3)
  expect(await ensemble.read(1, '/kept')).toEqual(['1:0'])
  // Its vote counts from now on.
  await ensemble.member(3).crash()
  await ensemble.until('a leader of two', () => ensemble.leader !== undefined)
})

it('three members without data start only when all of them may', async () => {
  const ensemble = new Ensemble(3, { autoCreateDatabase: false })
  for (const member of ensemble.members.values()) await member.start()
  await ensemble.advance(30_000)
  expect(ensemble.leader).toBe(undefined)
  for (const member of ensemble.members.values()) {
    await member.crash()
    await member.disk.replaceFile('/data/initialize', new Uint8Array(0))
    await member.start()
  }
  await ensemble.allServe()
})

it('a member whose files diverge from the ensemble follows after a full sync', async () => {
  const { ensemble, client } = await Ensemble.withClient(2)
  for (const [xid, path] of ['/a', '/later', '/latest'].entries()) client.create(xid + 1, path)
  await ensemble.until('the replies', () => client.frames.length > 2)
  await ensemble.member(1).stop()
  const { disk } = ensemble.member(1)
  // A snapshot of another ensemble beside the log: each is valid, and they do not belong together.
  const other = await Ensemble.start(3)
  const otherClient = await other.client(2)
  otherClient.create(1, '/b')
  await other.until('the reply', () => otherClient.frames.length > 0)
  await other.server(1).snapshot()
  const name = '/data/version-2/snapshot.100000002'
  await disk.replaceFile(name, await other.member(1).disk.readFile(name))
  await ensemble.startServing(1)
  expect(ensemble.lines.join('\n')).toContain('it sets them aside')
  expect(await ensemble.read(1, '/a', '/b')).toEqual(['1:0', '2:-101'])
})
