import { SeededRandom } from '@zabra/runtime'
import { expect, it } from 'vitest'
import type { View } from '../client.ts'
import { watchKinds } from '../watches/registry.ts'
import { bytes, World } from '../testdata/world.ts'

/** More of them with ZABRA_CLIENT_SEEDS; a failing one stands in the name of its test. */
const seeds = Array.from({ length: Number(process.env['ZABRA_CLIENT_SEEDS'] ?? 60) }, (_, i) => i + 1)

it.each(seeds)(
  'seed %i: the registry is empty when all watches are closed, and no event finds nobody',
  async (seed) => {
    const random = new SeededRandom(seed * 31)
    const world = await World.start()
    const admin = await world.client({ sessionTimeout: 90_000 })
    const adminWire = world.wire
    for (let i = 0; i < 3; i++) await world.outcome(admin.create(`/n${i}`, bytes('')))
    const client = await world.client({ sessionTimeout: 3000 })
    const open: { close(): Promise<void> }[] = []
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
    for (const one of open) all.push(one.close())
    await world.within(20_000, Promise.all(all))
    const { watches } = (client as View).shared.session
    expect(watches.size).toBe(0)
    for (const kind of watchKinds)
      for (let i = 0; i < 3; i++) expect(watches.wants(kind, `/n${i}`), `${kind} /n${i}`).toBe(false)
    await world.end()
  },
)
