import { beforeEach, describe, expect, it } from 'vitest'
import { client, setupEachTest, world } from './testing/setup.ts'
import { bytes } from './testing/manual-world.ts'

setupEachTest({})
beforeEach(() => world.outcome(client.createMissing(['/app/part'])))

const closed = { code: 'CLOSED', name: 'ClosedError' }

describe('a chroot client that is closed', () => {
  it('closes the chroot clients derived from it, earlier or later', async () => {
    const chrootClient = client.chroot('/app')
    const before = chrootClient.chroot('/part')
    const watcher = await world.outcome(before.watch('/'))
    await world.outcome(chrootClient.close())
    expect(await world.outcome(watcher[Symbol.asyncIterator]().next())).toEqual({
      done: true,
      value: undefined,
    })
    expect(world.server.stats().watches).toBe(0)
    for (const one of [before, chrootClient.chroot('/part')]) {
      await expect(world.outcome(one.getData('/'))).rejects.toMatchObject(closed)
      await expect(world.outcome(one.watchOnce('/', 'data'))).rejects.toMatchObject(closed)
      expect(one.state).toBe('closed')
    }
  })

  it('leaves its parent and its siblings open', async () => {
    const chrootClient = client.chroot('/app')
    const beside = client.chroot('/app')
    const below = chrootClient.chroot('/part')
    await world.outcome(below.close())
    expect((await world.outcome(chrootClient.getChildren('/'))).children).toEqual(['part'])
    await world.outcome(chrootClient.close())
    expect((await world.outcome(beside.getChildren('/'))).children).toEqual(['part'])
    expect([client.state, beside.state]).toEqual(['connected', 'connected'])
  })

  it('reports its end through state, states() and closed', async () => {
    const chrootClient = client.chroot('/app')
    const below = chrootClient.chroot('/part')
    const received = world.collect(chrootClient.states())
    const heardBelow = world.collect(below.states())
    const others = world.states(client)
    let ended = 0
    for (const one of [chrootClient, chrootClient, below]) void one.closed.then(() => ended++)
    await world.settle()
    await world.outcome(chrootClient.close())
    await world.settle()
    expect(ended).toBe(3)
    for (const changes of [received, heardBelow]) {
      expect(changes.map(({ state, previous }) => [previous, state])).toEqual([
        ['connecting', 'connected'],
        ['connected', 'closed'],
      ])
      expect(changes.at(-1)!.cause).toMatchObject(closed)
    }
    await world.settle()
    expect(others).toEqual(['connected'])
    expect(await world.outcome(chrootClient.closed)).toBeUndefined()
    expect(await world.outcome(client.chroot('/app').exists('/part'))).toBeDefined()
  })

  it('yields only its final state when states() is called after the close', async () => {
    const chrootClient = client.chroot('/app')
    await world.outcome(chrootClient.close())
    const late = world.collect(chrootClient.states())
    await world.settle()
    expect(late.map(({ state }) => state)).toEqual(['closed'])
  })

  it('rejects updateServerList', async () => {
    const chrootClient = client.chroot('/app')
    await world.outcome(chrootClient.close())
    await expect(chrootClient.updateServerList('b:2181')).rejects.toMatchObject(closed)
  })

  it('closes with the client that owns the session', async () => {
    const chrootClient = client.chroot('/app').chroot('/part')
    const end = chrootClient.closed
    await world.outcome(client.create('/app/part/x', { data: bytes('1') }))
    await world.outcome(client.close())
    expect(await world.outcome(end)).toBeUndefined()
    expect(chrootClient.state).toBe('closed')
  })
})
