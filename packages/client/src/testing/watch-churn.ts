import { SeededRandom } from '@zabra/runtime'
import type { Client } from '../client-api.ts'
import { bytes, ManualWorld } from './manual-world.ts'

/** A one-shot or persistent watch. */
export interface OpenWatch {
  close(): Promise<void>
  fired?: Promise<unknown>
}

/** The state after a random sequence of watch operations. */
export interface WatchChurn {
  readonly world: ManualWorld
  /** A second client, whose connection never breaks. */
  readonly admin: Client
  readonly client: Client
  /** Watches that were not closed. */
  readonly open: OpenWatch[]
  /** All operations that were started. */
  readonly all: Promise<unknown>[]
}

/**
 * Opens, closes, aborts and fires random watches on `/n0` to `/n2`, while connections break. The seed determines the
 * sequence.
 */
export async function churnWatches(seed: number): Promise<WatchChurn> {
  const random = new SeededRandom(seed * 31)
  const world = await ManualWorld.start()
  const admin = await world.client({ sessionTimeoutMs: 90_000 })
  const adminWire = world.lastConnection
  for (let i = 0; i < 3; i++) await world.outcome(admin.create(`/n${i}`, { data: bytes('') }))
  const client = await world.client({ sessionTimeoutMs: 3000 })
  const open: OpenWatch[] = []
  const all: Promise<unknown>[] = []
  for (let step = 0; step < 60; step++) {
    const path = `/n${random.below(3)}`
    const abort = new AbortController()
    const { signal } = abort
    const opens = (watch: Promise<OpenWatch>): void =>
      void all.push(
        watch.then(
          (watch) => open.push(watch),
          () => {},
        ),
      )
    const watchOnce = (): void =>
      opens(client.watchOnce(path, (['data', 'exists', 'children'] as const)[random.below(3)]!, { signal }))
    const actions: readonly (() => unknown)[] = [
      watchOnce,
      watchOnce,
      () =>
        opens(client.watch(path, { mode: random.below(2) ? 'persistent' : 'persistentRecursive', signal })),
      () =>
        random.below(4) === 0 && world.lastConnection !== adminWire ? world.lastConnection.cut() : undefined,
      () => all.push(...open.splice(random.below(open.length + 1), 1).map((watch) => watch.close())),
      () =>
        random.below(2) === 0 ? all.push(admin.setData(path, bytes('x'))) : world.advance(random.below(1200)),
    ]
    await actions[random.below(6)]!()
    if (random.below(4) === 0) abort.abort()
    if (random.below(2) === 0) await world.settle()
  }
  await world.advance(10_000)
  return { world, admin, client, open, all }
}
