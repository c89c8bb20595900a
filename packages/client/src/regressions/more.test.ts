import { afterEach, beforeEach, expect, it } from 'vitest'
import { json } from '../codecs.ts'
import { bytes, World } from '../testdata/world.ts'

let world: World
beforeEach(async () => {
  world = await World.start()
})
afterEach(() => world.end())

it('one signal for many calls gives no warning of a leak (Node 20: more than 10 listeners)', async () => {
  const client = await world.client()
  const warnings: string[] = []
  const note = (warning: Error): void => void warnings.push(warning.name)
  process.on('warning', note)
  const { signal } = new AbortController()
  await world.outcome(Promise.all(Array.from({ length: 20 }, () => client.getData('/', { signal }))))
  await new Promise((resolve) => setTimeout(resolve, 20))
  process.off('warning', note)
  expect(warnings).toEqual([])
})

it('detach of a view leaves the client to its owner, as close does', async () => {
  const client = await world.client()
  await expect(client.chroot('/x').detach()).rejects.toMatchObject({ code: 'USAGE' })
  expect(client.state).toBe('connected')
})

it('a move that the client decides upon does not wait as after a failure', async () => {
  const waits: number[] = []
  for (let i = 0; i < 10; i++) {
    const client = await world.client({ servers: 'a:2181', sessionTimeout: 30_000 })
    await world.outcome(client.updateServerList('b:2181'))
    const start = world.clock.monotonic()
    while (client.state !== 'connected') await world.advance(50)
    waits.push(world.clock.monotonic() - start)
  }
  expect(Math.max(...waits)).toBeLessThanOrEqual(50)
})

it('SESSION_CLOSED_REQUIRE_SASL_AUTH ends the client as authFailed instead of renewing for ever', async () => {
  const client = await world.client({ sessionTimeout: 3000 })
  world.interference.toServer = (chunk, wire) => {
    const view = new DataView(chunk.buffer, chunk.byteOffset, chunk.byteLength)
    if (chunk.length > 44 || view.getInt32(4) <= 0) return chunk
    const reply = new Uint8Array(20)
    const r = new DataView(reply.buffer)
    r.setInt32(0, 16)
    r.setInt32(4, view.getInt32(4))
    r.setInt32(16, -124)
    world.clock.soon(() => {
      wire.deliver(reply)
      wire.cut()
    })
    return undefined
  }
  await expect(world.outcome(client.getData('/'))).rejects.toMatchObject({
    code: 'SESSION_CLOSED_REQUIRE_SASL_AUTH',
  })
  await world.settle()
  expect(client.state).toBe('authFailed')
})

it('json refuses what JSON cannot hold instead of storing nothing', () => {
  expect(() => json().encode(undefined)).toThrow()
})

it('a probe that throws is an unknown answer, not an exception of a timer', async () => {
  let ro = true
  world.interference.toClient = (chunk) => {
    if (ro && chunk.length === 41) {
      chunk = chunk.slice()
      chunk[40] = 1
      ro = false
    }
    return chunk
  }
  const { transport } = world
  const client = await world.client({
    readOnly: true,
    transport: {
      ...transport,
      probe: () => {
        throw new Error('no such thing')
      },
    },
  })
  expect(client.state).toBe('connectedReadOnly')
  await world.advance(10_000)
  expect(client.state).toBe('connected')
})

it('a session that only read-only servers have seen is asked for anew with an empty password', async () => {
  let ro = true
  const passwords: string[] = []
  world.interference.toClient = (chunk) => {
    if (ro && chunk.length === 41) {
      chunk = chunk.slice()
      chunk[40] = 1
      ro = false
    }
    return chunk
  }
  const client = await world.client({ readOnly: true })
  expect(client.state).toBe('connectedReadOnly')
  world.interference.toServer = (chunk) => {
    if (chunk.length === 49) passwords.push(Buffer.from(chunk.subarray(32, 48)).toString('hex'))
    return chunk
  }
  const waiting = client.create('/a', undefined, { waitForReadWrite: true })
  await world.advance(3000)
  expect(client.state).toBe('connected')
  await waiting
  expect(new Set(passwords)).toEqual(new Set(['0'.repeat(32)]))
})

it('requests that waited for a read-write server go before those that came later', async () => {
  const client = await world.client()
  let refused = false
  world.interference.toServer = (chunk, wire) => {
    const view = new DataView(chunk.buffer, chunk.byteOffset, chunk.byteLength)
    if (refused || view.getInt32(4) <= 0) return chunk
    refused = true
    const reply = new Uint8Array(20)
    const r = new DataView(reply.buffer)
    r.setInt32(0, 16)
    r.setInt32(4, view.getInt32(4))
    r.setInt32(16, -119)
    world.clock.soon(() => wire.deliver(reply))
    return undefined
  }
  const parent = client.create('/p', undefined, { waitForReadWrite: true })
  await world.settle()
  world.wire.cut()
  await world.settle()
  const child = client.create('/p/c', undefined, { waitForReadWrite: true })
  const results = await world.within(5000, Promise.allSettled([parent, child]))
  expect(results.map(({ status }) => status)).toEqual(['fulfilled', 'fulfilled'])
})

it('close ends the session while the client waits to move, also without an offline queue', async () => {
  const client = await world.client({ offlineQueue: 0 })
  const other = await world.client()
  await world.outcome(client.create('/e', undefined, { mode: 'ephemeral' }))
  const wire = world.wires[0]!
  const held: Uint8Array[] = []
  world.interference.toClient = (chunk, from) =>
    from === wire ? (held.push(chunk.slice()), undefined) : chunk
  client.getData('/').catch(() => {})
  await world.settle()
  await world.outcome(client.updateServerList('b:2181'))
  void client.close()
  await world.settle()
  delete world.interference.toClient
  for (const chunk of held) wire.deliver(chunk)
  await world.advance(2500)
  expect(client.state).toBe('closed')
  expect(await world.outcome(other.exists('/e'))).toBeUndefined()
})

it('each call is told to the instrumentation once, with one end', async () => {
  const begun: string[] = []
  const ended: string[] = []
  const client = await world.client({
    offlineQueue: 1,
    instrumentation: {
      request: ({ operation, path }) => {
        begun.push(`${operation} ${path}`)
        return ({ error }) => void ended.push(`${operation} ${path} ${error?.code ?? 'ok'}`)
      },
    },
  })
  world.wire.cut()
  await world.settle()
  client.getData('/').catch(() => {})
  client.getData('/full').catch(() => {})
  await world.advance(3000)
  expect(begun.length).toBe(ended.length)
  expect(begun).toEqual(['getData /', 'getData /full'])
})

it('a persistent watch that is closed beside a one-shot watch does not stay on the server for ever', async () => {
  const told: number[] = []
  const client = await world.client({
    instrumentation: { event: ({ watchers }) => void told.push(watchers) },
  })
  const other = await world.client()
  await world.outcome(client.create('/a', bytes('')))
  const watcher = await world.outcome(client.watch('/a'))
  const once = await world.outcome(client.watchOnce('/a', 'data'))
  await world.outcome(watcher.close())
  await world.outcome(once.close())
  for (let i = 0; i < 5; i++) await world.outcome(other.setData('/a', bytes(`${i}`)))
  await world.settle()
  expect(told).toEqual([])
})
