import { expect, it } from 'vitest'
import { World } from '../testdata/world.ts'

it('10,000 waiting calls that end together do not stop the process (each removal walks and rebuilds the queue)', async () => {
  const world = await World.start()
  const client = await world.client({ offlineQueue: 10_000 })
  world.wire.cut()
  await world.settle()
  const abort = new AbortController()
  let ended = 0
  for (let i = 0; i < 10_000; i++) client.getData('/', { signal: abort.signal }).catch(() => ended++)
  const start = performance.now()
  abort.abort()
  const ms = performance.now() - start
  await world.settle()
  expect(ended).toBe(10_000)
  expect(ms).toBeLessThan(250)
  await world.end()
})
