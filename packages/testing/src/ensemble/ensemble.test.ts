import { connect } from '@zabra/client'
import { afterEach, describe, expect, it } from 'vitest'
import { expireSession, startEnsemble, startServer } from '../index.ts'

const open: { close(): Promise<void> }[] = []
afterEach(async () => {
  for (const one of open.splice(0).toReversed()) await one.close()
})

async function keep<T extends { close(): Promise<void> }>(made: Promise<T>): Promise<T> {
  const one = await made
  open.push(one)
  return one
}

const bytes = (text: string): Uint8Array => new TextEncoder().encode(text)

describe('startServer', () => {
  it('a killed server restarts at the same address with everything it acknowledged', async () => {
    const server = await keep(startServer())
    const { address } = server
    const client = await keep(connect({ servers: address }))
    await client.create('/a', { data: bytes('1') })
    await server.kill()
    expect(() => server.server).toThrow('start()')
    await server.start()
    expect(server.address).toBe(address)
    expect((await client.getData('/a')).data).toEqual(bytes('1'))
  })

  it('a setting that is undefined is the one of tests', async () => {
    const server = await keep(
      startServer({ settings: { clientPortAddress: undefined, tickTimeMs: undefined } }),
    )
    expect(server.server.addresses.client.host).toBe('127.0.0.1')
    const client = await keep(connect({ servers: server.address, sessionTimeoutMs: 1000 }))
    expect(client.session.timeoutMs).toBe(1000)
  })

  it('a paused server answers its requests after it resumes', async () => {
    const server = await keep(startServer())
    const client = await keep(connect({ servers: server.address, sessionTimeoutMs: 60_000 }))
    server.pause()
    let isDone = false
    const made = client.create('/a').then(() => (isDone = true))
    await new Promise((resolve) => void setImmediate(resolve))
    expect(isDone).toBe(false)
    server.resume()
    await made
  })

  it('expireSession deletes the ephemeral znodes of a client, which reports the expiry', async () => {
    const server = await keep(startServer())
    const client = await keep(connect({ servers: server.address }))
    await client.create('/mine', { data: null, mode: 'ephemeral' })
    const { generation: epoch } = client.session
    await expireSession(server.address, client)
    for await (const { state } of client.states())
      if (state === 'connected' && client.session.generation > epoch) break
    expect(await client.exists('/mine')).toBeUndefined()
  })
})

describe('startEnsemble', () => {
  it('an ensemble serves while a member is down, and the member catches up after its restart', async () => {
    const ensemble = await keep(startEnsemble(3))
    const client = await keep(connect({ servers: ensemble.connectString }))
    await client.create('/a', { data: bytes('1') })
    const leader = ensemble.leader!
    await ensemble.member(leader).kill()
    await ensemble.waitForLeader(leader)
    await client.setData('/a', bytes('2'), { idempotent: true })
    await ensemble.member(leader).start()
    await ensemble.waitForAll()
    const other = await keep(connect({ servers: ensemble.member(leader).address }))
    await other.sync('/a')
    expect((await other.getData('/a')).data).toEqual(bytes('2'))
  })

  it('a partitioned leader is replaced, and follows after the partition heals', async () => {
    const ensemble = await keep(startEnsemble(3))
    const old = ensemble.leader!
    const others = [1, 2, 3].filter((id) => id !== old)
    ensemble.partition(others)
    expect(others).toContain(await ensemble.waitForLeader(old))
    ensemble.heal()
    await ensemble.waitForAll()
    expect(ensemble.member(old).server.role).toBe('following')
  })

  it('an ensemble of one member is refused', async () => {
    await expect(startEnsemble(1)).rejects.toThrow('two members or more')
  })
})

describe('servers in child processes', () => {
  it('a killed server restarts at the same address with everything it acknowledged', async () => {
    const server = await keep(startServer({ process: 'child' }))
    const { address } = server
    expect([server.isRunning, server.role, server.isServing]).toEqual([true, 'standalone', true])
    const client = await keep(connect({ servers: address }))
    await client.create('/a', { data: bytes('1') })
    await server.kill()
    expect([server.isRunning, server.role, server.isServing]).toEqual([false, undefined, false])
    await server.start()
    expect(server.address).toBe(address)
    expect((await client.getData('/a')).data).toEqual(bytes('1'))
  })

  it('a paused server answers its requests after it resumes', async () => {
    const server = await keep(startServer({ process: 'child' }))
    const client = await keep(connect({ servers: server.address, sessionTimeoutMs: 60_000 }))
    server.pause()
    const aborted = AbortSignal.timeout(300)
    await expect(client.create('/a', { data: null, signal: aborted })).rejects.toThrow()
    server.resume()
    await client.create('/b')
    expect(await client.exists('/b')).toBeDefined()
  })

  it('a server that cannot start rejects with its output', async () => {
    const settings = { clientPortAddress: '203.0.113.1' }
    await expect(startServer({ process: 'child', settings })).rejects.toThrow(/EADDRNOTAVAIL|203\.0\.113\.1/)
  })

  it('an ensemble replaces a partitioned or killed leader and loses no acknowledged write', async () => {
    const ensemble = await keep(startEnsemble(3, { process: 'child' }))
    const client = await keep(connect({ servers: ensemble.connectString, sessionTimeoutMs: 30_000 }))
    await client.create('/a', { data: bytes('1') })
    const first = ensemble.leader!
    ensemble.partition([1, 2, 3].filter((id) => id !== first))
    const second = await ensemble.waitForLeader(first)
    expect(second).not.toBe(first)
    ensemble.heal()
    await ensemble.waitForAll()
    expect(ensemble.member(first).role).toBe('following')
    await ensemble.member(second).kill()
    const third = await ensemble.waitForLeader(second)
    expect(third).not.toBe(second)
    expect((await client.getData('/a')).data).toEqual(bytes('1'))
    await ensemble.member(second).start()
    await ensemble.waitForAll()
  })
})
