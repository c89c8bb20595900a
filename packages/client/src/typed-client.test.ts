import { expect, it } from 'vitest'
import { json, utf8 } from './codecs.ts'
import { client, other, run, setupEachTest, world } from './testing/setup.ts'
import { bytes } from './testing/manual-world.ts'

setupEachTest({}, {})

it('a typed client reads all children with their values, sorted by name', async () => {
  const texts = client.withCodec(utf8)
  await run(texts.create('/t', 'root'))
  for (const name of ['b', 'c', 'a']) await run(texts.create(`/t/${name}`, name.toUpperCase()))
  const children = await run(texts.children('/t'))
  expect([...children].map(([name, { value }]) => `${name}=${value}`)).toEqual(['a=A', 'b=B', 'c=C'])
  expect(children.get('a')!.stat.version).toBe(0)
  await expect(run(texts.children('/none'))).rejects.toMatchObject({ code: 'NO_NODE' })
  await run(texts.delete('/t', { recursive: true }))
  expect(await run(client.exists('/t'))).toBeUndefined()
})

it('a typed client rejects with a CodecError for a child that it cannot decode', async () => {
  await run(client.create('/t/a', { data: bytes('{'), parents: true }))
  await expect(run(client.withCodec(json()).children('/t'))).rejects.toMatchObject({
    code: 'DECODE_FAILED',
    cause: expect.any(SyntaxError),
  })
})

it('a typed watch yields the value, each change, and undefined while the znode is missing', async () => {
  const texts = client.withCodec(utf8)
  const seen = world.collect(texts.watch('/w'))
  const values = (): unknown[] => seen.map((found) => found?.value)
  await world.settle()
  await run(other.create('/w', { data: bytes('1') }))
  await world.settle()
  await run(other.setData('/w', bytes('2')))
  await world.settle()
  await run(other.delete('/w'))
  await world.settle()
  expect(values()).toEqual([undefined, '1', '2', undefined])
  await run(other.create('/w', { data: bytes('3') }))
  await world.settle()
  world.connections[0]!.cut()
  await world.advance(3000)
  await run(other.setData('/w', bytes('4')))
  await world.settle()
  expect(values().slice(4)).toEqual(['3', '4'])
})

it('a typed watch goes on in a new session', async () => {
  await run(other.create('/w', { data: bytes('1') }))
  const own = await world.client()
  const seen = world.collect(own.withCodec(utf8).watch('/w'))
  await world.settle()
  const restore = world.refuseConnections()
  for (const connection of world.connections) connection.cut()
  await world.advance(30_000)
  restore()
  await world.advance(30_000)
  const writer = await world.client()
  await run(writer.setData('/w', bytes('2')))
  await world.advance(1000)
  expect(seen.map((found) => found?.value)).toEqual(['1', '2'])
})

it('a typed watch ends by its signal and when its loop is left, and leaves no watch on the server', async () => {
  await run(client.create('/w', { data: bytes('1') }))
  const texts = client.withCodec(utf8)
  const abort = new AbortController()
  const ended = (async () => {
    for await (const _value of texts.watch('/w', { signal: abort.signal }));
  })()
  ended.catch(() => {})
  const left = async (): Promise<void> => {
    for await (const _value of texts.watch('/w')) break
  }
  await run(left())
  await world.settle()
  abort.abort()
  await expect(run(ended)).rejects.toMatchObject({ code: 'ABORTED' })
  await world.settle()
  expect(world.server.stats().watches).toBe(0)
})
