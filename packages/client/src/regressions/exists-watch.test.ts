import { expect, it } from 'vitest'
import { client, other, setupEachTest, world } from '../testing/setup.ts'
import { bytes } from '../testing/manual-world.ts'

setupEachTest({}, {})

it('an exists watch on an existing znode neither fires without a change nor misses a deletion across a reconnect', async () => {
  await world.outcome(client.create('/a', { data: bytes('1') }))
  await world.outcome(client.create('/b', { data: bytes('1') }))
  const a = await world.outcome(client.watchOnce('/a', 'exists'))
  const b = await world.outcome(client.watchOnce('/b', 'exists'))
  const fired: unknown[] = []
  void a.fired.then(
    ({ type, path }) => fired.push({ type, path }),
    () => {},
  )
  void b.fired.then(
    ({ type, path }) => fired.push({ type, path }),
    () => {},
  )
  world.connections[0]!.cut()
  await world.settle()
  await world.outcome(other.delete('/b'))
  await world.advance(3000)
  expect(client.state).toBe('connected')
  // /a is unchanged; /b was deleted.
  expect(fired).toEqual([{ type: 'nodeDeleted', path: '/b' }])
})
