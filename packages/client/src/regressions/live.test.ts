import { SeededRandom } from '@zabra/runtime'
import { expect, it } from 'vitest'
import { bytes, World } from '../testdata/world.ts'

/** More of them with ZABRA_CLIENT_SEEDS; a failing one stands in the name of its test. */
const seeds = Array.from({ length: Number(process.env['ZABRA_CLIENT_SEEDS'] ?? 60) }, (_, i) => i + 1)

it.each(seeds)(
  'seed %i: every watch that is still open hears of a change after churn and cuts',
  async (seed) => {
    const random = new SeededRandom(seed * 31)
    const world = await World.start()
    const admin = await world.client({ sessionTimeout: 90_000 })
    const adminWire = world.wire
    for (let i = 0; i < 3; i++) await world.outcome(admin.create(`/n${i}`, bytes('')))
    const client = await world.client({ sessionTimeout: 3000 })
    const open: { close(): Promise<void>; fired?: Promise<unknown>; kind?: string }[] = []
    const all: Promise<unknown>[] = []
    for (let step = 0; step < 60; step++) {
      const path = `/n${random.below(3)}`
      const abort = new AbortController()
      switch (random.below(6)) {
        case 0:
        case 1:
          all.push(
            client
              .watchOnce(path, (['data', 'exists', 'children'] as const)[random.below(3)]!, {
                signal: abort.signal,
              })
              .then(
                (watch) => open.push(watch),
                () => {},
              ),
          )
          break
        case 2:
          all.push(
            client
              .watch(path, {
                mode: random.below(2) ? 'persistent' : 'persistentRecursive',
                signal: abort.signal,
              })
              .then(
                (watch) => open.push(watch),
                () => {},
              ),
          )
          break
        case 3:
          if (random.below(4) === 0 && world.wire !== adminWire) world.wire.cut()
          break
        case 4: {
          const one = open.splice(random.below(open.length + 1), 1)[0]
          if (one) all.push(one.close())
          break
        }
        case 5:
          if (random.below(2) === 0) all.push(admin.setData(path, bytes('x')))
          else await world.advance(random.below(1200))
      }
      if (random.below(4) === 0) abort.abort()
      if (random.below(2) === 0) await world.settle()
    }
    await world.advance(10_000)
    await world.within(20_000, Promise.all(all))
    const heard = new Set<unknown>()
    for (const one of open) {
      if (one.fired)
        one.fired.then(
          () => heard.add(one),
          () => heard.add(one),
        )
      else
        void (async () => {
          for await (const { type } of one as unknown as AsyncIterable<{ type: string }>)
            if (type !== 'resync') heard.add(one)
        })()
    }
    await world.settle()
    heard.forEach((one) => !(one as { fired?: unknown }).fired && heard.delete(one))
    for (let i = 0; i < 3; i++) {
      await world.outcome(admin.setData(`/n${i}`, bytes('last')))
      await world.outcome(admin.create(`/n${i}/c`))
    }
    await world.advance(100)
    expect(open.filter((one) => !heard.has(one)).length, `of ${open.length}`).toBe(0)
    await world.end()
  },
)
