import { describe, expect, it, vi } from 'vitest'
import { UsageError, type Client } from '@zabra/client/core'
import { client, cutOff, setupEachTest, other, run, world } from '../testing/setup.ts'
import { enumerateFaults, faults, retryWithoutSignal } from '../testing/fault-fixture.ts'
import { bytes } from '../testing/world.ts'
import { TreeCache } from '../tree-cache/tree-cache.ts'
import { InstanceIdConflictError, ServiceDiscovery } from './service-discovery.ts'
import type { ServiceProvider } from './provider.ts'

setupEachTest('a', 'b')
const discoveryOf = (on: Client): ServiceDiscovery => new ServiceDiscovery(on, '/services')
const ids = (provider: ServiceProvider<unknown>): string =>
  provider
    .all()
    .map(({ id }) => id)
    .join(',')

describe('a registered instance', () => {
  it('is found under its name and id', async () => {
    const me = await run(
      discoveryOf(client).register({ name: 'api', address: 'host', port: 80, payload: 'x' }),
    )
    expect(await run(discoveryOf(other).instances('api'))).toMatchObject([
      { id: me.instance.id, address: 'host', port: 80, payload: 'x', serviceType: 'DYNAMIC', enabled: true },
    ])
    expect(me.instance.registrationTimeUTC).toBe(world.clock.wall())
    expect(await run(discoveryOf(other).names())).toEqual(['api'])
    expect(await run(discoveryOf(other).instances('none'))).toEqual([])
  })

  it('is updated, and is unregistered once (CURATOR-617)', async () => {
    const me = await run(discoveryOf(client).register({ name: 'api', id: 'a' }))
    await run(me.update({ port: 81 }))
    expect(await run(discoveryOf(other).instances('api'))).toMatchObject([{ id: 'a', port: 81 }])
    await run(Promise.all([me.release(), me.release()]))
    await run(me.release())
    expect(await run(discoveryOf(other).instances('api'))).toEqual([])
    await expect(run(me.update({ port: 82 }))).rejects.toMatchObject({ name: 'AbortError' })
  })

  it('returns in a new session with its newest data, also after an update in the outage', async () => {
    const me = await run(discoveryOf(client).register({ name: 'api', id: 'a', port: 1 }))
    const restore = cutOff()
    await world.settle()
    const updated = me.update({ port: 2 })
    await world.advance(20_000)
    expect(await run(discoveryOf(other).instances('api'))).toEqual([])
    restore()
    await world.advance(12_000)
    await run(updated)
    expect(await run(discoveryOf(other).instances('api'))).toMatchObject([{ id: 'a', port: 2 }])
  })

  it('does not return when it was unregistered in an outage (CURATOR-164)', async () => {
    const me = await run(discoveryOf(client).register({ name: 'api', id: 'a' }))
    const restore = cutOff()
    await world.settle()
    const gone = me.release()
    await world.advance(20_000)
    restore()
    await world.advance(12_000)
    await run(gone)
    expect(await run(discoveryOf(other).instances('api'))).toEqual([])
    expect(world.server.stats().watches).toBe(0)
  })

  it('outlives its discovery only if it is permanent (CURATOR-94)', async () => {
    const discovery = discoveryOf(client)
    for (const serviceType of ['DYNAMIC', 'STATIC', 'PERMANENT', 'DYNAMIC_SEQUENTIAL'] as const) {
      await run(discovery.register({ name: 'api', id: serviceType, serviceType }))
    }
    expect(await run(discoveryOf(other).instances('api'))).toHaveLength(4)
    await run(discovery.close())
    expect(await run(discoveryOf(other).instances('api'))).toMatchObject([{ id: 'PERMANENT' }])
    const again = await run(
      discoveryOf(other).register({ name: 'api', id: 'PERMANENT', serviceType: 'PERMANENT', port: 9 }),
    )
    expect(await run(discoveryOf(client).instances('api'))).toMatchObject([{ port: 9 }])
    await run(again.release())
    expect(await run(discoveryOf(client).instances('api'))).toEqual([])
  })

  it('does not take the id of a live instance, and waits with onConflict wait', async () => {
    const first = await run(discoveryOf(other).register({ name: 'api', id: 'a', port: 1 }))
    const refused = discoveryOf(client).register({ name: 'api', id: 'a', port: 2 })
    refused.catch(() => {})
    await expect(run(refused)).rejects.toBeInstanceOf(InstanceIdConflictError)
    const waiting = discoveryOf(client).register({ name: 'api', id: 'a', port: 2 }, { onConflict: 'wait' })
    await world.settle()
    await run(first.release())
    await run(waiting)
    expect(await run(discoveryOf(other).instances('api'))).toMatchObject([{ port: 2 }])
  })

  it('needs a name and an id that are valid path levels, and an open discovery', async () => {
    for (const name of ['', '..', 'a/b']) {
      await expect(discoveryOf(client).register({ name })).rejects.toBeInstanceOf(UsageError)
    }
    const discovery = discoveryOf(client)
    await run(discovery.close())
    await expect(discovery.register({ name: 'api' })).rejects.toBeInstanceOf(UsageError)
    await expect(discovery.provider('api')).rejects.toBeInstanceOf(UsageError)
  })
})

describe('a provider', () => {
  it('follows its service, and ignores invalid instances', async () => {
    const provider = await run(discoveryOf(other).provider('api'))
    expect([ids(provider), provider.next()]).toEqual(['', undefined])
    const discovery = discoveryOf(client)
    const a = await run(discovery.register({ name: 'api', id: 'a' }))
    await run(discovery.register({ name: 'api', id: 'b' }))
    await run(client.create('/services/api/foreign', { data: bytes('{') }))
    await world.settle()
    expect(ids(provider)).toBe('a,b')
    expect([provider.next()?.id, provider.next()?.id, provider.next()?.id]).toEqual(['a', 'b', 'a'])
    await run(a.update({ enabled: false }))
    await world.settle()
    expect([provider.next()?.id, provider.next()?.id]).toEqual(['b', 'b'])
    await run(discovery.close())
    await world.settle()
    expect(provider.next()).toBeUndefined()
    await run(provider.close())
  })

  it('keeps its instances through an outage and is stale meanwhile', async () => {
    await run(discoveryOf(other).register({ name: 'api', id: 'a' }))
    const provider = await run(discoveryOf(client).provider('api'))
    const restore = cutOff()
    await world.advance(5000)
    expect([provider.stale, provider.next()?.id]).toEqual([true, 'a'])
    restore()
    await world.advance(12_000)
    expect(provider.stale).toBe(false)
    await run(provider.close())
  })

  it('skips an instance with reported errors for a while', async () => {
    const discovery = discoveryOf(other)
    for (const id of ['a', 'b']) await run(discovery.register({ name: 'api', id }))
    const provider = await run(
      discovery.provider('api', { strategy: 'sticky', down: { errors: 1, withinMs: 1000 } }),
    )
    const first = provider.next()!.id
    provider.noteError(first)
    expect(provider.next()?.id).not.toBe(first)
    provider.noteError(provider.next()!.id)
    expect(provider.next()).toBeDefined()
    await world.advance(1000)
    expect(provider.next()).toBeDefined()
    await run(discovery.close())
    await world.settle()
    expect(world.server.stats().watches).toBe(0)
  })

  it('chooses without requests, and reads once per change', async () => {
    const requests: string[] = []
    const counting = await world.client({
      instrumentation: { request: ({ operation }) => void requests.push(operation) },
    })
    const provider = await run(discoveryOf(counting).provider('api', { strategy: 'random' }))
    requests.length = 0
    for (const id of ['a', 'b', 'c']) await run(discoveryOf(client).register({ name: 'api', id }))
    await world.settle()
    // The znode of the service, created with the first instance, and three instances.
    expect(requests).toEqual(['getData', 'getData', 'getData', 'getData'])
    for (let n = 0; n < 100; n++) expect(provider.next()).toBeDefined()
    expect(requests).toHaveLength(4)
    await run(provider.close())
  })

  it('sorts its instances once for each change, however often it chooses', async () => {
    const lists = vi.spyOn(TreeCache.prototype, 'children')
    const discovery = discoveryOf(client)
    for (let n = 0; n < 20; n++) await run(discovery.register({ name: 'api', id: `i${n}` }))
    const provider = await run(discoveryOf(other).provider('api'))
    const changes = provider.changes()
    for (let n = 0; n < 20; n++) expect(provider.next()).toBeDefined()
    expect((await run(changes.next())).value).toHaveLength(20)
    expect(lists.mock.calls.length).toBeLessThan(3)
    await run(discovery.close())
    await world.settle()
    expect(provider.next()).toBeUndefined()
    await run(provider.close())
    lists.mockRestore()
  })

  it('is kept by its discovery only while it is open', async () => {
    const discovery = discoveryOf(client)
    const close = vi.spyOn(TreeCache.prototype, 'close')
    for (let n = 0; n < 3; n++) await run((await run(discovery.provider('api'))).close())
    await run(discovery.provider('api'))
    close.mockClear()
    await run(discovery.close())
    expect(close).toHaveBeenCalledTimes(1)
    close.mockRestore()
  })

  it('knows all instances again after all of them restart at once', async () => {
    const provider = await run(discoveryOf(other).provider('api'))
    const discovery = discoveryOf(client)
    for (let n = 0; n < 20; n++) await run(discovery.register({ name: 'api', id: `i${n}` }))
    const restore = cutOff()
    await world.advance(20_000)
    restore()
    await world.settle()
    expect(provider.all()).toEqual([])
    await world.advance(12_000)
    expect(provider.all()).toHaveLength(20)
    await run(Promise.all([provider.close(), discovery.close()]))
  })
})

it('example: a caller finds an instance, and another one after a failure', async () => {
  const discovery = new ServiceDiscovery<{ zone: string }>(client, '/services')
  await run(
    discovery.register({ name: 'api', id: '1', address: '10.0.0.7', port: 80, payload: { zone: 'a' } }),
  )
  await run(
    discovery.register({ name: 'api', id: '2', address: '10.0.0.8', port: 80, payload: { zone: 'b' } }),
  )
  const api = await run(discovery.provider('api', { filter: ({ payload }) => payload?.zone === 'b' }))
  expect(api.next()?.address).toBe('10.0.0.8')
  await run(discovery.close())
})

it('is registered with its newest data until it is unregistered under any fault at any request', async () => {
  const played = await enumerateFaults(
    async (fixture, victim) => {
      const peer = await fixture.world.client()
      const watcher = await discoveryOf(peer).provider('api')
      const discovery = discoveryOf(victim.client)
      const me = await retryWithoutSignal(victim, () => discovery.register({ name: 'api', id: 'a', port: 1 }))
      await me.update({ port: 2 })
      await fixture.waitUntilQuiet()
      expect(watcher.all()).toMatchObject([{ id: 'a', port: 2 }])
      const own = await discovery.provider('api')
      // A session that expires here removes the instance for a moment.
      await fixture.waitUntilQuiet()
      expect(own.next()?.port).toBe(2)
      await me.release()
      await fixture.waitUntilQuiet()
      expect(watcher.all()).toEqual([])
      await Promise.all([discovery.close(), watcher.close()])
    },
    faults.filter((fault) => fault !== 'caller aborted'),
  )
  expect(played).toBeGreaterThan(30)
})

it('a provider yields its instances again after each change, and not during an outage', async () => {
  const discovery = new ServiceDiscovery(other, '/services')
  await run(discovery.register({ name: 'api', id: 'a', port: 1 }))
  const provider = await run(new ServiceDiscovery(client, '/services').provider('api'))
  const seen = world.collect(provider.changes())
  const ids = (): string[] => seen.map((all) => all.map(({ id, port }) => `${id}:${port}`).join())
  await world.settle()
  const b = await run(discovery.register({ name: 'api', id: 'b', port: 2 }))
  await world.settle()
  await run(b.update({ port: 3 }))
  await world.settle()
  expect(ids()).toEqual(['a:1', 'a:1,b:2', 'a:1,b:3'])
  world.connections[0]!.cut()
  await world.advance(2000)
  expect(ids()).toHaveLength(3)
  await run(b.release())
  await world.settle()
  expect(ids()[3]).toBe('a:1')
  await run(provider.close())
  await run(discovery.close())
})
