import { expect, it } from 'vitest'
import type { ZooKeeperClient } from '../client.ts'
import { seeds } from '../testing/call-tracker.ts'
import { churnWatches } from '../testing/watch-churn.ts'
import { watchKinds } from '../watches/watch-registry.ts'

it.each(seeds)('seed %i: the registry is empty after all watches are closed', async (seed) => {
  const { world, client, open, all } = await churnWatches(seed)
  for (const one of open) all.push(one.close())
  await world.within(20_000, Promise.all(all))
  const { watches } = (client as ZooKeeperClient).sharedSession
  expect(watches.size).toBe(0)
  for (const kind of watchKinds)
    for (let i = 0; i < 3; i++) expect(watches.isWanted(kind, `/n${i}`), `${kind} /n${i}`).toBe(false)
  await world.end()
})
