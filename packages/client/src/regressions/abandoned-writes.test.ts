import { expect, it } from 'vitest'
import { setupEachTest, world } from '../testing/setup.ts'

setupEachTest()

it('a write whose caller gives up in the same turn in which it is sent rejects with maybeApplied', async () => {
  const client = await world.client()
  const abort = new AbortController()
  const done = client.create('/a', { signal: abort.signal })
  abort.abort()
  await expect(done).rejects.toMatchObject({ name: 'AbortError', maybeApplied: true })
  await world.settle()
  expect(await world.outcome(client.exists('/a'))).toBeDefined()
})

it('a sequential create whose caller gives up in the turn in which it is sent leaves no znode behind', async () => {
  const client = await world.client()
  const abort = new AbortController()
  const mode = 'ephemeralSequential'
  const done = client.create('/l-', { mode, signal: abort.signal })
  done.catch(() => {})
  abort.abort()
  await world.advance(1000)
  const { children } = await world.outcome(client.getChildren('/'))
  expect(children).toEqual(['zookeeper'])
})
