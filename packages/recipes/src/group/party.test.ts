import { expect, it } from 'vitest'
import { client, expireSession, other, run, setupEachTest, world } from '../testing/setup.ts'
import { bytes } from '../testing/world.ts'
import { Party } from './party.ts'

setupEachTest('a', 'b')

it.each(['party', 'shallow'] as const)(
  'members of a %s join, stay across sessions and leave',
  async (layout) => {
    const mine = new Party(client, '/party', { layout })
    const theirs = new Party(other, '/party', { layout })
    const member = await run(mine.join('me'))
    const second = await run(theirs.join('me'))
    expect(await run(theirs.members())).toEqual(['me', 'me'])
    await expireSession('a')
    await world.advance(1000)
    expect(await run(theirs.members())).toEqual(['me', 'me'])
    await run(member.release())
    expect(await run(theirs.members())).toEqual(['me'])
    await run(second.release())
    expect(await run(mine.members())).toEqual([])
  },
)

it('a party lists the members of kazoo, whose names differ by layout', async () => {
  await run(other.createMissing([{ path: '/deep', mode: 'container' }]))
  await run(other.create('/deep/0123abcd__party__', { data: bytes('a-b') }))
  await run(other.create('/deep/unrelated', { data: bytes('x') }))
  expect(await run(new Party(client, '/deep').members())).toEqual(['a-b'])
  await run(other.createMissing([{ path: '/shallow', mode: 'container' }]))
  await run(other.create('/shallow/0123abcd-a-b'))
  expect(await run(new Party(client, '/shallow', { layout: 'shallow' }).members())).toEqual(['a-b'])
})

it('a shallow party refuses an identifier that is no name', async () => {
  await expect(new Party(client, '/p', { layout: 'shallow' }).join('a/b')).rejects.toThrow('without slashes')
})
