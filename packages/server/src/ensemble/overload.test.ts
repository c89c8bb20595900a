import { MemoryDisk } from '@zabra/runtime'
import { holdWrites } from '@zabra/testkit'
import { expect, it } from 'vitest'
import { parseConfiguration } from '../core/quorum/index.ts'
import { Membership } from './membership.ts'
import { Ensemble } from './testing/ensemble.ts'

it.each([1, 2, 3])('clients of member %i are read again when the outstanding writes are done', async (id) => {
  const { ensemble, client } = await Ensemble.withClient(id, {}, { globalOutstandingLimit: 1 })
  client.create(1, '/a')
  for (let xid = 2; xid <= 40; xid++) {
    client.set(xid, '/a', 'x')
    if (xid % 8 === 0) await ensemble.untilIdle()
  }
  await ensemble.until('all replies', () => client.frames.length >= 40, 3000)
  expect(client.takeReceived().filter((reply) => reply.endsWith(':0')).length).toBe(40)
})

it.each([
  ['leader', 'many', { globalOutstandingLimit: 1 }, 'x'],
  ['follower', 'many', { globalOutstandingLimit: 1 }, 'x'],
  ['leader', 'large', {}, 'x'.repeat(600_000)],
  ['follower', 'large', {}, 'x'.repeat(600_000)],
])(
  'a client of a %s with %s writes that is not read for longer than its timeout, while the disks stand still, keeps its session',
  async (role, _, settings, data) => {
    const { ensemble, client } = await Ensemble.withClient(
      role === 'leader' ? 3 : 1,
      { timeout: 2000 },
      settings,
    )
    expect(ensemble.leader).toBe(3)
    const release = [...ensemble.members.values()].map(({ disk }) => holdWrites(disk))
    client.create(1, '/a')
    await ensemble.untilIdle()
    for (let waited = 0; waited < 4; waited++) {
      for (let each = 0; each < 3; each++) client.set(2 + 3 * waited + each, '/a', data)
      await ensemble.advance(1000)
    }
    for (const one of release) one()
    await ensemble.until('all replies', () => client.frames.length >= 13 || client.closed)
    expect(client.takeReceived()).toEqual(Array.from({ length: 13 }, (_, at) => `${at + 1}:0`))
  },
)

it('each member has its share of the outstanding limit', () => {
  const parts = [1000, 3].map((limit) => new Map([1, 2, 3, 4, 5].map((size) => [size, share(size, limit)])))
  expect([...parts[0]!.values()]).toEqual([1000, 1000, 500, 333, 250])
  expect([...parts[1]!.values()]).toEqual([3, 3, 1, 1, 1])
})

function share(size: number, limit: number): number {
  const lines = Array.from(
    { length: size },
    (_, at) => `server.${at + 1}=127.0.0.1:${2000 + at}:${3000 + at}`,
  )
  const written = parseConfiguration(lines.join('\n'))
  return new Membership(1, { active: written }, { disk: new MemoryDisk(), folder: '/', written }).shareOf(
    limit,
  )
}
