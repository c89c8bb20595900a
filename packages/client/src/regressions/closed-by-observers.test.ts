import { ErrorCode } from '@zabra/protocol'
import { expect, it } from 'vitest'
import type { Client } from '../client-api.ts'
import { ScriptedServer } from '../testing/scripted-server.ts'
import { setupEachTest, world } from '../testing/setup.ts'

setupEachTest()

const SEARCH = 'search for a read-write server'
const timers = (): string[] => world.clock.pendingTimers().map(({ name }) => name)

it.each(['suspended', 'expired'])('a client that an observer closes at state %s stays closed', async (at) => {
  const closing: Client[] = []
  const state = (change: { state: string }): void => {
    if (change.state === at) for (const each of closing) void each.close()
  }
  const client = await world.client({ sessionTimeoutMs: 3000, instrumentation: { state } })
  closing.push(client)
  world.refuseConnections()
  world.lastConnection.cut()
  await world.advance(10_000)
  expect(client.state).toBe('closed')
  expect(timers()).not.toContain('local expiry')
})

it.each(['an observer', 'a retry function'])(
  'each call rejects when %s detaches the client while its connection is lost',
  async (closer) => {
    const detaching: Client[] = []
    const detach = (): void => {
      for (const each of detaching.splice(0)) void each.detach()
    }
    const client = await world.client({
      sessionTimeoutMs: 3000,
      ...(closer === 'an observer'
        ? { retry: { maxAttempts: 1 }, instrumentation: { request: () => detach } }
        : {
            retry: () => {
              detach()
              return 0
            },
          }),
    })
    world.faults.toServer = () => undefined
    const calls = Promise.allSettled([client.getData('/'), client.getData('/'), client.create('/a')])
    await world.settle()
    detaching.push(client)
    world.refuseConnections()
    world.lastConnection.cut()
    const settled = await world.within(100, calls)
    expect(settled.map(({ status }) => status)).toEqual(['rejected', 'rejected', 'rejected'])
    await world.advance(10_000)
    expect(client.state).toBe('closed')
    expect(timers()).not.toContain('local expiry')
  },
)

it.each([false, true])(
  'each call rejects when a retry function detaches the client whose session has moved (batched: %s)',
  async (batchReads) => {
    const detaching: Client[] = []
    // The second read of a batch detaches the client, after the first was put aside.
    let left = batchReads ? 2 : 1
    const retry = (): number => {
      if (--left === 0) for (const each of detaching) void each.detach()
      return 0
    }
    const client = await world.client({ batchReads, retry })
    detaching.push(client)
    world.answerWith(ErrorCode.SESSIONMOVED)
    const calls = Promise.allSettled([client.getData('/'), client.getData('/')])
    const settled = await world.within(100, calls)
    expect(settled.map(({ status }) => status)).toEqual(['rejected', 'rejected'])
  },
)

it('each call that waits for a connection rejects when an observer of one detaches the client', async () => {
  const detaching: Client[] = []
  const request = () => (): void => {
    for (const each of detaching.splice(0)) void each.detach()
  }
  const client = await world.client({ maxRequestBytes: 1024, instrumentation: { request } })
  world.lastConnection.cut()
  await world.settle()
  const calls = Promise.allSettled([client.create('/a', { data: 'x'.repeat(2000) }), client.getData('/')])
  await world.settle()
  detaching.push(client)
  const settled = await world.within(5000, calls)
  expect(settled).toMatchObject([{ reason: { code: 'USAGE' } }, { reason: { code: 'CLOSED' } }])
  expect(client.state).toBe('closed')
})

it('each call that waits for a move rejects when an observer of one detaches the client as it is closed', async () => {
  const detaching: Client[] = []
  const request = () => (): void => {
    for (const each of detaching.splice(0)) void each.detach()
  }
  const client = await world.client({ maxRequestBytes: 1024, instrumentation: { request } })
  world.faults.toServer = () => undefined
  const calls = [client.getData('/')]
  await world.settle()
  // The move waits for the read, and the other calls for the move.
  await world.outcome(client.updateServerList('b:2181'))
  const tooLong = client.setData('/', 'x'.repeat(2000))
  const settled = Promise.allSettled([...calls, tooLong, client.getData('/')])
  detaching.push(client)
  await world.within(100, client.close())
  expect(await world.outcome(settled)).toMatchObject([
    { reason: { code: 'CLOSED' } },
    { reason: { code: 'USAGE' } },
    { reason: { code: 'CLOSED' } },
  ])
})

it('calls that wait for a connection are sent on the next one when an observer of its state leaves it', async () => {
  const updating: Client[] = []
  const state = (change: { state: string }): void => {
    if (change.state !== 'connected') return
    for (const each of updating.splice(0)) void each.updateServerList('b:2181')
  }
  const client = await world.client({ instrumentation: { state } })
  updating.push(client)
  world.lastConnection.cut()
  await world.settle()
  await world.within(5000, client.getData('/'))
  expect(client.server).toBe('tcp://b:2181')
})

it('a client that an observer of a waiting call detaches at a read-only server searches for no other', async () => {
  const server = await ScriptedServer.start(world, 5000)
  server.connectResponse = () => ({ readOnly: true })
  const detaching: Client[] = []
  const request = () => (): void => {
    for (const each of detaching) void each.detach()
  }
  const client = await world.client({
    servers: 's:5000',
    readOnly: true,
    maxRequestBytes: 1024,
    instrumentation: { request },
  })
  server.lastConnection.raw.destroy()
  await world.settle()
  const tooLong = client.create('/a', { data: 'x'.repeat(2000) })
  tooLong.catch(() => {})
  detaching.push(client)
  await world.advance(3000)
  await expect(tooLong).rejects.toMatchObject({ code: 'USAGE' })
  expect([client.state, timers().includes(SEARCH)]).toEqual(['closed', false])
  await server.stop()
})

it('a client that an observer detaches from a read-only server searches for no other', async () => {
  const server = await ScriptedServer.start(world, 5000)
  server.connectResponse = ({ readOnly }) => (readOnly ? { readOnly: true } : undefined)
  server.fourLetterReplies = { isro: 'ro' }
  const detaching: Client[] = []
  const state = (change: { state: string }): void => {
    if (change.state === 'connectedReadOnly') for (const each of detaching) void each.detach()
  }
  const client = await world.client({ servers: 's:5000', readOnly: true, instrumentation: { state } })
  detaching.push(client)
  expect(timers()).toContain(SEARCH)
  server.lastConnection.raw.destroy()
  await world.advance(3000)
  expect(client.state).toBe('closed')
  expect(timers()).not.toContain(SEARCH)
  await server.stop()
})

it('a client that an observer detaches as it leaves a read-only server does not connect to the next', async () => {
  const server = await ScriptedServer.start(world, 5000)
  server.connectResponse = ({ readOnly }) => (readOnly ? { readOnly: true } : undefined)
  server.fourLetterReplies = { isro: 'ro' }
  server.onRequest = () => {}
  const detaching: Client[] = []
  const request = () => (): void => {
    for (const each of detaching) void each.detach()
  }
  const retry = { maxAttempts: 1 }
  const client = await world.client({
    servers: 's:5000',
    readOnly: true,
    retry,
    instrumentation: { request },
  })
  const read = client.getData('/')
  read.catch(() => {})
  await world.settle()
  detaching.push(client)
  server.fourLetterReplies = { isro: 'rw' }
  server.connectResponse = () => ({})
  await world.advance(3000)
  await expect(read).rejects.toMatchObject({ code: 'CONNECTION_LOSS' })
  expect([client.state, client.server]).toEqual(['closed', undefined])
  expect(timers()).not.toContain('heartbeat')
  await server.stop()
})

it('a call whose retry function detaches the client rejects at once, not after the delay', async () => {
  const detaching: Client[] = []
  const retry = (): number => {
    for (const each of detaching) void each.detach()
    return 60_000
  }
  const client = await world.client({ retry })
  detaching.push(client)
  world.answerWith(ErrorCode.THROTTLEDOP)
  const calls = Promise.allSettled([client.getData('/')])
  expect(await world.within(100, calls)).toMatchObject([{ reason: { code: 'CLOSED' } }])
})

it('a client that an observer closes while its connection is lost waits for no other connection', async () => {
  const closing: Client[] = []
  let closed = 0
  const request = () => (): void => {
    for (const each of closing.splice(0)) void each.close().then(() => closed++)
  }
  const client = await world.client({ instrumentation: { request } })
  world.faults.toServer = () => undefined
  const calls = Promise.allSettled([client.create('/a'), client.getData('/')])
  await world.settle()
  closing.push(client)
  world.refuseConnections()
  world.lastConnection.cut()
  const settled = await world.within(100, calls)
  expect(settled.map(({ status }) => status)).toEqual(['rejected', 'rejected'])
  expect([client.state, closed]).toEqual(['closed', 1])
})

it('a client makes one attempt at a time when an observer gives it other servers', async () => {
  let open = 0
  const silent = await world.network.listen({ port: 5000 }, (connection) => {
    open++
    connection.setHandler({ data() {}, drain() {}, closed: () => open-- })
  })
  const updating: Client[] = []
  const state = (change: { state: string }): void => {
    if (change.state !== 'suspended') return
    for (const each of updating.splice(0)) void each.updateServerList('s:5000,t:5000')
  }
  updating.push(await world.client({ instrumentation: { state } }))
  world.lastConnection.cut()
  // No longer than an attempt may take, and longer than the delay after a connection loss.
  await world.advance(3000)
  expect(open).toBe(1)
  await silent.close()
})
