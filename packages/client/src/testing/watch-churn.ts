import { SeededRandom } from '@zabra/runtime'
import type { Client } from '../types.ts'
import { bytes, ManualWorld } from './manual-world.ts'

/** A watch of either kind. */
export interface OpenWatch {
  close(): Promise<void>
  fired?: Promise<unknown>
}

/** What random comings and goings of watches have left. */
export interface WatchChurn {
  readonly world: ManualWorld
  /** Somebody else, whose connection held all the time. */
  readonly admin: Client
  readonly client: Client
  /** Watches that nobody has closed. */
  readonly open: OpenWatch[]
  /** Everything that was begun. */
  readonly all: Promise<unknown>[]
}

/** Sets, closes, withdraws and fires watches on `/n0` to `/n2`, while connections break. A seed gives one history. */
export async function churnWatches(seed: number): Promise<WatchChurn> {
  const random = new SeededRandom(seed * 31)
  const world = await ManualWorld.start()
  const admin = await world.client({ sessionTimeout: 90_000 })
  const adminWire = world.lastConnection
  for (let i = 0; i < 3; i++) await world.outcome(admin.create(`/n${i}`, bytes('')))
  const client = await world.client({ sessionTimeout: 3000 })
  const open: OpenWatch[] = []
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
        if (random.below(4) === 0 && world.lastConnection !== adminWire) world.lastConnection.cut()
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
  return { world, admin, client, open, all }
}
