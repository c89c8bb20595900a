import { expect, expectTypeOf, it } from 'vitest'
import { json, utf8 } from './codecs.ts'
import { UsageError } from './errors.ts'
import { client, other, run, setupEachTest, world } from './testing/setup.ts'
import type { NodeHandle } from './client-api.ts'
import type { Data, OwnBytes, Stat } from './types.ts'

setupEachTest({}, {})

it('a handle creates, reads, writes, updates and deletes its znode', async () => {
  const threads = client.node('/app/threads', json<number>())
  expectTypeOf(threads).toEqualTypeOf<NodeHandle<number>>()
  expect(await run(threads.exists())).toBeUndefined()
  expect(await run(threads.create(4, { parents: true }))).toMatchObject({ path: '/app/threads' })
  const read = await run(threads.get())
  expectTypeOf(read.value).toEqualTypeOf<number>()
  expectTypeOf(read.stat).toEqualTypeOf<Stat>()
  expect([read.value, read.stat.version]).toEqual([4, 0])
  expect((await run(threads.set(5, { version: 0 }))).version).toBe(1)
  await expect(run(threads.set(6, { version: 0 }))).rejects.toMatchObject({ code: 'BAD_VERSION' })
  const updates = Promise.all([1, 2, 3].map(() => threads.update((value) => value + 1)))
  const updated = await world.within(10_000, updates)
  expect(updated.map(({ value }) => value).toSorted((a, b) => a - b)).toEqual([6, 7, 8])
  expect((await run(threads.exists()))?.version).toBe(4)
  await run(threads.delete({ version: 4 }))
  await run(threads.delete({ missingOk: true }))
  await run(client.node('/app').delete({ recursive: true }))
  expect(await run(client.exists('/app'))).toBeUndefined()
})

it('a handle without a codec writes bytes and text, and reads bytes', async () => {
  const node = client.node('/raw')
  expectTypeOf(node).toEqualTypeOf<NodeHandle<OwnBytes, Data>>()
  await run(node.create('text', { mode: 'ephemeral' }))
  expect((await run(node.get())).value).toEqual(new TextEncoder().encode('text'))
  await run(node.update((data) => data.subarray(0, 2)))
  await run(node.set(new Uint8Array([1])))
  expect((await run(client.getData('/raw'))).data).toEqual(new Uint8Array([1]))
  await expect(run(node.set(5 as never))).rejects.toMatchObject({ code: 'USAGE' })
})

it('a handle watches its znode until the loop is left', async () => {
  const node = client.node('/w', utf8)
  const seen = world.collect(node.watch())
  await world.settle()
  await run(other.create('/w', { data: '1' }))
  await world.settle()
  await run(other.delete('/w'))
  await world.settle()
  expect(seen.map((found) => found?.value)).toEqual([undefined, '1', undefined])
})

it('a handle belongs to the chroot and the order of its client', async () => {
  await run(client.create('/app'))
  const node = client.chroot('/app').node('/a', utf8)
  await run(node.create('x'))
  expect(node.path).toBe('/a')
  expect(await run(client.exists('/app/a'))).toBeDefined()
})

it('a handle of an invalid path is refused at once', () => {
  for (const path of ['a', '/a/', '/a//b', '', 5 as never])
    expect(() => client.node(path), String(path)).toThrow(UsageError)
})

it('creates whose result would have another path do not compile', () => {
  const calls = async (node: NodeHandle<string>): Promise<void> => {
    await node.create('x', { mode: 'persistentWithTtl', ttlMs: 1000 })
    // @ts-expect-error the server chooses the name
    await node.create('x', { mode: 'ephemeralSequential' })
    // @ts-expect-error a prefix before the name
    await node.create('x', { protected: true })
    // @ts-expect-error the value is the data
    await node.create('x', { data: 'y' })
    // @ts-expect-error the value is the data
    await client.withCodec(utf8).create('/a', 'x', { data: 'y' })
  }
  expect(calls).toBeTypeOf('function')
})
