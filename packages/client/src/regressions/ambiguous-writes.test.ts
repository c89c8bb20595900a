import { expect, it } from 'vitest'
import { client, setupEachTest, other, world } from '../testing/setup.ts'
import { bytes } from '../testing/manual-world.ts'

setupEachTest({}, {})

/** Runs a call whose reply is lost; `meanwhile` runs before the retry. */
async function lost<T>(call: () => Promise<T>, meanwhile: () => Promise<unknown>): Promise<T> {
  const connection = world.connections[0]!
  world.faults.toClient = (chunk, from) => (from === connection ? undefined : chunk)
  const done = call()
  done.catch(() => {})
  await world.settle()
  await meanwhile()
  connection.cut()
  await world.advance(3000)
  return world.outcome(done)
}

it('a versioned setData whose retry finds no node rejects with maybeApplied', async () => {
  await world.outcome(client.create('/a'))
  const done = lost(
    () => client.setData('/a', bytes('x'), { version: 0 }),
    () => world.outcome(other.delete('/a')),
  )
  await expect(done).rejects.toMatchObject({ maybeApplied: true })
})

it('a versioned delete whose retry finds no node does not resolve', async () => {
  // Another client deletes the znode; our request never reached the server.
  await world.outcome(client.create('/a'))
  const connection = world.connections[0]!
  world.faults.toServer = (chunk, from) => (from === connection ? undefined : chunk)
  const done = client.delete('/a', { version: 0 })
  done.catch(() => {})
  await world.settle()
  await world.outcome(other.delete('/a'))
  connection.cut()
  await world.advance(3000)
  await expect(world.outcome(done)).rejects.toMatchObject({ maybeApplied: true })
})

it('a create whose retry finds a znode of another client rejects with maybeApplied', async () => {
  const done = lost(
    () => client.create('/a', { data: bytes('mine'), idempotent: true }),
    async () => {
      await world.outcome(other.delete('/a'))
      await world.outcome(other.create('/a', { data: bytes('theirs') }))
    },
  )
  await expect(done).rejects.toMatchObject({ code: 'NODE_EXISTS', maybeApplied: true })
})

it('a multi with an unversioned delete is not retried', async () => {
  await world.outcome(client.create('/item'))
  await world.outcome(client.create('/counter'))
  const done = lost(
    () =>
      client.multi([
        { op: 'delete', path: '/item' },
        { op: 'setData', path: '/counter', data: bytes('mine') },
      ]),
    async () => {
      // Another client sees the deletion and creates the item again.
      await world.outcome(other.setData('/counter', bytes('theirs')))
      await world.outcome(other.create('/item'))
    },
  )
  await expect(done).rejects.toMatchObject({ code: 'CONNECTION_LOSS', maybeApplied: true })
})

it('a protected create whose search fails rejects with maybeApplied', async () => {
  const abort = new AbortController()
  const connection = world.connections[0]!
  world.faults.toClient = (chunk, from) => (from === connection ? undefined : chunk)
  const done = client.create('/l-', { mode: 'persistentSequential', signal: abort.signal })
  done.catch(() => {})
  await world.settle()
  world.refuseConnections()
  connection.cut()
  await world.settle()
  abort.abort() // While the search waits for a connection.
  await world.settle()
  const error = await done.catch((error: unknown) => error)
  delete world.faults.open
  expect(error).toMatchObject({ operation: 'create', maybeApplied: true })
})

it('a request in flight when the session expires fails before the writes after it', async () => {
  // A write submitted while the client drains before a move must not be applied when the one before it has failed.
  const connection = world.connections[0]!
  await world.outcome(client.create('/a'))
  world.faults.toServer = (chunk, from) => (from === connection ? undefined : chunk)
  const first = client.setData('/a', bytes('1'))
  first.catch(() => {})
  await world.settle()
  await world.outcome(client.updateServerList('b:2181'))
  const second = client.setData('/a', bytes('2'))
  second.catch(() => {})
  await world.advance(10_000)
  const results = await world.outcome(Promise.allSettled([first, second]))
  expect(results.map(({ status }) => status)).toEqual(['rejected', 'rejected'])
})
