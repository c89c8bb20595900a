import { beforeEach, describe, expect, it } from 'vitest'
import type { Client } from '../client-api.ts'
import { ConnectionLossError, OperationTimeoutError } from '../errors.ts'
import { run, setupEachTest, world } from '../testing/setup.ts'
import { bytes } from '../testing/manual-world.ts'

setupEachTest()

describe('requests without a connection', () => {
  let client: Client
  beforeEach(async () => {
    client = await world.client({ offlineQueue: 2 })
    world.isolate()
    world.lastConnection.cut()
    await world.settle()
  })

  it('wait for one, up to the limit of the offline queue', async () => {
    const held = [client.exists('/'), client.exists('/')]
    await expect(client.exists('/')).rejects.toMatchObject({
      name: 'ConnectionLossError',
      maybeApplied: false,
      message: expect.stringContaining('2 requests are queued already'),
    })
    world.endIsolation()
    await world.advance(2000)
    await run(Promise.all(held))
  })

  it('can be aborted', async () => {
    const abort = new AbortController()
    const held = client.create('/a', { data: bytes(''), signal: abort.signal })
    held.catch(() => {})
    abort.abort(new Error('changed my mind'))
    await expect(held).rejects.toMatchObject({
      name: 'AbortError',
      maybeApplied: false,
      cause: { message: 'changed my mind' },
    })
    world.endIsolation()
    await world.advance(2000)
    expect(await run(client.exists('/a'))).toBeUndefined()
  })

  it('reject with an OperationTimeoutError at their timeout', async () => {
    const held = client.exists('/', { timeoutMs: 300 })
    held.catch(() => {})
    await world.advance(350)
    await expect(held).rejects.toThrow(OperationTimeoutError)
  })

  it('reject at once with an offline queue of 0', async () => {
    const strict = world.connect({ offlineQueue: 0 })
    world.endIsolation()
    const other = await world.within(2000, strict)
    world.isolate()
    world.lastConnection.cut()
    await world.settle()
    await expect(other.exists('/')).rejects.toThrow(ConnectionLossError)
    await run(other.close())
  })
})
