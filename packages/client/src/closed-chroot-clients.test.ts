import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { bytes, ManualWorld } from './testing/manual-world.ts'
import type { Client } from './types.ts'

let world: ManualWorld
let client: Client
beforeEach(async () => {
  world = await ManualWorld.start()
  client = await world.client()
  await world.outcome(client.mkdirp('/app/part'))
})
afterEach(() => world.end())

const closed = { code: 'CLOSED', name: 'ClosedError' }

describe('a view that is closed', () => {
  it('takes the views with it that were made of it, before and after', async () => {
    const view = client.chroot('/app')
    const before = view.chroot('/part')
    const watcher = await world.outcome(before.watch('/'))
    await world.outcome(view.close())
    expect(await world.outcome(watcher[Symbol.asyncIterator]().next())).toEqual({
      done: true,
      value: undefined,
    })
    expect(world.server.stats().watches).toBe(0)
    for (const one of [before, view.chroot('/part')]) {
      await expect(world.outcome(one.getData('/'))).rejects.toMatchObject(closed)
      await expect(world.outcome(one.watchOnce('/', 'data'))).rejects.toMatchObject(closed)
      expect(one.state).toBe('closed')
    }
  })

  it('leaves those alone that it was made of, and those beside it', async () => {
    const view = client.chroot('/app')
    const beside = client.chroot('/app')
    const below = view.chroot('/part')
    await world.outcome(below.close())
    expect((await world.outcome(view.getChildren('/'))).children).toEqual(['part'])
    await world.outcome(view.close())
    expect((await world.outcome(beside.getChildren('/'))).children).toEqual(['part'])
    expect([client.state, beside.state]).toEqual(['connected', 'connected'])
  })

  it('says so to who asks for its state, listens to it or waits for its end', async () => {
    const view = client.chroot('/app')
    const below = view.chroot('/part')
    const heard = world.collect(view.states())
    const heardBelow = world.collect(below.states())
    const others = world.states(client)
    let ended = 0
    for (const one of [view, view, below]) void one.closed.then(() => ended++)
    await world.settle()
    await world.outcome(view.close())
    await world.settle()
    expect(ended).toBe(3)
    for (const changes of [heard, heardBelow]) {
      expect(changes.map(({ state, previous }) => [previous, state])).toEqual([
        ['connecting', 'connected'],
        ['connected', 'closed'],
      ])
      expect(changes.at(-1)!.cause).toMatchObject(closed)
    }
    await world.settle()
    expect(others).toEqual(['connected'])
    expect(await world.outcome(view.closed)).toBeUndefined()
    expect(await world.outcome(client.chroot('/app').exists('/part'))).toBeDefined()
  })

  it('hears nothing but its end when it is listened to too late', async () => {
    const view = client.chroot('/app')
    await world.outcome(view.close())
    const late = world.collect(view.states())
    await world.settle()
    expect(late.map(({ state }) => state)).toEqual(['closed'])
  })

  it('moves nobody to other servers', async () => {
    const view = client.chroot('/app')
    await world.outcome(view.close())
    await expect(view.updateServerList('b:2181')).rejects.toMatchObject(closed)
  })

  it('ends with the client too', async () => {
    const view = client.chroot('/app').chroot('/part')
    const end = view.closed
    await world.outcome(client.create('/app/part/x', bytes('1')))
    await world.outcome(client.close())
    expect(await world.outcome(end)).toBeUndefined()
    expect(view.state).toBe('closed')
  })
})
