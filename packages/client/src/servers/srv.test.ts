import { beforeEach, describe, expect, it } from 'vitest'
import { OperationTimeoutError, UsageError } from '../core.ts'
import { setupEachTest, world } from '../testing/setup.ts'
import { bytes } from '../testing/manual-world.ts'
import type { Client } from '../client-api.ts'
import { parseSrv } from './srv.ts'

setupEachTest()
let found: { host: string; port: number }[]
let requested: string[]
let broken: Error | undefined
/** Whether lookups stay without an answer. */
let isSilent: boolean
beforeEach(() => {
  found = [{ host: 'a', port: 2181 }]
  requested = []
  broken = undefined
  isSilent = false
})

const services = async (name: string): Promise<typeof found> => {
  requested.push(name)
  if (isSilent) return new Promise(() => {})
  if (broken !== undefined) throw broken
  return found
}

const connecting = (options = {}): Promise<Client> =>
  world.connect({ servers: 'dns-srv://_zk._tcp.example.com', platform: { resolveSrv: services }, ...options })

describe('servers given as a dns-srv:// name', () => {
  it('are resolved, with the chroot after the name', async () => {
    const root = await world.client()
    await world.outcome(root.create('/app'))
    const client = await world.outcome(connecting({ servers: 'dns-srv://_zk._tcp.example.com/app' }))
    await world.outcome(client.create('/x', { data: bytes('1') }))
    expect(await world.outcome(root.exists('/app/x'))).toBeDefined()
    expect(requested).toEqual(['_zk._tcp.example.com'])
    await world.outcome(client.close())
  })

  it('are looked up until the lookup succeeds', async () => {
    found = []
    const client = connecting()
    await world.advance(3000)
    found = [{ host: 'a.', port: 2181 }]
    expect((await world.within(10_000, client)).state).toBe('connected')
    expect(requested.length).toBeGreaterThan(2)
    expect(world.lastConnection.server).toMatchObject({ scheme: 'tcp', host: 'a', port: 2181 })
  })

  it('are no longer looked up when the signal aborts, and the error gives the last reason', async () => {
    broken = new Error('queryServFail')
    const abort = new AbortController()
    const refused = expect(world.within(10_000, connecting({ signal: abort.signal }))).rejects.toMatchObject({
      name: 'AbortError',
      message: expect.stringContaining('queryServFail'),
    })
    await world.advance(500)
    abort.abort()
    await refused
    const tries = requested.length
    await world.advance(20_000)
    expect(requested).toHaveLength(tries)
  })

  it('give the reason of the last answer when the signal aborts in a lookup', async () => {
    broken = new Error('queryServFail')
    const abort = new AbortController()
    const refused = expect(connecting({ signal: abort.signal })).rejects.toThrow(
      'the last lookup of _zk._tcp.example.com failed: queryServFail',
    )
    await world.settle()
    isSilent = true
    await world.advance(5000)
    abort.abort()
    await refused
    expect(requested).toHaveLength(2)
  })

  it('are looked up periodically, and the client moves to new servers', async () => {
    const client = await world.outcome(connecting())
    found = [{ host: 'b', port: 2181 }]
    const { id } = client.session
    await world.advance(70_000)
    expect(world.lastConnection.server.host).toBe('b')
    expect([client.state, client.session.id]).toEqual(['connected', id])
    await world.outcome(client.close())
    const lookups = requested.length
    await world.advance(200_000)
    expect(requested).toHaveLength(lookups)
  })

  it('are kept when a later lookup fails or finds none', async () => {
    const client = await world.outcome(connecting())
    found = []
    await world.advance(70_000)
    // RFC 2782: the service is not available.
    found = [{ host: '.', port: 0 }]
    await world.advance(70_000)
    found = [{ host: '', port: 0 }]
    await world.advance(70_000)
    broken = new Error('queryServFail')
    await world.advance(70_000)
    expect(requested.length).toBeGreaterThan(2)
    expect([client.state, world.connections.length]).toEqual(['connected', 1])
    await world.outcome(client.close())
  })

  it('are looked up again at once when the connection is lost', async () => {
    const client = await world.outcome(connecting())
    found = [{ host: 'b', port: 2181 }]
    world.faults.open = ({ host }) => {
      if (host === 'a') throw new Error('gone')
    }
    world.lastConnection.cut()
    await world.advance(2000)
    expect([client.state, world.lastConnection.server.host]).toEqual(['connected', 'b'])
    await world.outcome(client.close())
  })

  it.each([
    ['dns-srv://', 'Expected a service as'],
    ['dns-srv://a:2181', 'Expected a service as'],
    ['dns-srv://a,b', 'Expected a service as'],
    ['dns-srv://a/b/', 'Expected a chroot'],
  ])('are rejected when written as %s', async (servers, message) => {
    await expect(connecting({ servers })).rejects.toThrow(message)
    await expect(connecting({ servers })).rejects.toThrow(UsageError)
  })

  it('are rejected on a platform without SRV lookup', async () => {
    await expect(world.connect({ servers: 'dns-srv://a' })).rejects.toThrow(
      'this platform has no SRV lookup for dns-srv:// names',
    )
  })

  it('may use TLS', () => {
    expect(parseSrv('dns-srv+tls://a/b')).toEqual({ name: 'a', scheme: 'tls', chroot: '/b' })
    expect(parseSrv('a:2181')).toBeUndefined()
    expect(parseSrv(['dns-srv'])).toBeUndefined()
  })

  it('reject with an OperationTimeoutError when a deadline ends the lookup', async () => {
    broken = new Error('queryServFail')
    const signal = AbortSignal.timeout(0)
    await new Promise((resolve) => signal.addEventListener('abort', resolve))
    await expect(connecting({ signal })).rejects.toThrow(OperationTimeoutError)
  })
})
