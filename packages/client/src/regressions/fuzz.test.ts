import { SeededRandom } from '@zabra/runtime'
import { expect, it } from 'vitest'
import { CallTracker, seeds } from '../testing/call-tracker.ts'
import { bytes, text, ManualWorld } from '../testing/manual-world.ts'

it.each(seeds)('seed %i: every promise settles with its own reply', async (seed) => {
  const random = new SeededRandom(seed * 7919)
  const world = await ManualWorld.start()
  const admin = await world.client({ sessionTimeoutMs: 90_000 })
  const adminWire = world.lastConnection
  for (let i = 0; i < 5; i++) await world.outcome(admin.create(`/n${i}`, { data: bytes(`v${i}`) }))
  const client = await world.client({ sessionTimeoutMs: 3000, sessionExpiry: 'renew' })
  const calls = new CallTracker()
  let mode: 'pass' | 'swallow' | 'swallowUp' | 'bytes' = 'pass'
  world.network.chunkBytes = [65536, 1, 3, 17][random.below(4)]!
  world.faults.toClient = (chunk, connection) =>
    connection === adminWire || mode !== 'swallow' ? chunk : undefined
  world.faults.toServer = (chunk, connection) =>
    connection === adminWire || mode !== 'swallowUp' ? chunk : undefined
  let down = false
  world.faults.open = () => {
    if (down) throw new Error('down')
  }
  const track = calls.track.bind(calls)
  for (let step = 0; step < 200; step++) {
    const i = random.below(5)
    const abort = new AbortController()
    const options =
      random.below(3) === 0
        ? { signal: abort.signal }
        : random.below(3) === 0
          ? { timeoutMs: 1 + random.below(2000) }
          : {}
    const read = (): void =>
      track(
        `getData ${i}`,
        client.getData(`/n${i}`, options),
        ({ data }: { data: Uint8Array }) => text(data) === `v${i}`,
      )
    const actions: readonly (() => unknown)[] = [
      read,
      read,
      () => track('exists', client.exists(`/none${i}`, options), (value) => value === undefined),
      () =>
        track('children', client.getChildren('/', options), ({ children }: { children: string[] }) =>
          children.includes('n0'),
        ),
      () =>
        track(
          'seq',
          client.create('/s-', { data: bytes(''), ...options, mode: 'ephemeralSequential' }),
          ({ path }: { path: string }) => /\/_c_.*-s-\d{10}$/.test(path),
        ),
      () =>
        track(
          `create e${i}`,
          client.create(`/e${i}`, { data: bytes('e'), ...options, mode: 'ephemeral' }),
          ({ path }: { path: string }) => path === `/e${i}`,
        ),
      () => track(`delete e${i}`, client.delete(`/e${i}`, { ...options, guaranteed: random.below(2) === 0 })),
      () =>
        track(
          'multi',
          client.multi(
            [
              { op: 'check', path: `/n${i}` },
              { op: 'setData', path: `/n${i}`, data: bytes(`v${i}`) },
            ],
            options,
          ),
          (value: unknown[]) => value.length === 2,
        ),
      () =>
        track(
          'watchOnce',
          client
            .watchOnce(`/n${i}`, (['data', 'exists', 'children'] as const)[random.below(3)]!, options)
            .then((watch) => (random.below(2) === 0 ? watch.close() : track('fired', watch.fired))),
        ),
      () =>
        track(
          'watch',
          client
            .watch(`/n${i}`, {
              ...options,
              mode: random.below(2) === 0 ? 'persistent' : 'persistentRecursive',
            })
            .then((watcher) => (random.below(2) === 0 ? watcher.close() : void world.collect(watcher))),
        ),
      () => world.lastConnection === adminWire || world.lastConnection.cut(),
      () => (mode = (['pass', 'pass', 'swallow', 'swallowUp'] as const)[random.below(4)]!),
      () => (down = random.below(3) === 0),
      () => world.advance(random.below(1500)),
      () =>
        track(
          'servers',
          client.updateServerList(['a:2181', 'b:2181', 'c:2181'].slice(0, 1 + random.below(3))),
        ),
      () => track('setData by admin', admin.setData(`/n${i}`, bytes(`v${i}`))),
    ]
    await actions[random.below(16)]!()
    if (random.below(3) === 0) abort.abort()
    if (random.below(2) === 0) await world.settle()
  }
  mode = 'pass'
  down = false
  // Dropped bytes leave a gap in the stream, which no network does, so all connections of the client are closed.
  for (const connection of world.connections) if (connection !== adminWire) connection.cut()
  await world.advance(30_000)
  for (let i = 0; i < 5; i++) {
    await world.outcome(admin.create(`/n${i}/c${seed}`))
    await world.outcome(admin.setData(`/n${i}`, bytes('last')))
    await world.outcome(admin.delete(`/n${i}/c${seed}`))
    await world.outcome(admin.delete(`/n${i}`))
  }
  await world.advance(1000)
  const { pending, wrong } = calls
  expect({ pending, wrong, state: client.state }).toEqual({ pending: [], wrong: [], state: 'connected' })
  await world.within(5000, client.close())
  await world.within(5000, admin.close())
  await world.settle()
  expect(await calls.leftovers(world)).toEqual([])
  await world.stop()
})
