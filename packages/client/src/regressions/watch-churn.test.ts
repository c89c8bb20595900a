import { expect, it } from 'vitest'
import { seeds } from '../testing/call-tracker.ts'
import { churnWatches } from '../testing/watch-churn.ts'
import { bytes } from '../testing/manual-world.ts'

it.each(seeds)(
  'seed %i: every open watch receives a change after churn and connection losses',
  async (seed) => {
    const { world, admin, open, all } = await churnWatches(seed)
    await world.within(20_000, Promise.all(all))
    const received = new Set<unknown>()
    for (const one of open) {
      if (one.fired)
        one.fired.then(
          () => received.add(one),
          () => received.add(one),
        )
      else
        void (async () => {
          for await (const { type } of one as unknown as AsyncIterable<{ type: string }>)
            if (type !== 'resync') received.add(one)
        })()
    }
    await world.settle()
    received.forEach((one) => !(one as { fired?: unknown }).fired && received.delete(one))
    for (let i = 0; i < 3; i++) {
      await world.outcome(admin.setData(`/n${i}`, bytes('last')))
      await world.outcome(admin.create(`/n${i}/c`))
    }
    await world.advance(100)
    expect(open.filter((one) => !received.has(one)).length, `of ${open.length}`).toBe(0)
    await world.end()
  },
)
