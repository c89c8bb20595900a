import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import {
  AuthFailedError,
  ClosedError,
  ConnectionLossError,
  OperationTimeoutError,
  SessionExpiredError,
  UsageError,
} from '../errors.ts'
import { FrameLog } from '../testing/frame-log.ts'
import { bytes, text, ManualWorld } from '../testing/manual-world.ts'
import type { Client } from '../client-api.ts'

let world: ManualWorld

beforeEach(async () => {
  world = await ManualWorld.start()
})
afterEach(() => world.end())

const run = <T>(promise: Promise<T>): Promise<T> => world.outcome(promise)
/** Blocks all bytes in both directions. */
function cutOff(): void {
  world.faults.open = () => {
    throw new Error('unreachable')
  }
  world.faults.toServer = () => undefined
  world.faults.toClient = () => undefined
}
function restore(): void {
  delete world.faults.open
  delete world.faults.toServer
  delete world.faults.toClient
}
function logFrames(): FrameLog {
  const log = new FrameLog(world.connections)
  world.faults.toServer = (chunk, connection) => {
    log.take(connection, chunk)
    return chunk
  }
  return log
}

describe('connecting', () => {
  it('opens a session with the timeout that the server grants', async () => {
    const client = await world.client({ sessionTimeout: 500_000 })
    expect(client.session).toMatchObject({ timeout: 100_000, generation: 1 })
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
    restore()
    await run((await world.within(10_000, connecting)).close())
  })

  it('rejects invalid options by name', async () => {
    const wrong: [object, string][] = [
      [{ servers: 5 }, 'Expected option servers to be a connect string or a list of addresses, got 5'],
      [{ sessionTimeout: 0.5 }, 'Expected option sessionTimeout to be whole milliseconds from 1, got 0.5'],
      [{ sessionTimeOut: 5 }, 'Expected options among'],
      [{ session: { id: 1, password: 'x' } }, 'Expected option session to be an id (bigint)'],
      [{ auth: [{ scheme: 'digest', auth: 'secret' }] }, 'Expected option auth to be a list'],
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

describe('heartbeats', () => {
  it.each([
    [30_000, 10_000, 20_000, 40_000],
    [6000, 2000, 4000, 8000],
    [90_000, 10_000, 60_000, 120_000],
  ])(
    'of a session of %d ms: ping after %d, disconnect after %d, expiry after %d',
    async (timeout, ping, drop, expiry) => {
      const client = await world.client({ sessionTimeout: timeout })
      const states = world.states(client)
      const log = logFrames()
      await world.advance(ping - 50)
      expect(log.splice()).toEqual([])
      await world.advance(100)
      expect(log.splice()).toEqual(['ping'])
      cutOff()
      await world.advance(drop - 100)
      expect(client.state).toBe('connected')
      await world.advance(150)
      expect(client.state).toBe('suspended')
      await world.advance(expiry - drop - 200)
      expect(client.state).toBe('suspended')
      await world.advance(200)
      expect(states).toEqual(['connected', 'suspended', 'expired', 'connecting'])
      restore()
      await world.advance(11_000)
      expect(states.at(-1)).toBe('connected')
      expect(client.session.generation).toBe(2)
    },
  )

  it('continue while events arrive and requests are pending', async () => {
    const client = await world.client()
    await run(client.create('/a'))
    const other = await world.client()
    const watcher = await run(client.watch('/a'))
    const events = world.collect(watcher)
    const log = new FrameLog(world.connections)
    const connection = world.connections[0]
    world.faults.toServer = (chunk, own) => {
      if (own === connection) log.take(own, chunk)
      return chunk
    }
    for (let i = 0; i < 10; i++) {
      await run(other.setData('/a', bytes(String(i))))
      await world.advance(1000)
    }
    expect(events).toHaveLength(10)
    expect(log.splice()).toEqual(['ping', 'ping'])
  })

  it('detect a half-open connection', async () => {
    const client = await world.client()
    const states = world.states(client)
    world.faults.toClient = (chunk, connection) => (connection === world.connections[0] ? undefined : chunk)
    await world.advance(8100)
    expect(states).toEqual(['connected', 'suspended'])
    await world.advance(1500)
    expect(states).toEqual(['connected', 'suspended', 'connected'])
    expect(client.session.generation).toBe(1)
  })

  it('run first after a stall, and bytes that arrived meanwhile count', async () => {
    const stalls: number[] = []
    const client = await world.client({ instrumentation: { stall: (ms) => stalls.push(ms) } })
    const log = logFrames()
    // The event loop is blocked for longer than the idle limit, with the replies of the server in the socket buffer.
    world.clock.advance(9000)
    await world.settle()
    expect(log.splice()[0]).toBe('ping')
    expect(stalls).toHaveLength(0)
    expect(client.state).toBe('connected')
  })
})

describe('a session', () => {
  it('survives a connection loss, with its ephemeral znodes and its watches', async () => {
    const client = await world.client()
    const states = world.states(client)
    await run(client.create('/e', undefined, { mode: 'ephemeral' }))
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
    await run(client.create('/e', undefined, { mode: 'ephemeral' }))
    cutOff()
    await world.advance(8100)
    const waiting = client.create('/late')
    waiting.catch(() => {})
    await world.advance(8000)
    await expect(run(waiting)).rejects.toThrow(SessionExpiredError)
    restore()
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
    restore()
    await world.advance(5000)
    expect(states).toEqual(['connected', 'suspended', 'expired'])
    const reason = await client.closed
    expect(reason).toBeInstanceOf(SessionExpiredError)
    expect((reason as SessionExpiredError).sessionId).toBe(session.id)
    await expect(client.getData('/')).rejects.toThrow(SessionExpiredError)
  })

  it('passes to another client by detach', async () => {
    const first = await world.client()
    await run(first.create('/e', undefined, { mode: 'ephemeral' }))
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
    await run(client.create('/e', undefined, { mode: 'ephemeral' }))
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
    await run(client.create('/e', undefined, { mode: 'ephemeral' }))
    const other = await world.client()
    await run(client.close())
    expect(await run(other.exists('/e'))).toBeUndefined()
    expect(
      world.clock.pendingTimers().filter(({ name }) => name !== 'heartbeat' && !name.startsWith('session')),
    ).toBeDefined()
  })

  it('settles the earlier calls first', async () => {
    const client = await world.client()
    const created = client.create('/a', bytes('1'))
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
    cutOff()
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
    cutOff()
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
    cutOff()
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
    await run(client.create('/secret', bytes('1'), { acl }))
    await run(client.addAuth('digest', bytes('eve:x')))
    await run(client.watchOnce('/secret', 'data'))
    await run(client.watch('/', { mode: 'persistentRecursive' }))
    const log = logFrames()
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
    const log = logFrames()
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
    cutOff()
    world.lastConnection.cut()
    await world.settle()
    const proved = client.addAuth('digest', bytes('bob:x'))
    restore()
    await world.advance(2000)
    await run(proved)
    expect(await run(client.whoAmI())).toContainEqual({ scheme: 'digest', user: 'bob' })
  })
})

describe('requests without a connection', () => {
  let client: Client
  beforeEach(async () => {
    client = await world.client({ offlineQueue: 2 })
    cutOff()
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
    restore()
    await world.advance(2000)
    await run(Promise.all(held))
  })

  it('can be aborted', async () => {
    const abort = new AbortController()
    const held = client.create('/a', bytes(''), { signal: abort.signal })
    held.catch(() => {})
    abort.abort(new Error('changed my mind'))
    await expect(held).rejects.toMatchObject({
      name: 'AbortError',
      maybeApplied: false,
      cause: { message: 'changed my mind' },
    })
    restore()
    await world.advance(2000)
    expect(await run(client.exists('/a'))).toBeUndefined()
  })

  it('reject with an OperationTimeoutError at their timeout', async () => {
    const held = client.exists('/', { timeout: 300 })
    held.catch(() => {})
    await world.advance(350)
    await expect(held).rejects.toThrow(OperationTimeoutError)
  })

  it('reject at once with an offline queue of 0', async () => {
    const strict = world.connect({ offlineQueue: 0 })
    restore()
    const other = await world.within(2000, strict)
    cutOff()
    world.lastConnection.cut()
    await world.settle()
    await expect(other.exists('/')).rejects.toThrow(ConnectionLossError)
    await run(other.close())
  })
})

describe('a lost reply', () => {
  let client: Client
  beforeEach(async () => {
    client = await world.client()
    await run(client.create('/a', bytes('0')))
  })
  /** The server applies the request, and its reply is lost with the connection. */
  function loseReply(): void {
    let lost = false
    world.faults.toClient = (chunk, connection) => {
      if (lost) return chunk
      lost = true
      connection.cut()
      return undefined
    }
  }
  /** The connection breaks before the server reads the request. */
  function loseRequest(): void {
    let lost = false
    world.faults.toServer = (chunk, connection) => {
      if (lost) return chunk
      lost = true
      connection.cut()
      return undefined
    }
  }

  it('to a read is followed by a retry', async () => {
    loseReply()
    const read = client.getData('/a')
    await world.advance(2000)
    expect(text((await run(read)).data)).toBe('0')
  })

  it('to a read rejects the call with retry false', async () => {
    loseReply()
    const read = client.getData('/a', { retry: false })
    read.catch(() => {})
    await world.advance(2000)
    await expect(read).rejects.toMatchObject({ name: 'ConnectionLossError', maybeApplied: false })
  })

  it('to a write that is not idempotent rejects with maybeApplied', async () => {
    loseReply()
    const written = client.setData('/a', bytes('1'))
    written.catch(() => {})
    await world.advance(2000)
    await expect(written).rejects.toMatchObject({
      code: 'CONNECTION_LOSS',
      maybeApplied: true,
      path: '/a',
      operation: 'setData',
    })
    expect(text((await run(client.getData('/a'))).data)).toBe('1')
  })

  it('to a persistent create rejects, and with idempotent is resolved by a read', async () => {
    loseReply()
    const first = client.create('/b', bytes('x'))
    first.catch(() => {})
    await world.advance(2000)
    await expect(first).rejects.toMatchObject({ code: 'CONNECTION_LOSS', maybeApplied: true })
    loseReply()
    const second = client.create('/c', bytes('x'), { idempotent: true })
    await world.advance(2000)
    expect(await run(second)).toMatchObject({ path: '/c', stat: { version: 0 } })
  })

  it('to an idempotent create rejects when the existing znode differs', async () => {
    await run(client.create('/b', bytes('theirs')))
    loseRequest()
    const created = client.create('/b', bytes('ours'), { idempotent: true })
    created.catch(() => {})
    await world.advance(2000)
    await expect(run(created)).rejects.toMatchObject({ code: 'NODE_EXISTS' })
  })

  it('to an ephemeral create is resolved by the owner of the znode', async () => {
    loseReply()
    const created = client.create('/e', bytes('x'), { mode: 'ephemeral' })
    await world.advance(2000)
    expect((await run(created)).stat.ephemeralOwner).toBe(client.session.id)
  })

  it('to a delete resolves when the znode is gone', async () => {
    loseReply()
    const deleted = client.delete('/a')
    await world.advance(2000)
    await run(deleted)
    expect(await run(client.exists('/a'))).toBeUndefined()
  })

  it('to a versioned setData rejects when the data may be ours, and resolves with idempotent', async () => {
    loseReply()
    const told = client.setData('/a', bytes('1'), { version: 0 })
    told.catch(() => {})
    await world.advance(2000)
    await expect(run(told)).rejects.toMatchObject({
      code: 'CONNECTION_LOSS',
      maybeApplied: true,
      cause: { code: 'BAD_VERSION' },
    })
    loseReply()
    const enough = client.setData('/a', bytes('2'), { version: 1, idempotent: true })
    await world.advance(2000)
    expect((await run(enough)).version).toBe(2)
  })

  it('to a versioned setData rejects with BAD_VERSION when another client has written', async () => {
    const other = await world.client()
    loseRequest()
    const written = client.setData('/a', bytes('1'), { version: 0 })
    written.catch(() => {})
    await run(other.setData('/a', bytes('theirs')))
    await world.advance(2000)
    await expect(run(written)).rejects.toMatchObject({ code: 'BAD_VERSION', maybeApplied: false })
  })

  it('to a setACL rejects with the error that the stat proves', async () => {
    const acl = [{ perms: 31, scheme: 'world', id: 'anyone' }]
    loseReply()
    const changed = client.setACL('/a', acl, { version: 0 })
    changed.catch(() => {})
    await world.advance(2000)
    await expect(run(changed)).rejects.toMatchObject({ maybeApplied: true, cause: { code: 'BAD_VERSION' } })
  })

  it('to a multi that consumes a version rejects as unknown when the retry fails', async () => {
    loseReply()
    const done = client.multi([
      { op: 'create', path: '/m' },
      { op: 'setData', path: '/a', data: bytes('1'), version: 0 },
    ])
    done.catch(() => {})
    await world.advance(2000)
    await expect(run(done)).rejects.toMatchObject({
      code: 'CONNECTION_LOSS',
      maybeApplied: true,
      cause: { code: 'NODE_EXISTS' },
    })
    expect((await run(client.getData('/a'))).stat.version).toBe(1)
  })

  it('to a multi that was not applied is followed by a retry', async () => {
    loseRequest()
    const done = client.multi([
      { op: 'create', path: '/m' },
      { op: 'check', path: '/a', version: 0 },
      { op: 'setData', path: '/a', data: bytes('1'), version: 0 },
    ])
    await world.advance(2000)
    expect((await run(done))[0].path).toBe('/m')
  })

  it('to a sequential create is resolved by its protection prefix, with one znode', async () => {
    loseReply()
    const created = client.create('/q-', bytes('x'), { mode: 'persistentSequential' })
    await world.advance(3000)
    const { path } = await run(created)
    const { children } = await run(client.getChildren('/'))
    expect(children.filter((name) => name.includes('q-'))).toEqual([path.slice(1)])
  })

  it('to a sequential create that never arrived is followed by a retry', async () => {
    loseRequest()
    const created = client.create('/q-', bytes('x'), { mode: 'ephemeralSequential' })
    await world.advance(3000)
    const { path } = await run(created)
    expect((await run(client.exists(path)))!.ephemeralOwner).toBe(client.session.id)
  })

  it('to a sequential create whose caller gave up leaves no znode', async () => {
    const abort = new AbortController()
    loseReply()
    const created = client.create('/q-', bytes('x'), { mode: 'ephemeralSequential', signal: abort.signal })
    created.catch(() => {})
    await world.settle()
    abort.abort()
    await expect(run(created)).rejects.toMatchObject({ name: 'AbortError' })
    await world.advance(5000)
    const { children } = await run(client.getChildren('/'))
    expect(children.filter((name) => name.includes('q-'))).toEqual([])
  })

  it('to an unprotected sequential create rejects without a retry', async () => {
    loseReply()
    const created = client.create('/q-', bytes('x'), { mode: 'persistentSequential', protected: false })
    created.catch(() => {})
    await world.advance(3000)
    await expect(created).rejects.toMatchObject({ code: 'CONNECTION_LOSS', maybeApplied: true })
  })

  it('rejects the writes behind it, and not the reads', async () => {
    loseRequest()
    const first = client.setData('/a', bytes('1'))
    const second = client.delete('/a')
    const read = client.getData('/a')
    for (const promise of [first, second]) promise.catch(() => {})
    await world.advance(2000)
    await expect(first).rejects.toThrow(ConnectionLossError)
    await expect(second).rejects.toThrow(ConnectionLossError)
    expect(text((await run(read)).data)).toBe('0')
  })

  it('to a guaranteed delete is followed by a retry, even after its caller gave up', async () => {
    const abort = new AbortController()
    cutOff()
    world.lastConnection.cut()
    await world.settle()
    const deleted = client.delete('/a', { guaranteed: true, signal: abort.signal })
    deleted.catch(() => {})
    abort.abort()
    await expect(run(deleted)).rejects.toMatchObject({ name: 'AbortError', maybeApplied: true })
    restore()
    await world.advance(3000)
    expect(await run(client.exists('/a'))).toBeUndefined()
  })

  it('counts towards maxAttempts and maxElapsed', async () => {
    let cuts = 0
    world.faults.toServer = (chunk, connection) => {
      if (chunk.length < 40) {
        cuts++
        connection.cut()
        return undefined
      }
      return chunk
    }
    const read = client.getData('/a', { retry: { maxAttempts: 3 } })
    read.catch(() => {})
    await world.advance(10_000)
    await expect(read).rejects.toThrow(ConnectionLossError)
    expect(cuts).toBeGreaterThanOrEqual(3)
    restore()
    await world.advance(5000)
  })
})

describe('the lease horizon', () => {
  it('is a timeout less a margin after a committed write, and stays there while disconnected', async () => {
    const client = await world.client({ sessionTimeout: 12_000 })
    expect(client.leaseHorizon).toBe(Number.NEGATIVE_INFINITY)
    const before = world.clock.monotonic()
    await run(client.create('/a'))
    expect(client.leaseHorizon).toBe(before + 12_000 - 2000)
    await world.advance(500)
    await run(client.getData('/a'))
    expect(client.leaseHorizon).toBe(before + 10_000)
    cutOff()
    await world.advance(9000)
    expect(client.state).toBe('suspended')
    expect(client.leaseHorizon).toBe(before + 10_000)
    await world.advance(8000)
    expect(client.leaseHorizon).toBe(Number.NEGATIVE_INFINITY)
    restore()
  })

  it('counts reads and pings of a long session, less the time that a follower may be stale', async () => {
    const client = await world.client({ sessionTimeout: 30_000 })
    const before = world.clock.monotonic()
    await run(client.getData('/'))
    expect(client.leaseHorizon).toBe(before + 18_000)
    await world.advance(10_100)
    expect(client.leaseHorizon).toBe(before + 28_000)
  })

  it('does not count a rejected write as a commit', async () => {
    const client = await world.client({ sessionTimeout: 12_000 })
    await expect(run(client.delete('/none'))).rejects.toThrow()
    expect(client.leaseHorizon).toBe(Number.NEGATIVE_INFINITY)
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
    const heard: (string | undefined)[] = []
    const client = await world.client({
      instrumentation: {
        request: ({ path }) => void heard.push(path),
        event: ({ path }) => void heard.push(path),
      },
      redactPath: (path) => path.replace(/\d+/, '#'),
    })
    await run(client.watchOnce('/customer7', 'exists'))
    await run(client.create('/customer7'))
    expect(heard).toEqual(['/customer#', '/customer#', '/customer#'])
  })

  it('receive requests, states, events and attempts, never data, and cannot break the client', async () => {
    const heard: string[] = []
    const instrumentation = {
      request({ operation, path }: { operation: string; path?: string }) {
        heard.push(`${operation} ${path ?? ''}`)
        return ({ error }: { error?: Error }) => {
          heard.push(`${operation} ended${error ? ` with ${(error as { code?: string }).code}` : ''}`)
          throw new Error('broken observer')
        }
      },
      state: ({ state }: { state: string }) => {
        heard.push(state)
        throw new Error('broken observer')
      },
      event: ({ type, watchers }: { type: string; watchers: number }) =>
        void heard.push(`${type} to ${watchers}`),
    }
    const client = await world.client({ instrumentation })
    await run(client.watchOnce('/a', 'exists'))
    await run(client.create('/a', bytes('secret')))
    await expect(run(client.delete('/none'))).rejects.toThrow()
    expect(heard).toEqual([
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
