import { AbortedError, json, OperationTimeoutError, utf8, type Client } from '@zabra/client/core'
import { describe, expect, it } from 'vitest'
import { AmbiguousResultError, AtomicValue, Barrier, Configuration, Counter, Queue } from './index.ts'
import { NameService } from './name-service/index.ts'
import { ServiceDiscovery } from './service-discovery/index.ts'
import { client, cutOff, other, run, setupEachTest, world } from './testing/setup.ts'
import { tree } from './testing/fault-fixture.ts'
import { rejectionOf, text, watchSettled } from './testing/world.ts'

// Calls whose limits end while it is not known whether their write was applied.

setupEachTest('a', 'b')

const configuration = (of: Client): Configuration<number> =>
  new Configuration(of, '/config', { codec: json<number>() })
const queue = (of = client): Queue<string> => new Queue(of, '/q', { codec: utf8 })

/** Cuts the host off when it sends a request with this text, once the server has applied it if `applied` is set. */
function cutOffAt(mark: string, applied: boolean): { restore: () => void } {
  const outage = { restore: (): void => {} }
  let isDue = false
  const cut = (): undefined => {
    delete world.faults.toServer
    delete world.faults.toClient
    world.clock.immediate(() => (outage.restore = cutOff('a')))
    return undefined
  }
  world.faults.toServer = (chunk, connection) => {
    if (connection.server.host !== 'a' || !text(chunk).includes(mark)) return chunk
    if (!applied) return cut()
    isDue = true
    return chunk
  }
  world.faults.toClient = (chunk, connection) => (isDue && connection.server.host === 'a' ? cut() : chunk)
  return outage
}

const markers = async (): Promise<string[]> =>
  (await run(tree(other))).filter((path) => /\/(put|op)-|\/claims\/|-marks\//.test(path))

describe.each(['timeout', 'signal'])('a write in doubt whose %s ends it without a connection', (limit) => {
  /** Makes a call whose limits end after half a second. */
  async function failureOf(
    call: (options: { timeoutMs?: number; signal?: AbortSignal }) => Promise<unknown>,
  ): Promise<AmbiguousResultError> {
    const stop = new AbortController()
    const options = limit === 'timeout' ? { timeoutMs: 500 } : { signal: stop.signal }
    const failed = rejectionOf(call(options))
    await world.advance(450)
    if (limit === 'signal') world.clock.after(50, 'abort of the test', () => stop.abort())
    const error = (await world.within(100, failed)) as AmbiguousResultError
    expect(error).toBeInstanceOf(AmbiguousResultError)
    expect(error).toMatchObject({ maybeApplied: true })
    expect(error.message).toMatch(/unknown/)
    return error
  }

  const cause = limit === 'timeout' ? OperationTimeoutError : AbortedError

  /** Returns the first error below an ambiguous result that is none. */
  function causeOf(error: unknown): unknown {
    return error instanceof AmbiguousResultError ? causeOf(error.cause) : error
  }

  it.each([true, false])('says so for a put, and leaves no marker (applied: %s)', async (applied) => {
    await run(queue().put('a'))
    const outage = cutOffAt('/q/marks/put-', applied)
    const error = await failureOf((options) => queue().put('b', options))
    expect(error.value).toEqual(['b'])
    expect(causeOf(error)).toBeInstanceOf(cause)
    outage.restore()
    await world.advance(5000)
    expect(await run(queue(other).size())).toBe(applied ? 2 : 1)
    expect(await markers()).toEqual([])
  })

  it('says so for a take, with the item that may be taken', async () => {
    await run(queue().putAll(['', 'a']))
    await run(queue().take())
    const outage = cutOffAt('/q/claims/', true)
    const error = await failureOf((options) => queue().take(options))
    expect(error.value).toBe('a')
    outage.restore()
    await world.advance(5000)
    expect(await run(queue(other).size())).toBe(0)
    expect(await markers()).toEqual([])
  })

  it('says so for a counter', async () => {
    await run(new Counter(client, '/c').add(1n))
    const outage = cutOffAt('/c-ops/', true)
    expect(causeOf(await failureOf((options) => new Counter(client, '/c').add(1n, options)))).toBeInstanceOf(
      cause,
    )
    outage.restore()
    await world.advance(5000)
    expect(await run(new Counter(other, '/c').get())).toBe(2n)
    expect(await markers()).toEqual([])
  })

  it('says so for a name', async () => {
    const names = new NameService(client, '/names', utf8)
    await run(names.register('a', ''))
    const outage = cutOffAt('/names-marks/', true)
    await failureOf((options) => names.register('b', '', options))
    outage.restore()
    await world.advance(5000)
    expect(await markers()).toEqual([])
  })

  it('says so for a permanent instance of a service, which stays', async () => {
    await run(client.createMissing(['/s/api']))
    const discovery = new ServiceDiscovery(client, '/s')
    const instance = { name: 'api', id: 'x', address: 'h', port: 1, serviceType: 'PERMANENT' } as const
    const outage = cutOffAt('/s/api/x', true)
    const error = await failureOf((options) => discovery.register(instance, options))
    expect(error.value).toMatchObject(instance)
    expect(causeOf(error)).toBeInstanceOf(cause)
    outage.restore()
    await world.advance(5000)
    expect(await run(new ServiceDiscovery(other, '/s').instances('api'))).toHaveLength(1)
  })

  it('says so for a barrier', async () => {
    const outage = cutOffAt('/barrier', true)
    await failureOf((options) => new Barrier(client, '/barrier').set(options))
    outage.restore()
    expect(await run(other.exists('/barrier'))).toBeDefined()
  })

  it('says so for a configuration', async () => {
    await run(configuration(client).set(1))
    cutOffAt('/config', true)
    const error = await failureOf((options) => configuration(client).set(2, options))
    expect(error.value).toBe(2)
    expect(await run(configuration(other).get())).toMatchObject({ value: 2 })
  })

  it('resolves to undefined for a put whose name is not found in time after a lost reply', async () => {
    const own = queue()
    await run(own.put('a'))
    let isLost = false
    world.faults.toClient = (chunk, connection) => {
      if (connection.server.host !== 'a' || isLost || chunk.length < 60) return chunk
      isLost = true
      connection.cut()
      delete world.faults.toClient
      // The marker is found, and the connection is lost again when the items are listed.
      world.faults.toServer = (request, sent) => {
        if (sent.server.host !== 'a' || !text(request).slice(0, -1).endsWith('/q/items')) return request
        delete world.faults.toServer
        world.clock.immediate(() => void cutOff('a'))
        return undefined
      }
      return undefined
    }
    expect(await world.within(6500, own.put('b', { timeoutMs: 6000 }))).toBeUndefined()
    expect(isLost).toBe(true)
    expect(await run(queue(other).size())).toBe(2)
  })
})

describe('a write in doubt whose session has expired', () => {
  it.each([
    ['take', () => queue().take({ timeoutMs: 60_000 })],
    [
      'value',
      () => new AtomicValue(client, '/v', { codec: utf8, initial: '' }).set('x', { timeoutMs: 60_000 }),
    ],
  ])('ends in time when the connection is lost again: %s', async (name, call) => {
    await run(queue().putAll(['', 'a']))
    await run(queue().take())
    await run(new AtomicValue(client, '/v', { codec: utf8, initial: '' }).set('y'))
    const outage = cutOffAt(name === 'take' ? '/q/claims/' : '/v-ops/', true)
    const failed = rejectionOf(call())
    const isOver = watchSettled(failed)
    await world.advance(20_000)
    outage.restore()
    world.faults.toServer = (chunk, connection) => {
      if (connection.server.host !== 'a' || !/\/(v|items\/queue-.*)/.test(text(chunk))) return chunk
      delete world.faults.toServer
      world.clock.immediate(() => void cutOff('a'))
      return undefined
    }
    await world.advance(12_000)
    expect(isOver()).toBe(false)
    expect(await world.within(31_000, failed)).toBeInstanceOf(AmbiguousResultError)
  })
})

describe('a lost reply of a client that retries for a second', () => {
  const names = (of: Client): NameService<string> => new NameService(of, '/names', utf8)
  const isSync = (chunk: Uint8Array): boolean =>
    new DataView(chunk.buffer, chunk.byteOffset).getInt32(8) === 9

  it.each<[string, string, (of: Client) => Promise<unknown>, unknown]>([
    ['a put', '/q/marks/put-', (of) => queue(of).put('b'), expect.stringMatching(/^queue-/)],
    ['a take', '/q/claims/', (of) => queue(of).take(), 'a'],
    ['a counter', '/c-ops/', (of) => new Counter(of, '/c').add(1n), 2n],
    ['a name', '/names-marks/', (of) => names(of).register('b', ''), expect.anything()],
  ])('is resolved when the search for it is lost too: %s', async (_name, mark, call, result) => {
    await run(queue().putAll(['', 'a']))
    await run(queue().take())
    await run(new Counter(client, '/c').add(1n))
    await run(names(client).register('a', ''))
    const own = await world.client({ servers: 'a:2181', retry: { maxElapsedMs: 1000 } })
    const outage = cutOffAt(mark, true)
    const called = call(own)
    await world.settle()
    world.faults.toServer = (chunk, connection) => {
      if (connection.server.host !== 'a' || !isSync(chunk)) return chunk
      delete world.faults.toServer
      world.clock.immediate(() => (outage.restore = cutOff('a')))
      return undefined
    }
    outage.restore()
    await world.advance(5000)
    expect('toServer' in world.faults).toBe(false)
    outage.restore()
    expect(await world.within(5000, called)).toEqual(result)
    await world.settle()
    expect(await markers()).toEqual([])
  })

  it('is in doubt when the client is closed meanwhile, with the item that may be taken', async () => {
    await run(queue().putAll(['', 'a']))
    await run(queue().take())
    cutOffAt('/q/claims/', true)
    const failed = rejectionOf(queue().take())
    await world.settle()
    await run(client.close())
    expect(await world.within(1000, failed)).toMatchObject({ name: 'AmbiguousResultError', value: 'a' })
  })
})

it('a configuration over a version is in doubt when the version may have been written by this call', async () => {
  await run(configuration(client).set(1))
  const { version } = await run(configuration(client).get())
  const outage = cutOffAt('/config', true)
  const failed = rejectionOf(configuration(client).set(2, { version }))
  await world.settle()
  outage.restore()
  expect(await world.within(5000, failed)).toMatchObject({ name: 'AmbiguousResultError', value: 2 })
  const again = rejectionOf(configuration(client).set(3, { version }))
  expect(await run(again)).toMatchObject({ code: 'BAD_VERSION' })
})

it.each<[string, () => Promise<unknown>]>([
  ['put', () => queue().put('a')],
  ['putAll', () => queue().putAll(['a', 'b'])],
])(
  'a %s resolves to undefined when its reply was lost and an item was taken before its name was read',
  async (_name, call) => {
    await run(queue().put('x'))
    await run(queue(other).take())
    const taken = queue(other).take()
    await world.settle()
    const outage = cutOffAt('/q/marks/put-', true)
    const put = call()
    expect(await run(taken)).toBe('a')
    outage.restore()
    expect(await world.within(5000, put)).toBeUndefined()
  },
)

it('a put that was sent when its time is up is reported, while there is a connection', async () => {
  const own = queue()
  await run(own.put('a'))
  const held: (() => void)[] = []
  world.faults.toClient = (chunk, connection) => {
    if (connection.server.host !== 'a') return chunk
    held.push(() => connection.deliver(chunk))
    return undefined
  }
  const put = own.put('b', { timeoutMs: 500 })
  const isOver = watchSettled(put)
  await world.advance(1000)
  expect(isOver()).toBe(false)
  delete world.faults.toClient
  for (const deliver of held) deliver()
  expect(await run(put)).toMatch(/^queue-/)
  expect(await run(queue(other).size())).toBe(2)
})
