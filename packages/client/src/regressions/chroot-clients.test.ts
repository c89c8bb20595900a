import { expect, it } from 'vitest'
import { utf8 } from '../codecs.ts'
import { setupEachTest, world } from '../testing/setup.ts'
import { bytes } from '../testing/manual-world.ts'

setupEachTest()

it('redactPath also covers the errors passed to observers', async () => {
  let received = ''
  const client = await world.client({
    redactPath: (path) => path.replace(/\d+/, '#'),
    instrumentation: {
      request:
        () =>
        ({ error }) =>
          void (received = `${error?.message} ${error?.path} ${error?.stack}`),
    },
  })
  await expect(world.outcome(client.getData('/customer7'))).rejects.toThrow('/customer7')
  expect(received).toContain('/customer#')
  expect(received).not.toContain('/customer7')
})

it('the deadline of update covers all of its retries', async () => {
  const client = await world.client()
  const other = await world.client()
  await world.outcome(client.create('/n', { data: bytes('x') }))
  let rounds = 0
  const updated = client.withCodec(utf8).update(
    '/n',
    (value) => {
      rounds++
      if (rounds < 50) void other.setData('/n', bytes(String(rounds)))
      world.clock.advance(40)
      return rounds < 100 ? `${value}!` : value
    },
    { timeoutMs: 100 },
  )
  await expect(world.within(10_000, updated)).rejects.toMatchObject({ code: 'OPERATION_TIMEOUT' })
  expect(rounds).toBeLessThan(10)
})

it('closing a chroot client ends its own one-shot watches and no others', async () => {
  const client = await world.client()
  await world.outcome(client.createMissing(['/app']))
  const chrootClient = client.chroot('/app')
  const watch = await world.outcome(chrootClient.watchOnce('/x', 'exists'))
  const other = await world.outcome(client.watchOnce('/app/y', 'exists'))
  await world.outcome(chrootClient.close())
  await expect(world.outcome(watch.fired)).rejects.toMatchObject({ code: 'CLOSED' })
  expect(world.server.stats().watches).toBe(1)
  await world.outcome(client.create('/app/y'))
  expect(await world.outcome(other.fired)).toMatchObject({ type: 'nodeCreated' })
})

it('a watch() whose reply arrives after its chroot client closed is removed', async () => {
  const client = await world.client()
  const chrootClient = client.chroot('/')
  const watching = chrootClient.watch('/w')
  await chrootClient.close()
  const watcher = await world.outcome(watching).catch(() => undefined)
  await world.outcome(client.create('/w'))
  await world.settle()
  const next = watcher === undefined ? undefined : await world.outcome(watcher[Symbol.asyncIterator]().next())
  expect(next?.done ?? true).toBe(true)
})

it('detach of a chroot client is rejected and leaves the session to its owner', async () => {
  const client = await world.client()
  await expect(client.chroot('/x').detach()).rejects.toMatchObject({ code: 'USAGE' })
  expect(client.state).toBe('connected')
})
