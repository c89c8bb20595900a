import { expect, it } from 'vitest'
import { Mutex, PersistentNode, TreeCache } from './index.ts'
import { cutOff, run, setupEachTest, world } from './testing/setup.ts'
import { bytes } from './testing/world.ts'

setupEachTest()

it('recipes wait through an outage that is longer than the timeout of their client', async () => {
  const client = await world.client({ timeoutMs: 1000, errorPolicy: 'session' })
  const node = new PersistentNode(client, '/node', bytes('1'))
  await run(node.ready)
  const cache = new TreeCache(client, '/node')
  await run(cache.ready)
  const held = await run(new Mutex(client, '/lock').acquire())
  const waiting = new Mutex(client, '/lock').acquire()
  await world.settle()
  const restore = cutOff()
  await world.settle()
  const call = client.getData('/node')
  call.catch(() => {})
  const written = node.setData(bytes('2'))
  await world.advance(5000)
  await expect(call).rejects.toMatchObject({ code: 'OPERATION_TIMEOUT' })
  restore()
  await world.within(10_000, written)
  await world.within(10_000, held.release())
  const next = await world.within(10_000, waiting)
  expect(cache.get('/node')?.value).toEqual(bytes('2'))
  await run(Promise.all([next.release(), cache.close(), node.close()]))
})
