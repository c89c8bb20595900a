import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { SeededRandom } from '@zabra/runtime'
import { AuthFailedError, NoAuthError } from './errors.ts'
import { digestMd5 as inNode } from './node/index.ts'
import { digestMd5With } from './sasl.ts'
import { ManualWorld } from './testing/manual-world.ts'
import { digestMd5 as inTheWeb } from './web/index.ts'

const digestMd5 = digestMd5With(new SeededRandom(3))
const acl = (id: string) => [{ perms: 31, scheme: 'sasl', id }]
let world: ManualWorld

beforeEach(async () => {
  world = await ManualWorld.start({ saslUsers: { bob: 'secret', eve: 'hidden' }, requireSasl: true })
})
afterEach(() => world.end())

const run = <T>(promise: Promise<T>): Promise<T> => world.outcome(promise)

describe('a login with DIGEST-MD5', () => {
  it('gives the client an identity on every connection', async () => {
    const bob = await world.client({ sasl: digestMd5({ username: 'bob', password: 'secret' }) })
    await run(bob.create('/bob', { acl: acl('bob') }))
    world.lastConnection.cut()
    await world.within(10_000, bob.getData('/bob'))
    expect(world.connections).toHaveLength(2)
    const eve = await world.client({ sasl: digestMd5({ username: 'eve', password: 'hidden' }) })
    await expect(run(eve.getData('/bob'))).rejects.toBeInstanceOf(NoAuthError)
  })

  it.each([
    ['in Node', inNode],
    ['in the web', inTheWeb],
  ])('takes its nonces from the random source of the platform %s', async (_, platform) => {
    const client = await world.client({ sasl: platform({ username: 'bob', password: 'secret' }) })
    expect(await run(client.exists('/'))).toBeDefined()
  })

  it.each([
    ['a wrong password', { username: 'bob', password: 'wrong' }],
    ['another realm', { username: 'bob', password: 'secret', realm: 'elsewhere' }],
  ])('ends the client with %s', async (_, options) => {
    await expect(run(world.connect({ sasl: digestMd5(options) }))).rejects.toBeInstanceOf(AuthFailedError)
  })
})

it('a rejected login closes the client and its connection, and leaves the session to expire', async () => {
  // As with Apache's client: an unauthenticated client may not close a session either, so it sends no request.
  const sasl = digestMd5({ username: 'bob', password: 'wrong' })
  await expect(run(world.connect({ sasl, sessionTimeoutMs: 4000 }))).rejects.toMatchObject({
    name: 'AuthFailedError',
    maybeApplied: false,
  })
  await world.settle()
  expect(world.server.stats()).toMatchObject({ sessions: 1, connections: 0 })
  const connections = world.connections.length
  await world.advance(10_000)
  expect(world.server.stats().sessions).toBe(0)
  expect(world.connections).toHaveLength(connections)
})

it('a login rejected after a reconnect closes the client with its reason', async () => {
  let password = 'secret'
  const sasl = () => digestMd5({ username: 'bob', password })(undefined as never)
  const client = await world.client({ sasl })
  const states = world.states(client)
  password = 'changed'
  const closed = client.closed
  world.lastConnection.cut()
  await world.advance(5000)
  expect(states).toEqual(['connected', 'suspended', 'authFailed'])
  expect(await closed).toBeInstanceOf(AuthFailedError)
  await expect(run(client.exists('/'))).rejects.toBeInstanceOf(AuthFailedError)
})

it('a server without SASL ends the login with a clear error', async () => {
  await world.end()
  world = await ManualWorld.start()
  const sasl = digestMd5({ username: 'bob', password: 'secret' })
  await expect(run(world.connect({ sasl }))).rejects.toThrow(/offers no SASL login/)
})
