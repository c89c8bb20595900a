import { utf8, type Client } from '@zabra/client/core'
import { describe, expect, it } from 'vitest'
import { Configuration } from './configuration/index.ts'
import { DoubleBarrier } from './double-barrier/index.ts'
import { Group } from './group/index.ts'
import { Lease, type LeaseHandle } from './lease/index.ts'
import { MultiLock } from './multi-lock/index.ts'
import { Mutex } from './mutex/index.ts'
import { NameService } from './name-service/index.ts'
import { PersistentNode } from './persistent-node/index.ts'
import { RevocableMutex, revoke } from './revocable/index.ts'
import { client, setupEachTest, meters, other, run, world } from './testing/setup.ts'
import { bytes, metered, type Meter } from './testing/world.ts'
import { TreeCache } from './tree-cache/index.ts'
import { TwoPhaseCommit } from './two-phase-commit/index.ts'

// Limits on the cost of recipe steps that the recipes' own tests do not check: more requests or notifications than these indicate a
// herd effect or a listing.

setupEachTest('a', 'b')

/** Returns the cost of a step for the first and the second client, including its effects. */
async function cost(step: () => Promise<unknown>): Promise<[requests: string[], events: string[]][]> {
  await world.advance(100)
  for (const meter of meters) meter.take()
  await run(step())
  await world.advance(100)
  return meters.map((meter) => {
    const { requests, events } = meter.take()
    return [requests, events]
  })
}

async function crowd(count: number): Promise<{ client: Client; meter: Meter }[]> {
  const all = []
  for (let n = 0; n < count; n++) all.push(await metered(world))
  return all
}

const total = (of: readonly { meter: Meter }[], what: 'requests' | 'events'): number =>
  of.reduce((sum, { meter }) => sum + meter[what].length, 0)

describe('request budgets', () => {
  it('resolving a name costs one request, or two when fresh', async () => {
    const names = new NameService(client, '/names', utf8)
    await run(names.register('a', '1'))
    expect(await cost(() => names.resolve('a'))).toEqual([
      [['getData'], []],
      [[], []],
    ])
    expect((await cost(() => names.resolve('a', { fresh: true })))[0]).toEqual([['sync', 'getData'], []])
  })

  it('a configuration change costs one notification and one read per reader', async () => {
    const writer = new Configuration(client, '/c', { codec: utf8, defaults: '1' })
    await run(writer.get())
    const reader = new Configuration(other, '/c', { codec: utf8 })
    const seen = world.collect(reader.updates())
    const [own, theirs] = await cost(() => writer.set('2'))
    expect(theirs).toEqual([['getData'], ['nodeDataChanged']])
    expect(own![0].length).toBeLessThanOrEqual(3)
    expect(seen.length).toBeGreaterThan(1)
  })

  it('joining or leaving a group costs one notification per observer and no listing', async () => {
    const observer = new Group(other, '/g', { codec: utf8 })
    world.collect(observer.changes())
    await run(client.createMissing([{ path: '/g', mode: 'container' }]))
    const group = new Group(client, '/g', { codec: utf8 })
    const [joining, events] = await cost(() => group.join('me', '1'))
    expect(joining![0].length).toBeLessThanOrEqual(2)
    expect(events).toEqual([['getData'], ['nodeCreated']])
    const [, left] = await cost(() => group[Symbol.asyncDispose]())
    expect(left).toEqual([[], ['nodeDeleted']])
    await run(observer[Symbol.asyncDispose]())
  })

  it('a double barrier costs four requests to enter, two to wait, one wake-up to open, and two at most to leave', async () => {
    const members = 5
    const all = await crowd(members)
    const barriers = all.map((each) => new DoubleBarrier(each.client, '/b', { members }))
    const round = async (): Promise<void> => {
      const entering = barriers.map((barrier) => barrier.enter())
      await world.advance(100)
      const inside = await run(Promise.all(entering))
      for (const { meter } of all) {
        const { events } = meter.take()
        expect(events.length).toBeLessThanOrEqual(1)
      }
      const leaving = inside.map((each) => each.release())
      await world.advance(100)
      await run(Promise.all(leaving))
      expect(total(all, 'events')).toBeLessThanOrEqual(2 * members)
    }
    await round()
    for (const { meter } of all) meter.take()
    const entering = []
    for (const barrier of barriers) {
      entering.push(barrier.enter())
      await world.advance(100)
    }
    // The first participant creates the round.
    expect(all[0]!.meter.requests.length).toBeLessThanOrEqual(10)
    for (const { meter } of all.slice(1, -1)) {
      // The last read is that of the round, once it is open.
      const wanted = ['getData', 'multi', 'getData', 'getChildren', 'getData', 'getData']
      expect(meter.requests.slice(0, 6)).toEqual(wanted)
    }
    const inside = await run(Promise.all(entering))
    const leaving = Promise.all(inside.map((each) => each.release()))
    await world.advance(100)
    await run(leaving)
  })

  it('a two-phase commit costs messages linear in the number of sites', async () => {
    const costs: number[] = []
    for (const count of [4, 8, 16]) {
      const all = await crowd(count)
      const path = `/tx${count}`
      const names = all.map((_each, n) => `s${n}`)
      const sites = all.map((each, n) =>
        new TwoPhaseCommit(each.client, path).join(names[n]!, {
          prepare: () => Promise.resolve('commit'),
          commit: () => Promise.resolve(),
          abort: () => Promise.resolve(),
        }),
      )
      await world.advance(100)
      for (const meter of [...all.map(({ meter: each }) => each), ...meters]) meter.take()
      const decided = new TwoPhaseCommit(client, path).run({
        participants: names,
        payload: bytes('x'),
        deadlineMs: 9000,
      })
      await world.advance(200)
      expect(await run(decided)).toBe('committed')
      const everybody = [...all, { meter: meters[0]! }]
      costs.push((total(everybody, 'requests') + total(everybody, 'events')) / count)
      await run(Promise.all(sites.map(async (site) => (await site).release())))
    }
    expect(costs[2]! / costs[0]!).toBeLessThan(1.3)
    // With the end of a transaction that its coordinator and its last site delete at the same moment, one node after the other.
    expect(costs[2]).toBeLessThanOrEqual(40)
  })

  it('a revocation costs one write, one notification and one read', async () => {
    const held = await run(new RevocableMutex(client, '/lock').acquire())
    void held.revokeRequested.then(() => held.release())
    const [asked, asking] = await cost(() => revoke(other, '/lock'))
    expect(asked![1].length).toBeLessThanOrEqual(2)
    expect(asked![0].length).toBeLessThanOrEqual(2)
    expect(asking![0].filter((operation) => operation === 'setData')).toHaveLength(1)
    expect(asking![0].length).toBeLessThanOrEqual(4)
  })

  it('a lease costs three requests to take, two to renew and three to release', async () => {
    await run(client.createMissing([{ path: '/l', mode: 'container' }]))
    let held: LeaseHandle | undefined
    const take = async (): Promise<void> =>
      void (held = await new Lease(client, '/l/x', { holder: 'me', durationMs: 60_000 }).tryAcquire())
    expect((await cost(take))[0]![0].length).toBeLessThanOrEqual(4)
    expect((await cost(() => held!.renew()))[0]![0].length).toBeLessThanOrEqual(2)
    expect((await cost(() => held!.release()))[0]![0].length).toBeLessThanOrEqual(3)
  })

  it('acquiring several locks costs the sum of the single locks', async () => {
    await run(client.createMissing([{ path: '/x', mode: 'container' }]))
    await run(client.createMissing([{ path: '/y', mode: 'container' }]))
    const both = () => new MultiLock(['/x', '/y'].map((path) => new Mutex(client, path))).acquire()
    const [own] = await cost(async () => (await both()).release())
    expect(own).toEqual([['create', 'getChildren', 'create', 'getChildren', 'delete', 'delete'], []])
  })

  it('a persistent node costs one request and one watch, and one of each per repair', async () => {
    await run(client.createMissing([{ path: '/p', mode: 'container' }]))
    let node: PersistentNode | undefined
    const [own] = await cost(async () => {
      node = new PersistentNode(client, '/p/n', bytes('1'))
      await node.ready
    })
    expect(own![0].length).toBeLessThanOrEqual(2)
    const [again] = await cost(() => other.delete('/p/n'))
    expect(again![1]).toEqual(['nodeDeleted'])
    expect(again![0].length).toBeLessThanOrEqual(3)
    await run(node!.close())
  })

  it('filling a cache costs one request per leaf, and one more per znode with children', async () => {
    await run(other.createMissing([{ path: '/t', mode: 'container' }]))
    for (let n = 0; n < 200; n++) await run(other.create(`/t/${n}`, { data: bytes('1') }))
    let cache: TreeCache | undefined
    const [own] = await cost(async () => {
      cache = new TreeCache(client, '/t')
      await cache.ready
    })
    const of = (operation: string): number => own![0].filter((each) => each === operation).length
    expect([of('getData'), cache!.size]).toEqual([201, 201])
    // The first visits request both at once, so that a deep tree takes one round trip per level.
    expect(of('getChildren')).toBeLessThanOrEqual(17)
    const [changed] = await cost(() => other.setData('/t/7', bytes('2')))
    expect(changed).toEqual([['getData'], ['nodeDataChanged']])
    await run(cache!.close())
  })
})
