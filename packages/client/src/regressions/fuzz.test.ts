// oxlint-disable no-unused-expressions -- one step or another is taken
import { SeededRandom } from '@zabra/runtime'
import { expect, it } from 'vitest'
import { ZooKeeperError } from '../errors.ts'
import { bytes, text, ManualWorld } from '../testing/manual-world.ts'

/** ZABRA_CLIENT_SEEDS sets the number of seeds; a failing seed is in the name of its test. */
const seeds = Array.from({ length: Number(process.env['ZABRA_CLIENT_SEEDS'] ?? 60) }, (_, i) => i + 1)

const own = /^(heartbeat|reconnect|deadline|retry|drain|connection attempt|local expiry|close|probe|search)/

it.each(seeds)('seed %i: every promise settles with its own reply', async (seed) => {
  const random = new SeededRandom(seed * 7919)
  const world = await ManualWorld.start()
  const admin = await world.client({ sessionTimeout: 90_000 })
  const adminWire = world.lastConnection
  for (let i = 0; i < 5; i++) await world.outcome(admin.create(`/n${i}`, bytes(`v${i}`)))
  const client = await world.client({ sessionTimeout: 3000, sessionExpiry: 'renew' })
  const unhandled: unknown[] = []
  const note = (reason: unknown): void => void unhandled.push(reason)
  process.on('unhandledRejection', note)
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
  const pending = new Map<number, string>()
  const wrong: string[] = []
  let id = 0
  const track = (what: string, promise: Promise<unknown>, check?: (value: never) => boolean): void => {
    const mine = id++
    pending.set(mine, what)
    promise.then(
      (value) => {
        pending.delete(mine)
        if (check && !check(value as never))
          wrong.push(
            `${what}: ${JSON.stringify(value, (_k, v: unknown) => (typeof v === 'bigint' ? String(v) : v))}`,
          )
      },
      (error: unknown) => {
        pending.delete(mine)
        if (!(error instanceof ZooKeeperError)) wrong.push(`${what}: ${String((error as Error).stack)}`)
      },
    )
  }
  const orders: number[] = []
  for (let step = 0; step < 200; step++) {
    const i = random.below(5)
    const abort = new AbortController()
    const options =
      random.below(3) === 0
        ? { signal: abort.signal }
        : random.below(3) === 0
          ? { timeout: 1 + random.below(2000) }
          : {}
    switch (random.below(16)) {
      case 0:
      case 1:
        track(
          `getData ${i}`,
          client.getData(`/n${i}`, options),
          ({ data }: { data: Uint8Array }) => text(data) === `v${i}`,
        )
        break
      case 2:
        track('exists', client.exists(`/none${i}`, options), (value) => value === undefined)
        break
      case 3:
        track('children', client.getChildren('/', options), ({ children }: { children: string[] }) =>
          children.includes('n0'),
        )
        break
      case 4:
        track(
          'seq',
          client.create('/s-', bytes(''), { ...options, mode: 'ephemeralSequential' }),
          ({ path }: { path: string }) => /\/_c_.*-s-\d{10}$/.test(path),
        )
        break
      case 5:
        track(
          `create e${i}`,
          client.create(`/e${i}`, bytes('e'), { ...options, mode: 'ephemeral' }),
          ({ path }: { path: string }) => path === `/e${i}`,
        )
        break
      case 6:
        track(`delete e${i}`, client.delete(`/e${i}`, { ...options, guaranteed: random.below(2) === 0 }))
        break
      case 7:
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
        )
        break
      case 8:
        track(
          'watchOnce',
          client
            .watchOnce(`/n${i}`, (['data', 'exists', 'children'] as const)[random.below(3)]!, options)
            .then((watch) => {
              if (random.below(2) === 0) return watch.close()
              track('fired', watch.fired)
              return undefined
            }),
        )
        break
      case 9:
        track(
          'watch',
          client
            .watch(`/n${i}`, {
              ...options,
              mode: random.below(2) === 0 ? 'persistent' : 'persistentRecursive',
            })
            .then(async (watcher) => {
              if (random.below(2) === 0) return watcher.close()
              void (async () => {
                for await (const event of watcher) orders.push(event.order)
              })().catch(() => {})
            }),
        )
        break
      case 10:
        world.lastConnection === adminWire || world.lastConnection.cut()
        break
      case 11:
        mode = (['pass', 'pass', 'swallow', 'swallowUp'] as const)[random.below(4)]!
        break
      case 12:
        down = random.below(3) === 0
        break
      case 13:
        await world.advance(random.below(1500))
        break
      case 14:
        track(
          'servers',
          client.updateServerList(['a:2181', 'b:2181', 'c:2181'].slice(0, 1 + random.below(3))),
        )
        break
      case 15:
        track('setData by admin', admin.setData(`/n${i}`, bytes(`v${i}`)))
    }
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
  const left = [...pending.values()]
  expect({ left, wrong, state: client.state }).toEqual({ left: [], wrong: [], state: 'connected' })
  await world.within(5000, client.close())
  await world.within(5000, admin.close())
  await world.settle()
  expect(
    world.clock
      .pendingTimers()
      .map(({ name }) => name)
      .filter((name) => own.test(name)),
  ).toEqual([])
  await new Promise((resolve) => setTimeout(resolve, 0))
  expect(unhandled).toEqual([])
  process.off('unhandledRejection', note)
  await world.stop()
})
