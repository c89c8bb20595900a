import { expect, it } from 'vitest'
import { utf8 } from '../codecs.ts'
import { client, other, run, setupEachTest, world } from '../testing/setup.ts'

setupEachTest({}, { offlineQueue: 0 })

const isBackingOff = (): boolean => world.clock.pendingTimers().some(({ name }) => name === 'backoff')

it.each(['timeout', 'signal'])('an update that backs off ends with its %s', async (limit) => {
  await run(client.create('/n'))
  const abort = new AbortController()
  const limits = limit === 'timeout' ? { timeoutMs: 30_000 } : { signal: abort.signal }
  let tries = 0
  const losing = (value: string): string => {
    void other.setData('/n', String(++tries))
    return value
  }
  const update = client.withCodec(utf8).update('/n', losing, limits)
  update.catch(() => {})
  await world.advance(29_950)
  expect([tries > 5, isBackingOff()]).toEqual([true, true])
  if (limit === 'signal') abort.abort()
  await expect(world.within(100, update)).rejects.toMatchObject({
    code: limit === 'timeout' ? 'OPERATION_TIMEOUT' : 'ABORTED',
  })
  expect(isBackingOff()).toBe(false)
})

it('a watch of values that backs off ends with its signal', async () => {
  const abort = new AbortController()
  world.refuseConnections()
  for (const connection of world.connections) connection.cut()
  await world.settle()
  const next = other.withCodec(utf8).watch('/n', { signal: abort.signal }).next()
  next.catch(() => {})
  await world.advance(9000)
  expect(isBackingOff()).toBe(true)
  abort.abort()
  await expect(world.within(100, next)).rejects.toMatchObject({ code: 'ABORTED' })
})
