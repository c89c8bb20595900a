import { ErrorCode, OpCode } from '@zabra/protocol'
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

it('a recursive delete backs off for longer than one of its requests may take', async () => {
  await run(client.create('/n'))
  const isDelete = ({ frame }: { frame: Uint8Array }): boolean =>
    new DataView(frame.buffer, frame.byteOffset).getInt32(8) === OpCode.delete
  // Another client creates a child each time.
  world.answerWith(ErrorCode.NOTEMPTY, { times: 100, matches: isDelete })
  let hasEnded = false
  const end = (): void => void (hasEnded = true)
  client.delete('/n', { recursive: true, requestTimeoutMs: 10 }).then(end, end)
  await world.advance(1000)
  expect([hasEnded, isBackingOff()]).toEqual([false, true])
})
