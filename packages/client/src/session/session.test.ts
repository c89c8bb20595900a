import { describe, expect, it } from 'vitest'
import type { RequestInfo, RequestOutcome } from '../instrumentation.ts'
import type { StateChange } from '../types.ts'
import {
  AuthFailedError,
  ClosedError,
  OperationTimeoutError,
  SessionExpiredError,
  UsageError,
} from '../errors.ts'
import { run, setupEachTest, world } from '../testing/setup.ts'
import { bytes, text } from '../testing/manual-world.ts'

setupEachTest()

describe('connecting', () => {
  it('opens a session with the timeout that the server grants', async () => {
    const client = await world.client({ sessionTimeoutMs: 500_000 })
    expect(client.session).toMatchObject({ timeoutMs: 100_000, generation: 1 })
    expect(client.session.id).not.toBe(0n)
    expect(client.session.password).toHaveLength(16)
    expect(client.state).toBe('connected')
  })

  it('retries until a server is reachable', async () => {
    await world.stop()
    const connecting = world.connect()
    await world.advance(5000)
    await world.restart()
    const client = await world.within(15_000, connecting)
    expect(client.state).toBe('connected')
    await run(client.close())
  })

  it('stops when its signal aborts, and the error gives the reason of the last attempt', async () => {
    await world.stop()
    const abort = new AbortController()
    const connecting = world.connect({ signal: abort.signal })
    connecting.catch(() => {})
    await world.advance(1000)
    abort.abort(new DOMException('too long', 'TimeoutError'))
    await expect(run(connecting)).rejects.toThrow(OperationTimeoutError)
    await expect(run(connecting)).rejects.toThrow(
      /the last attempt, to tcp:\/\/a:2181, failed: .*ECONNREFUSED/,
    )
    expect(world.clock.pendingTimers().map(({ name }) => name)).toEqual([])
    await world.restart()
  })

  it('does not begin with an aborted signal', async () => {
    await expect(run(world.connect({ signal: AbortSignal.abort() }))).rejects.toMatchObject({
      name: 'AbortError',
      code: 'ABORTED',
    })
    expect(world.connections).toHaveLength(0)
  })

  it('limits the time of an attempt, from name resolution to the connect response', async () => {
    world.faults.toClient = () => undefined
    const connecting = world.connect({ servers: 'a:2181,b:2181' })
    await world.advance(6000 + 200)
    expect(world.connections.length).toBe(2)
    world.endIsolation()
    await run((await world.within(10_000, connecting)).close())
  })

  it('rejects invalid options by name', async () => {
    const wrong: [object, string][] = [
      [{ servers: 5 }, 'Expected servers as a connect string or a list of addresses, got number'],
      [
        { sessionTimeoutMs: 0.5 },
        'Expected option sessionTimeoutMs to be whole milliseconds from 1, got 0.5',
      ],
      [{ sessionTimeOut: 5 }, 'Expected options among'],
      [{ session: { id: 1, password: 'x' } }, 'Expected option session to be an id (bigint)'],
      [{ auth: [{ scheme: 5, auth: 'secret' }] }, 'Expected option auth to be a list'],
      [{ sessionExpiry: 'never' }, "Expected option sessionExpiry to be 'renew' or 'close'"],
    ]
    for (const [options, message] of wrong) {
      const refused = world.connect(options)
      await expect(refused).rejects.toThrow(UsageError)
      await expect(refused).rejects.toThrow(message)
      await expect(refused).rejects.not.toThrow('secret')
    }
  })

  it('continues with the next server when one closes the connection', async () => {
    let first = true
    world.faults.toServer = (chunk, connection) => {
      if (!first) return chunk
      first = false
      connection.cut()
      return undefined
    }
    const client = await world.within(1000, world.connect({ servers: 'a:2181,b:2181' }))
    expect(new Set(world.connections.map(({ server }) => server.host)).size).toBe(2)
    await run(client.close())
  })
})

describe('a session', () => {
  it('survives a connection loss, with its ephemeral znodes and its watches', async () => {
    const client = await world.client()
    const states = world.states(client)
    await run(client.create('/e', { mode: 'ephemeral' }))
    const { id } = client.session
    world.lastConnection.cut()
    await world.settle()
    expect(client.state).toBe('suspended')
    await world.advance(1500)
    expect(client.session).toMatchObject({ id, generation: 1 })
    expect(await run(client.exists('/e'))).toBeDefined()
    expect(states).toEqual(['connected', 'suspended', 'connected'])
  })

  it('that expired is followed by a new one, which keeps nothing of the old one', async () => {
    const client = await world.client()
    const { id } = client.session
    await run(client.create('/e', { mode: 'ephemeral' }))
    world.isolate()
    await world.advance(8100)
    const waiting = client.create('/late')
    waiting.catch(() => {})
    await world.advance(8000)
    await expect(run(waiting)).rejects.toThrow(SessionExpiredError)
    world.endIsolation()
    await world.advance(11_000)
    expect(client.state).toBe('connected')
    expect(client.session.id).not.toBe(id)
    expect(client.session.generation).toBe(2)
    expect(await run(client.exists('/late'))).toBeUndefined()
    expect(await run(client.exists('/e'))).toBeUndefined()
  })

  it("that the server has expired closes a client with sessionExpiry 'close'", async () => {
    const client = await world.client({ sessionExpiry: 'close' })
    const states = world.states(client)
    const { session } = client
    world.faults.open = ({ host }) => {
      if (host === 'a') throw new Error('unreachable')
    }
    world.lastConnection.cut()
    await world.settle()
    const other = await world.client({ servers: 'b:2181', session })
    await run(other.close())
    world.endIsolation()
    await world.advance(5000)
    expect(states).toEqual(['connected', 'suspended', 'expired'])
    const reason = await client.closed
    expect(reason).toBeInstanceOf(SessionExpiredError)
    expect((reason as SessionExpiredError).sessionId).toBe(session.id)
    await expect(client.getData('/')).rejects.toThrow(SessionExpiredError)
  })

  it('passes to another client by detach', async () => {
    const first = await world.client()
    await run(first.create('/e', { mode: 'ephemeral' }))
    const session = await run(first.detach())
    expect(first.state).toBe('closed')
    const second = await world.client({ session })
    expect(second.session.id).toBe(session.id)
    expect((await run(second.exists('/e')))!.ephemeralOwner).toBe(session.id)
  })

  it('resumed with a wrong password counts as expired', async () => {
    const first = await world.client()
    const session = { id: (await run(first.detach())).id, password: new Uint8Array(16).fill(7) }
    await expect(world.within(1000, world.connect({ session, sessionExpiry: 'close' }))).rejects.toThrow(
      SessionExpiredError,
    )
    const renewed = await world.within(1000, world.connect({ session }))
    expect(renewed.session.id).not.toBe(session.id)
    await run(renewed.close())
  })

  it('resumed by another client leaves the first client', async () => {
    const first = await world.client({ sessionExpiry: 'close' })
    const second = await world.client({ session: first.session })
    expect(second.session.id).toBe(first.session.id)
    await world.advance(100)
    expect(second.state).toBe('connected')
  })

  it('survives a restart of the server', async () => {
    const client = await world.client()
    await run(client.create('/e', { mode: 'ephemeral' }))
    const { id } = client.session
    await world.stop()
    await world.restart()
    await world.advance(3000)
    expect(client.state).toBe('connected')
    expect(client.session.id).toBe(id)
    expect(await run(client.exists('/e'))).toBeDefined()
  })
})

describe('closing', () => {
  it('ends the session at once', async () => {
    const client = await world.client()
    await run(client.create('/e', { mode: 'ephemeral' }))
    const other = await world.client()
    await run(client.close())
    expect(await run(other.exists('/e'))).toBeUndefined()
    expect(
      world.clock.pendingTimers().filter(({ name }) => name !== 'heartbeat' && !name.startsWith('session')),
    ).toBeDefined()
  })

  it('settles the earlier calls first', async () => {
    const client = await world.client()
    const created = client.create('/a', { data: bytes('1') })
    const read = client.getData('/a')
    const closed = client.close()
    const late = client.getData('/a')
    await expect(run(late)).rejects.toThrow(ClosedError)
    expect((await run(created)).path).toBe('/a')
    expect(text((await run(read)).data)).toBe('1')
    await run(closed)
  })

  it('resolves at once without a connection, and rejects queued calls', async () => {
    const client = await world.client()
    world.isolate()
    world.lastConnection.cut()
    await world.settle()
    const waiting = client.getData('/')
    waiting.catch(() => {})
    await run(client.close())
    await expect(waiting).rejects.toThrow(ClosedError)
    expect(client.state).toBe('closed')
  })

  it('waits at most two seconds for a server that does not reply', async () => {
    const client = await world.client()
    world.isolate()
    const closed = client.close()
    let settled = false
    void closed.then(() => (settled = true))
    await world.advance(1900)
    expect(settled).toBe(false)
    await world.advance(200)
    expect(settled).toBe(true)
  })

  it('leaves no timer', async () => {
    const timers = (): string[] =>
      world.clock
        .pendingTimers()
        .map(({ name }) => name)
        .filter((name) =>
          ['heartbeat', 'reconnect', 'connection attempt', 'local expiry', 'close'].includes(name),
        )
    const client = await world.client()
    expect(timers()).toEqual(['heartbeat'])
    await run(client.close())
    expect(timers()).toEqual([])
    const second = await world.client()
    world.isolate()
    world.lastConnection.cut()
    await world.settle()
    expect(timers().toSorted()).toEqual(['local expiry', 'reconnect'])
    await run(second.close())
    expect(timers()).toEqual([])
  })

  it('happens at the end of an await using scope', async () => {
    const client = await world.client()
    await run(Promise.resolve(client[Symbol.asyncDispose]()))
    expect(client.state).toBe('closed')
  })

  it('ends the iterators of states()', async () => {
    const client = await world.client()
    const states = world.collect(client.states())
    await run(client.close())
    const late = world.collect(client.states())
    await world.settle()
    expect(states.map(({ state }) => state)).toEqual(['connected', 'closed'])
    expect(late.map(({ state }) => state)).toEqual(['closed'])
  })
})

describe('on a new connection a client', () => {
  it('sends the handshake, the identities, the watches and then the queued requests', async () => {
    const auth = [{ scheme: 'digest', auth: bytes('bob:secret') }]
    const client = await world.client({ auth })
    const acl = [{ perms: 31, scheme: 'auth', id: '' }]
    await run(client.create('/secret', { data: bytes('1'), acl }))
    await run(client.addAuth('digest', bytes('eve:x')))
    await run(client.watchOnce('/secret', 'data'))
    await run(client.watch('/', { mode: 'persistentRecursive' }))
    const log = world.logFrames()
    world.lastConnection.cut()
    await world.settle()
    const read = client.getData('/secret')
    const written = client.setData('/secret', bytes('2'))
    await world.advance(1500)
    expect(text((await run(read)).data)).toBe('1')
    await run(written)
    expect(log.splice()).toEqual([
      'connect again',
      'auth',
      'auth',
      'setWatches',
      'setWatches2',
      'getData /secret',
      'setData /secret',
    ])
  })

  it('sends only SetWatches when it has no persistent watches', async () => {
    const client = await world.client()
    await run(client.watchOnce('/', 'children'))
    const log = world.logFrames()
    world.lastConnection.cut()
    await world.advance(1500)
    expect(log.splice()).toEqual(['connect again', 'setWatches'])
  })

  it('does not send a rejected identity again: it closes', async () => {
    const client = await world.client()
    const states = world.states(client)
    const waiting = client.addAuth('nonsense', bytes('x'))
    await expect(run(waiting)).rejects.toMatchObject({ code: 'AUTH_FAILED' })
    await world.settle()
    expect(states).toEqual(['connected', 'authFailed'])
    await expect(client.getData('/')).rejects.toThrow(AuthFailedError)
    expect(await client.closed).toBeInstanceOf(AuthFailedError)
  })

  it('sends an identity that was added without a connection', async () => {
    const client = await world.client()
    world.isolate()
    world.lastConnection.cut()
    await world.settle()
    const proved = client.addAuth('digest', bytes('bob:x'))
    world.endIsolation()
    await world.advance(2000)
    await run(proved)
    expect(await run(client.whoAmI())).toContainEqual({ scheme: 'digest', id: 'bob' })
  })
})

describe('a server list update', () => {
  it('moves the client with its session once the requests in flight are answered', async () => {
    const client = await world.client({ servers: 'a:2181' })
    const { id } = client.session
    const created = client.create('/a')
    expect(await run(client.updateServerList('b:2181,c:2181'))).toBe(true)
    const later = client.getData('/a')
    await run(created)
    await world.advance(2000)
    await run(later)
    expect(['b', 'c']).toContain(world.lastConnection.server.host)
    expect(client.session).toMatchObject({ id, generation: 1 })
  })

  it('leaves a client of a remaining server connected', async () => {
    const client = await world.client({ servers: 'a:2181,b:2181,c:2181' })
    const { host } = world.lastConnection.server
    expect(await run(client.updateServerList(`${host}:2181`))).toBe(false)
    expect(world.connections).toHaveLength(1)
  })

  it('is used at once by a client without a connection', async () => {
    const client = await world.client({ servers: 'a:2181' })
    world.faults.open = ({ host }) => {
      if (host === 'a') throw new Error('gone')
    }
    world.lastConnection.cut()
    await world.advance(3000)
    expect(client.state).toBe('suspended')
    await run(client.updateServerList(['z:2181']))
    await world.advance(100)
    expect(client.state).toBe('connected')
  })
})

describe('observers', () => {
  it('receive redacted paths', async () => {
    const received: (string | undefined)[] = []
    const client = await world.client({
      instrumentation: {
        request: ({ path }) => void received.push(path),
        event: ({ path }) => void received.push(path),
      },
      redactPath: (path) => path.replace(/\d+/, '#'),
    })
    await run(client.watchOnce('/customer7', 'exists'))
    await run(client.create('/customer7'))
    expect(received).toEqual(['/customer#', '/customer#', '/customer#'])
  })

  it('receive requests, states, events and attempts, never data, and cannot break the client', async () => {
    const received: string[] = []
    const instrumentation = {
      request({ operation, path }: RequestInfo) {
        received.push(`${operation} ${path ?? ''}`)
        return ({ error }: RequestOutcome) => {
          received.push(`${operation} ended${error ? ` with ${(error as { code?: string }).code}` : ''}`)
          throw new Error('broken observer')
        }
      },
      state: ({ state }: StateChange) => {
        received.push(state)
        throw new Error('broken observer')
      },
      event: ({ type, watchers }: { type: string; watchers: number }) =>
        void received.push(`${type} to ${watchers}`),
    }
    const client = await world.client({ instrumentation })
    await run(client.watchOnce('/a', 'exists'))
    await run(client.create('/a', { data: bytes('secret') }))
    await expect(run(client.delete('/none'))).rejects.toThrow()
    expect(received).toEqual([
      'connected',
      'exists /a',
      'exists ended',
      'create /a',
      'nodeCreated to 1',
      'create ended',
      'delete /none',
      'delete ended with NO_NODE',
    ])
  })
})
