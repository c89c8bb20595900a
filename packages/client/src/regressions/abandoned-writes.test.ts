import { afterEach, beforeEach, expect, it } from 'vitest'
import { ManualWorld } from '../testing/manual-world.ts'

let world: ManualWorld
beforeEach(async () => {
  world = await ManualWorld.start()
})
afterEach(() => world.end())

it('says that a write may happen whose caller gives up in the very turn in which it leaves', async () => {
  const client = await world.client()
  const abort = new AbortController()
  const done = client.create('/a', undefined, { signal: abort.signal })
  abort.abort()
  await expect(done).rejects.toMatchObject({ name: 'AbortError', maybeApplied: true })
  await world.settle()
  expect(await world.outcome(client.exists('/a'))).toBeDefined()
})

it('cleans up behind a sequential create whose caller gives up in the turn in which it leaves', async () => {
  const client = await world.client()
  const abort = new AbortController()
  const mode = 'ephemeralSequential'
  const done = client.create('/l-', undefined, { mode, signal: abort.signal })
  done.catch(() => {})
  abort.abort()
  await world.advance(1000)
  const { children } = await world.outcome(client.getChildren('/'))
  expect(children).toEqual(['zookeeper'])
})
