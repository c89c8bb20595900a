import { expect, it } from 'vitest'
import { client, setupEachTest, world } from '../testing/setup.ts'

setupEachTest({ sessionTimeoutMs: 3000 })

it('the state connecting after an expiry carries the next session generation', async () => {
  const seen: [string, number][] = []
  void (async () => {
    for await (const { state, sessionGeneration: generation } of client.states())
      seen.push([state, generation])
  })()
  world.refuseConnections()
  world.lastConnection.cut()
  await world.advance(5000)
  delete world.faults.open
  await world.advance(10_000)
  expect(seen).toEqual([
    ['connected', 1],
    ['suspended', 1],
    ['expired', 1],
    ['connecting', 2],
    ['connected', 2],
  ])
})
