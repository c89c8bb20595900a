import { OpCode } from '@zabra/protocol'
import { expect, it } from 'vitest'
import { Ensemble } from './testdata/ensemble.ts'

it('elects a leader, replicates a write and survives the crash of the leader', async () => {
  const ensemble = await Ensemble.start(3)
  expect(ensemble.leader).toBe(3)
  expect([1, 2].map((id) => ensemble.server(id).role)).toEqual(['following', 'following'])

  const client = await ensemble.client(1)
  client.create(1, '/a', 0, 'hello')
  await ensemble.until('the answer', () => client.frames.length > 0)
  expect(client.heard()).toEqual(['1:0'])

  await ensemble.member(3).crash()
  await ensemble.until('a new leader', () => ensemble.leader !== undefined)
  expect(ensemble.leader).toBe(2)
  const later = await ensemble.client(1)
  later.look(1, OpCode.getData, '/a')
  later.create(2, '/b')
  await ensemble.until('the answers', () => later.frames.length > 1)
  expect(later.heard()).toEqual(['1:0', '2:0'])

  await ensemble.member(3).start()
  await ensemble.until('the return of 3', () => ensemble.server(3).serving)
  expect(ensemble.server(3).role).toBe('following')
  const last = await ensemble.client(3)
  last.look(1, OpCode.getData, '/b')
  await ensemble.until('the answer', () => last.frames.length > 0)
  expect(last.heard()).toEqual(['1:0'])
})
