import { UsageError, type Client } from '@zabra/client/core'
import { expect, it } from 'vitest'
import { Mutex } from '../mutex/mutex.ts'
import {
  client as a,
  cutOff,
  expireSession,
  setupEachTest,
  other as b,
  run,
  world,
} from '../testing/setup.ts'
import { bytes, rejectionOf } from '../testing/world.ts'
import { MultiLock, inPathOrder } from './multi-lock.ts'

setupEachTest('a', 'a')
const locks = (client: Client, ...paths: string[]): Mutex[] => paths.map((path) => new Mutex(client, path))
const left = async (...paths: string[]): Promise<number> =>
  (await Promise.all(paths.map((path) => run(b.getChildren(path))))).reduce(
    (n, { children }) => n + children.length,
    0,
  )

it('lock paths are sorted the same for all callers, and duplicates are rejected', () => {
  expect(inPathOrder([{ path: '/b' }, { path: '/a' }, { path: '/a/x' }]).map(({ path }) => path)).toEqual([
    '/a',
    '/a/x',
    '/b',
  ])
  expect(() => inPathOrder([{ path: '/a' }, { path: '/a' }])).toThrow(UsageError)
  expect(() => inPathOrder([])).toThrow(UsageError)
})

it("two clients that request the same locks in opposite orders both get them (Curator keeps the caller's order)", async () => {
  const one = new MultiLock(locks(a, '/x', '/y')).acquire()
  const two = new MultiLock(locks(b, '/y', '/x')).acquire()
  const first = await run(one)
  expect(first.tokens).toHaveLength(2)
  await run(first.release())
  const second = await run(two)
  expect(second.token).toBeGreaterThan(first.token)
  await run(second.release())
  expect(await left('/x', '/y')).toBe(0)
})

it('a timeout in the middle releases all locks', async () => {
  const other = await run(new Mutex(b, '/y').acquire())
  const stop = new AbortController()
  const failed = rejectionOf(new MultiLock(locks(a, '/z', '/y', '/x')).acquire({ signal: stop.signal }))
  await world.settle()
  stop.abort()
  expect(await run(failed)).toMatchObject({ name: 'AbortError' })
  await world.settle()
  expect(await left('/x', '/y')).toBe(1)
  await run(other.release())
})

it.each(['broken', 'expired'])(
  'a lock that is lost while the others are waited for is acquired again with them: connection %s',
  async (what) => {
    const c = await world.client({ servers: 'c:2181' })
    const other = await run(new Mutex(b, '/y').acquire())
    let isAlone: boolean | undefined
    const running = new MultiLock(locks(c, '/x', '/y')).run(async (held) => {
      held.assertHeld()
      isAlone = (await new Mutex(b, '/x').tryAcquire()) === undefined
    })
    await world.settle()
    if (what === 'expired') await expireSession('c')
    else {
      cutOff('c')()
      await world.advance(5000)
    }
    await run(other.release())
    await world.within(5000, running)
    expect(isAlone).toBe(true)
    expect(await left('/x', '/y')).toBe(0)
  },
)

it('a combined handle ends with the first lock that ends, and releases all', async () => {
  const held = await run(new MultiLock(locks(a, '/x', '/y')).acquire())
  held.assertHeld()
  const [name] = (await run(b.getChildren('/y'))).children
  await run(b.delete(`/y/${name}`))
  await world.advance(20)
  expect(held.signal.reason).toMatchObject({ reason: 'nodeDeleted' })
  expect(() => held.assertHeld()).toThrow('deleted')
  await run(held.release())
  expect(await left('/x', '/y')).toBe(0)
})

it('a combined handle guards writes with all its locks', async () => {
  await run(a.create('/data'))
  const held = await run(new MultiLock(locks(a, '/x', '/y', '/z')).acquire())
  const [stat] = await run(held.guard([{ op: 'setData', path: '/data', data: bytes('1') }]))
  expect(stat.version).toBe(1)
  await expect(run(held.guard([{ op: 'delete', path: '/no' }]))).rejects.toMatchObject({
    index: 0,
    code: 'MULTI_FAILED',
  })
  const [name] = (await run(b.getChildren('/z'))).children
  world.faults.toClient = (chunk, wire) => (wire === world.connections[0] ? undefined : chunk)
  await run(b.delete(`/z/${name}`))
  delete world.faults.toClient
  await expect(run(held.guard([{ op: 'setData', path: '/data', data: bytes('2') }]))).rejects.toMatchObject({
    name: 'LostError',
    reason: 'nodeDeleted',
  })
  await run(held.release())
  const mixed = await run(new MultiLock([...locks(a, '/x'), ...locks(b, '/y')]).acquire())
  await expect(mixed.guard([])).rejects.toThrow('one client')
  await run(mixed.release())
})
