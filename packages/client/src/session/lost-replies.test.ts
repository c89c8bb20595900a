import { beforeEach, describe, expect, it } from 'vitest'
import type { Client } from '../client-api.ts'
import { ConnectionLossError } from '../errors.ts'
import { run, setupEachTest, world } from '../testing/setup.ts'
import { bytes, text } from '../testing/manual-world.ts'

setupEachTest()

describe('a lost reply', () => {
  let client: Client
  beforeEach(async () => {
    client = await world.client()
    await run(client.create('/a', { data: bytes('0') }))
  })
  const loseReply = (): void => world.loseReply()
  const loseRequest = (): void => world.loseRequest()

  /** Makes a call, lets the client reconnect and returns the result of the call. */
  async function afterLoss<T>(lose: () => void, call: () => Promise<T>, ms = 2000): Promise<T> {
    lose()
    const done = call()
    done.catch(() => {})
    await world.advance(ms)
    return run(done)
  }

  it('to a read is followed by a retry', async () => {
    const read = afterLoss(loseReply, () => client.getData('/a'))
    expect(text((await read).data)).toBe('0')
  })

  it('to a read rejects the call with retry false', async () => {
    const read = afterLoss(loseReply, () => client.getData('/a', { retry: false }))
    await expect(read).rejects.toMatchObject({ name: 'ConnectionLossError', maybeApplied: false })
  })

  it('to a write that is not idempotent rejects with maybeApplied', async () => {
    const written = afterLoss(loseReply, () => client.setData('/a', bytes('1')))
    await expect(written).rejects.toMatchObject({
      code: 'CONNECTION_LOSS',
      maybeApplied: true,
      path: '/a',
      operation: 'setData',
    })
    expect(text((await run(client.getData('/a'))).data)).toBe('1')
  })

  it('to a persistent create rejects, and with idempotent is resolved by a read', async () => {
    const first = afterLoss(loseReply, () => client.create('/b', { data: bytes('x') }))
    await expect(first).rejects.toMatchObject({ code: 'CONNECTION_LOSS', maybeApplied: true })
    const second = afterLoss(loseReply, () => client.create('/c', { data: bytes('x'), idempotent: true }))
    expect(await second).toMatchObject({ path: '/c', stat: { version: 0 } })
  })

  it('to an idempotent create rejects when the existing znode differs', async () => {
    await run(client.create('/b', { data: bytes('theirs') }))
    const created = afterLoss(loseRequest, () =>
      client.create('/b', { data: bytes('ours'), idempotent: true }),
    )
    await expect(created).rejects.toMatchObject({ code: 'NODE_EXISTS' })
  })

  it('to an ephemeral create is resolved by the owner of the znode', async () => {
    const created = afterLoss(loseReply, () => client.create('/e', { data: bytes('x'), mode: 'ephemeral' }))
    expect((await created).stat.ephemeralOwner).toBe(client.session.id)
  })

  it('to a delete resolves when the znode is gone', async () => {
    const deleted = afterLoss(loseReply, () => client.delete('/a'))
    await deleted
    expect(await run(client.exists('/a'))).toBeUndefined()
  })

  it('to a versioned setData rejects when the data may be ours, and resolves with idempotent', async () => {
    const received = afterLoss(loseReply, () => client.setData('/a', bytes('1'), { version: 0 }))
    await expect(received).rejects.toMatchObject({
      code: 'CONNECTION_LOSS',
      maybeApplied: true,
      cause: { code: 'BAD_VERSION' },
    })
    const enough = afterLoss(loseReply, () =>
      client.setData('/a', bytes('2'), { version: 1, idempotent: true }),
    )
    expect((await enough).version).toBe(2)
  })

  it('to a versioned setData rejects with BAD_VERSION when another client has written', async () => {
    const other = await world.client()
    loseRequest()
    const written = client.setData('/a', bytes('1'), { version: 0 })
    written.catch(() => {})
    await run(other.setData('/a', bytes('theirs')))
    await world.advance(2000)
    await expect(written).rejects.toMatchObject({ code: 'BAD_VERSION', maybeApplied: false })
  })

  it('to a setACL rejects with maybeApplied only when the stat may be its own', async () => {
    const acl = [{ perms: 31, scheme: 'world', id: 'anyone' }]
    const changed = afterLoss(loseReply, () => client.setACL('/a', acl, { version: 0 }))
    await expect(changed).rejects.toMatchObject({ maybeApplied: true, cause: { code: 'BAD_VERSION' } })
  })

  it('to a multi that consumes a version rejects as unknown when the retry fails', async () => {
    const done = afterLoss(loseReply, () =>
      client.multi([
        { op: 'create', path: '/m' },
        { op: 'setData', path: '/a', data: bytes('1'), version: 0 },
      ]),
    )
    await expect(done).rejects.toMatchObject({
      code: 'CONNECTION_LOSS',
      maybeApplied: true,
      cause: { code: 'NODE_EXISTS' },
    })
    expect((await run(client.getData('/a'))).stat.version).toBe(1)
  })

  it('to a multi that was not applied is followed by a retry', async () => {
    const done = afterLoss(loseRequest, () =>
      client.multi([
        { op: 'create', path: '/m' },
        { op: 'check', path: '/a', version: 0 },
        { op: 'setData', path: '/a', data: bytes('1'), version: 0 },
      ]),
    )
    expect((await done)[0].path).toBe('/m')
  })

  it('to a sequential create is resolved by its protection prefix, with one znode', async () => {
    const created = afterLoss(
      loseReply,
      () => client.create('/q-', { data: bytes('x'), mode: 'persistentSequential' }),
      3000,
    )
    const { path } = await created
    const { children } = await run(client.getChildren('/'))
    expect(children.filter((name) => name.includes('q-'))).toEqual([path.slice(1)])
  })

  it('to a sequential create that never arrived is followed by a retry', async () => {
    const created = afterLoss(
      loseRequest,
      () => client.create('/q-', { data: bytes('x'), mode: 'ephemeralSequential' }),
      3000,
    )
    const { path } = await created
    expect((await run(client.exists(path)))!.ephemeralOwner).toBe(client.session.id)
  })

  it('to a sequential create whose caller gave up leaves no znode', async () => {
    const abort = new AbortController()
    loseReply()
    const created = client.create('/q-', {
      data: bytes('x'),
      mode: 'ephemeralSequential',
      signal: abort.signal,
    })
    created.catch(() => {})
    await world.settle()
    abort.abort()
    await expect(created).rejects.toMatchObject({ name: 'AbortError' })
    await world.advance(5000)
    const { children } = await run(client.getChildren('/'))
    expect(children.filter((name) => name.includes('q-'))).toEqual([])
  })

  it('to an unprotected sequential create rejects without a retry', async () => {
    const created = afterLoss(
      loseReply,
      () => client.create('/q-', { data: bytes('x'), mode: 'persistentSequential', protected: false }),
      3000,
    )
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
    expect(text((await read).data)).toBe('0')
  })

  it.each([false, true])(
    'rejects the writes behind a retry that no connection takes in time (unordered: %s)',
    async (isUnordered) => {
      loseRequest()
      const restore = world.refuseConnections()
      const retry = { maxElapsedMs: 500 }
      const first = client.setData('/a', bytes('1'), { idempotent: true, retry })
      const caller = isUnordered ? client.unordered() : client
      const second = caller.setData('/a', bytes('2'), { idempotent: true })
      const read = client.getData('/a')
      for (const promise of [first, second]) promise.catch(() => {})
      await world.advance(1000)
      restore()
      await world.advance(3000)
      await expect(first).rejects.toThrow(ConnectionLossError)
      if (isUnordered) await second
      else await expect(second).rejects.toMatchObject({ code: 'CONNECTION_LOSS' })
      expect(text((await read).data)).toBe(isUnordered ? '2' : '0')
    },
  )

  it('rejects no write of an unordered client behind it', async () => {
    for (const lose of [loseReply, loseRequest]) {
      lose()
      const first = client.setData('/a', bytes('1'))
      first.catch(() => {})
      const done = Promise.all([
        client.unordered().create('/b', { data: bytes('x'), idempotent: true }),
        client.unordered().setData('/a', bytes('2'), { idempotent: true }),
        client.unordered().chroot('/a').create('/c', { idempotent: true }),
        client.unordered().create('/q-', { mode: 'persistentSequential' }),
      ])
      done.catch(() => {})
      await world.advance(3000)
      await expect(first).rejects.toThrow(ConnectionLossError)
      await done
      await run(Promise.all(['/b', '/a/c'].map((path) => client.delete(path))))
    }
  })

  it('to a write of an unordered client rejects no write behind it', async () => {
    loseReply()
    const first = client.unordered().setData('/a', bytes('1'))
    first.catch(() => {})
    const second = client.setData('/a', bytes('2'), { idempotent: true })
    second.catch(() => {})
    await world.advance(2000)
    await expect(first).rejects.toMatchObject({ code: 'CONNECTION_LOSS', maybeApplied: true })
    await second
  })

  it('does not end a createMissing behind it', async () => {
    for (const lose of [loseReply, loseRequest]) {
      lose()
      const first = client.setData('/a', bytes('1'))
      first.catch(() => {})
      const made = client.createMissing(['/a/b/c'])
      made.catch(() => {})
      await world.advance(3000)
      await expect(first).rejects.toThrow(ConnectionLossError)
      await made
      expect(await run(client.exists('/a/b/c'))).toBeDefined()
      await run(client.delete('/a/b', { recursive: true }))
    }
  })

  it('to a guaranteed delete is followed by a retry, even after its caller gave up', async () => {
    const abort = new AbortController()
    world.isolate()
    world.lastConnection.cut()
    await world.settle()
    const deleted = client.delete('/a', { guaranteed: true, signal: abort.signal })
    deleted.catch(() => {})
    abort.abort()
    await expect(deleted).rejects.toMatchObject({ name: 'AbortError', maybeApplied: true })
    world.endIsolation()
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
    world.endIsolation()
    await world.advance(5000)
  })
})
