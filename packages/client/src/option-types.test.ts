import { expect, expectTypeOf, it } from 'vitest'
import { client, run, setupEachTest } from './testing/setup.ts'
import type { Client } from './client-api.ts'
import type { ClientOptions } from './client-options.ts'
import type {
  CallOptions,
  CreateOptions,
  DeleteOptions,
  MissingNode,
  OneShotWatches,
  ReconfigChange,
  RetryPolicy,
  SetDataOptions,
  Stat,
  WatchOptions,
  Zxid,
} from './types.ts'
import type { RecursiveDeleteOptions, WalkOptions } from './tree-types.ts'

setupEachTest({})

/** The names of optional properties that an explicit undefined does not fit. */
type RefusesUndefined<T> = {
  [K in keyof T]-?: object extends Pick<T, K>
    ? { [P in K]: undefined } extends Pick<T, K>
      ? never
      : K
    : never
}[keyof T]

it('every optional property of the options takes undefined', () => {
  expectTypeOf<RefusesUndefined<CallOptions>>().toBeNever()
  expectTypeOf<RefusesUndefined<ClientOptions>>().toBeNever()
  expectTypeOf<RefusesUndefined<CreateOptions>>().toBeNever()
  expectTypeOf<RefusesUndefined<DeleteOptions>>().toBeNever()
  expectTypeOf<RefusesUndefined<MissingNode>>().toBeNever()
  expectTypeOf<RefusesUndefined<ReconfigChange>>().toBeNever()
  expectTypeOf<RefusesUndefined<RecursiveDeleteOptions>>().toBeNever()
  expectTypeOf<RefusesUndefined<RetryPolicy>>().toBeNever()
  expectTypeOf<RefusesUndefined<SetDataOptions>>().toBeNever()
  expectTypeOf<RefusesUndefined<WalkOptions>>().toBeNever()
  expectTypeOf<RefusesUndefined<WatchOptions>>().toBeNever()
  // The check itself finds such a property.
  expectTypeOf<RefusesUndefined<{ a: number; b?: number; c?: number | undefined }>>().toEqualTypeOf<'b'>()
})

it('a one-shot watch has what its kind reads', async () => {
  await run(client.create('/a', { data: 'x' }))
  const data = await run(client.watchOnce('/a', 'data'))
  expectTypeOf(data).toEqualTypeOf<OneShotWatches['data']>()
  expectTypeOf(data.data).toEqualTypeOf<Uint8Array<ArrayBuffer>>()
  expectTypeOf(data.stat).toEqualTypeOf<Stat>()
  expect([data.data.length, data.isNull, data.stat.version]).toEqual([1, false, 0])
  const { children, stat } = await run(client.watchOnce('/a', 'children'))
  expectTypeOf(children).toEqualTypeOf<readonly string[]>()
  expect([children, stat.numChildren]).toEqual([[], 0])
  const missing = await run(client.watchOnce('/none', 'exists'))
  expectTypeOf(missing.stat).toEqualTypeOf<Stat | undefined>()
  expect(missing.stat).toBeUndefined()
})

it('what was read is in an ArrayBuffer of its own, as Blob, fetch and crypto.subtle demand', async () => {
  await run(client.create('/a', { data: 'x' }))
  expectTypeOf((await run(client.getData('/a'))).data).toEqualTypeOf<Uint8Array<ArrayBuffer>>()
  expectTypeOf((await run(client.node('/a').get())).value).toEqualTypeOf<Uint8Array<ArrayBuffer>>()
  const [read] = await run(client.multiRead([{ op: 'getData', path: '/a' }]))
  if ('code' in read) throw read
  expectTypeOf(read.data).toEqualTypeOf<Uint8Array<ArrayBuffer>>()
  expect(read.data.buffer.byteLength).toBe(1)
})

it('a zxid is a type of its own, compared as a bigint', async () => {
  const { stat: first } = await run(client.create('/a'))
  const { stat: second } = await run(client.create('/b'))
  expectTypeOf(first.czxid).toEqualTypeOf<Zxid>()
  expectTypeOf(await run(client.syncCommitted())).toEqualTypeOf<Zxid>()
  expectTypeOf<Zxid>().toExtend<bigint>()
  expectTypeOf<bigint>().not.toExtend<Zxid>()
  // @ts-expect-error the id of a session is no zxid
  const owner: Zxid = second.ephemeralOwner
  expect([owner, first.czxid < second.czxid, first.czxid === first.mzxid]).toEqual([0n, true, true])
  expect((BigInt(String(first.czxid)) as Zxid) === first.czxid).toBe(true)
})

it('calls whose options contradict each other do not compile', () => {
  // Never called: the compiler checks it.
  const calls = async (c: Client): Promise<void> => {
    await c.create('/a', { mode: 'persistentWithTtl', ttlMs: 1000 })
    // @ts-expect-error a TTL mode without a time
    await c.create('/a', { mode: 'persistentWithTtl' })
    // @ts-expect-error a time with a mode without one
    await c.create('/a', { mode: 'ephemeral', ttlMs: 1000 })
    // @ts-expect-error a time without a mode
    await c.create('/a', { ttlMs: 1000 })
    await c.multi([{ op: 'create', path: '/a', mode: 'persistentSequentialWithTtl', ttlMs: 1000 }])
    // @ts-expect-error a time with a mode without one
    await c.multi([{ op: 'create', path: '/a', mode: 'ephemeral', ttlMs: 1000 }])
    // @ts-expect-error a version of one znode for a whole tree
    await c.delete('/a', { recursive: true, version: 1 })
    // @ts-expect-error an unknown kind
    await c.watchOnce('/a', 'child')
  }
  expect(calls).toBeTypeOf('function')
})
