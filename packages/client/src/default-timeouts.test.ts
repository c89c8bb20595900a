import { expect, it } from 'vitest'
import { utf8 } from './codecs.ts'
import { client, run, setupEachTest, world } from './testing/setup.ts'
import type { Client } from './client-api.ts'

setupEachTest({ timeoutMs: 1000 })

const calls: readonly [name: string, make: (c: Client) => Promise<unknown>][] = [
  ['getData', (c) => c.getData('/')],
  ['create', (c) => c.create('/a')],
  ['create with parents', (c) => c.create('/a/b', { parents: true })],
  ['sequential create', (c) => c.create('/a-', { mode: 'persistentSequential' })],
  ['setData with createIfMissing', (c) => c.setData('/a', 'x', { createIfMissing: true })],
  ['guaranteed delete', (c) => c.delete('/a', { guaranteed: true })],
  ['recursive delete', (c) => c.delete('/a', { recursive: true })],
  ['createMissing', (c) => c.createMissing(['/a/b'])],
  ['walk', (c) => c.walk('/').next()],
  ['multi', (c) => c.multi([{ op: 'create', path: '/a' }])],
  ['watch', (c) => c.watch('/')],
  ['call of a typed client', (c) => c.withCodec(utf8).update('/', (value) => value)],
  ['call of a chroot client', (c) => c.chroot('/a').getData('/')],
  ['call of an unordered client', (c) => c.unordered().getData('/')],
]

it.each(calls)('a %s rejects after the timeout of its client', async (_name, make) => {
  world.isolate()
  world.lastConnection.cut()
  await world.settle()
  const call = make(client)
  let failed = false
  call.catch(() => (failed = true))
  await world.settle()
  await world.advance(990)
  expect(failed).toBe(false)
  await world.advance(20)
  await expect(call).rejects.toMatchObject({ code: 'OPERATION_TIMEOUT' })
})

it('the timeout of a call replaces that of its client', async () => {
  world.isolate()
  const call = client.getData('/', { timeoutMs: 3000 })
  let failed = false
  call.catch(() => (failed = true))
  await world.advance(2900)
  expect(failed).toBe(false)
  await world.advance(200)
  expect(failed).toBe(true)
})

it('a guaranteed delete goes on in the background after the timeout of its client', async () => {
  await run(client.create('/a'))
  const restore = world.refuseConnections()
  world.lastConnection.cut()
  await world.settle()
  const call = client.delete('/a', { guaranteed: true })
  call.catch(() => {})
  await world.advance(1500)
  await expect(call).rejects.toMatchObject({ code: 'OPERATION_TIMEOUT' })
  restore()
  await world.advance(10_000)
  expect(await run(client.exists('/a'))).toBeUndefined()
})

it('a typed watch goes on beyond the timeout of its client, also while there is no connection', async () => {
  await run(client.create('/w', { data: '1' }))
  const seen = world.collect(client.withCodec(utf8).watch('/w'))
  await world.advance(5000)
  const restore = world.refuseConnections()
  world.lastConnection.cut()
  await world.advance(5000)
  restore()
  await world.advance(10_000)
  await run(client.setData('/w', '2'))
  await world.settle()
  expect(seen.map((found) => found?.value)).toEqual(['1', '2'])
})
