import {
  CreateMode,
  DigestMd5Client,
  ErrorCode,
  OpCode,
  OPEN_ACL_UNSAFE,
  writeAuthPacket,
  writeGetSASLRequest,
  writeCreateRequest,
  writeSetACLRequest,
  type ACL,
} from '@zabra/protocol'
import { describe, expect, it } from 'vitest'
import type { ServerSettings } from '../settings/index.ts'
import { login, sasl } from '../testing/sasl-login.ts'
import { TestServer, type RawClient } from '../testing/test-server.ts'

const saslUsers = { bob: 'secret', eve: 'hidden' }
const acl = (id: string, scheme = 'sasl'): ACL[] => [{ perms: 31, id: { scheme, id } }]

const start = (settings: Partial<ServerSettings> = {}): Promise<TestServer> =>
  TestServer.start({ saslUsers, saslAclScheme: true, ...settings })

async function create(client: RawClient, xid: number, path: string, list: readonly ACL[]): Promise<string[]> {
  client.ask(xid, OpCode.create, (w) => writeCreateRequest(w, { path, data: null, acl: list, flags: 0 }))
  await client.untilIdle()
  return client.takeReceived()
}

async function look(client: RawClient, xid: number, path: string): Promise<string[]> {
  client.read(xid, OpCode.getData, path)
  await client.untilIdle()
  return client.takeReceived()
}

describe('a SASL login', () => {
  it('gives the client an identity of the scheme sasl, which ACLs can name', async () => {
    const fixture = await start()
    const [bob, eve] = [await fixture.connect(), await fixture.connect()]
    expect((await login(bob, 'bob', 'secret')).err).toBe(0)
    expect((await login(eve, 'eve', 'hidden')).err).toBe(0)
    expect(await create(bob, 3, '/bob', acl('bob'))).toEqual(['3:0'])
    expect(await create(bob, 4, '/mine', acl('', 'auth'))).toEqual(['4:0'])
    for (const path of ['/bob', '/mine']) {
      expect(await look(bob, 5, path)).toEqual(['5:0'])
      expect(await look(eve, 5, path)).toEqual([`5:${ErrorCode.NOAUTH}`])
    }
  })

  it('is refused with a wrong password or an unknown user, and the connection closes', async () => {
    const fixture = await start()
    for (const [name, password] of [
      ['bob', 'hidden'],
      ['mallory', 'secret'],
      ['__proto__', 'x'],
    ] as const) {
      const client = await fixture.connect()
      expect(await login(client, name, password)).toEqual({ err: ErrorCode.AUTHFAILED, token: null })
      expect(client.closed).toBe(true)
    }
    const refusals = fixture.logLines.filter(({ sentence }) => sentence.startsWith('Refused a login'))
    expect(refusals.map(({ facts }) => facts)).toMatchObject([
      { reason: 'wrong password', user: 'bob' },
      { reason: 'unknown user', user: 'mallory' },
    ])
    await fixture.advance(10_000)
    expect(fixture.logLines.findLast(({ sentence }) => sentence.startsWith('Refused a login'))).toMatchObject(
      {
        facts: { reason: 'unknown user', user: '__proto__', times: 1 },
      },
    )
    expect(await fixture.command('mntr')).toContain('zk_auth_failed_count\t3')
    expect(JSON.stringify(fixture.logLines)).not.toMatch(/secret|hidden/)
  })

  it('starts with any token, and cannot be repeated', async () => {
    const fixture = await start()
    const client = await fixture.connect()
    const noise = new TextEncoder().encode('noise')
    expect((await sasl(client, 1, noise)).token?.length).toBe(101)
    expect(await sasl(client, 2, noise)).toEqual({ err: ErrorCode.AUTHFAILED, token: null })
    const again = await fixture.connect()
    await login(again, 'bob', 'secret')
    expect(await sasl(again, 3, new Uint8Array(0))).toEqual({ err: ErrorCode.AUTHFAILED, token: null })
    expect(again.closed).toBe(true)
  })

  it('gets another nonce on every connection', async () => {
    const fixture = await start()
    const tokens = []
    for (let i = 0; i < 3; i++) tokens.push(String((await sasl(await fixture.connect(), 1, null)).token))
    expect(new Set(tokens).size).toBe(3)
  })

  it('makes a super user of each user in saslSuperUsers', async () => {
    const fixture = await start({ saslSuperUsers: ['bob'] })
    const [bob, eve] = [await fixture.connect(), await fixture.connect()]
    await login(bob, 'bob', 'secret')
    await login(eve, 'eve', 'hidden')
    expect(await create(eve, 3, '/eve', acl('eve'))).toEqual(['3:0'])
    expect(await look(bob, 3, '/eve')).toEqual(['3:0'])
  })

  it('as super takes the password of saslSuperPassword, and satisfies the ACL of every SASL user', async () => {
    const users = { ...saslUsers, super: 'old' }
    const fixture = await start({ saslUsers: users, saslSuperPassword: 'new' })
    expect((await login(await fixture.connect(), 'super', 'old')).err).toBe(ErrorCode.AUTHFAILED)
    const [bob, root] = [await fixture.connect(), await fixture.connect()]
    await login(bob, 'bob', 'secret')
    expect((await login(root, 'super', 'new')).err).toBe(0)
    await create(bob, 3, '/bob', acl('bob'))
    await create(bob, 4, '/digest', acl('x:y', 'digest'))
    expect(await look(root, 3, '/bob')).toEqual(['3:0'])
    expect(await look(root, 4, '/digest')).toEqual([`4:${ErrorCode.NOAUTH}`])
  })

  it('gets its replies before those of queued requests, which keep the identities of their receipt', async () => {
    const fixture = await start()
    const bob = await fixture.connect()
    await login(bob, 'bob', 'secret')
    await create(bob, 3, '/bob', acl('bob'))
    const late = await fixture.connect()
    const release = fixture.blockDisk()
    late.create(1, '/waits')
    late.read(2, OpCode.getData, '/bob')
    const mechanism = new DigestMd5Client({ username: 'bob', password: 'secret', cnonce: () => 'cnonce' })
    const { token } = await sasl(late, 3, (await mechanism.step())!)
    expect((await sasl(late, 4, (await mechanism.step(token))!)).err).toBe(0)
    late.read(5, OpCode.getData, '/bob')
    release()
    expect(await late.received()).toEqual(['1:0', `2:${ErrorCode.NOAUTH}`, '5:0'])
  })
})

describe('a server with or without SASL users', () => {
  it('replies with an empty token when it has no SASL users', async () => {
    const fixture = await start({ saslUsers: {} })
    const client = await fixture.connect()
    expect(await sasl(client, 1, new Uint8Array(0))).toEqual({ err: 0, token: null })
    expect(client.closed).toBe(false)
  })

  it('refuses ACLs of the scheme sasl unless saslAclScheme is on', async () => {
    const fixture = await start({ saslAclScheme: false })
    const client = await fixture.connect()
    await login(client, 'bob', 'secret')
    expect(await create(client, 3, '/a', acl('bob'))).toEqual([`3:${ErrorCode.INVALIDACL}`])
    expect(await create(client, 4, '/a', acl('', 'auth'))).toEqual([`4:${ErrorCode.INVALIDACL}`])
  })

  it.each([
    ['bob', 0],
    ['bob/host@REALM', 0],
    ['bob@REALM', 0],
    ['', 0],
    ['a/b/c', 0],
    ['bob@a@b', ErrorCode.INVALIDACL],
    ['a/b/c@d', ErrorCode.INVALIDACL],
  ])('replies to an ACL for the user %j with the error %d', async (id, err) => {
    const fixture = await start()
    const client = await fixture.connect()
    client.create(1, '/a')
    client.ask(2, OpCode.setACL, (w) => writeSetACLRequest(w, { path: '/a', acl: acl(id), version: -1 }))
    expect(await client.received()).toEqual(['1:0', `2:${err}`])
  })

  it('refuses an auth packet of the scheme sasl', async () => {
    const fixture = await start()
    const client = await fixture.connect()
    client.ask(-4, OpCode.auth, (w) =>
      writeAuthPacket(w, { type: 0, scheme: 'sasl', auth: new Uint8Array(3) }),
    )
    expect(await client.received()).toEqual([`-4:${ErrorCode.AUTHFAILED}`])
    expect(client.closed).toBe(true)
  })

  it('keeps a client whose login has failed when allowSaslFailedClients is on', async () => {
    const fixture = await start({ allowSaslFailedClients: true })
    const client = await fixture.connect()
    expect(await login(client, 'bob', 'wrong')).toEqual({ err: 0, token: null })
    expect(await create(client, 3, '/a', acl('anyone', 'world'))).toEqual(['3:0'])
    for (let i = 0; i < 9; i++) expect(await sasl(client, 4, null)).toEqual({ err: 0, token: null })
    expect(
      fixture.logLines.map(({ sentence }) => sentence).filter((line) => line.startsWith('Refused a login')),
    ).toEqual([
      'Refused a login by SASL and kept the connection: wrong password',
      'Refused a login by SASL and kept the connection: out of order',
    ])
    expect(await create(client, 5, '/b', acl('', 'auth'))).toEqual([`5:${ErrorCode.INVALIDACL}`])
  })
})

describe.each([
  ['sessionRequireClientSASLAuth', { requireSasl: true }],
  ['enforce.auth.schemes', { enforceAuthEnabled: true, enforceAuthSchemes: ['sasl'] }],
])('a server where %s requires a SASL login', (_, demand) => {
  it('refuses every request before the login, pings and those after an auth packet included', async () => {
    const fixture = await start({ ...demand, allowSaslFailedClients: true })
    for (const type of [OpCode.ping, OpCode.exists, OpCode.create, OpCode.closeSession]) {
      const client = await fixture.connect()
      client.ask(-4, OpCode.auth, (w) =>
        writeAuthPacket(w, { type: 0, scheme: 'digest', auth: new TextEncoder().encode('a:b') }),
      )
      client.ask(1, type)
      expect(await client.received()).toEqual(['-4:0', `1:${ErrorCode.SESSIONCLOSEDREQUIRESASLAUTH}`])
      expect(client.closed).toBe(true)
    }
  })

  it('serves a client that has logged in', async () => {
    const fixture = await start(demand)
    const client = await fixture.connect()
    await login(client, 'bob', 'secret')
    expect(await create(client, 3, '/a', acl('bob'))).toEqual(['3:0'])
  })

  it('closes the connection of a failed login, even when allowSaslFailedClients is on', async () => {
    const fixture = await start({ ...demand, allowSaslFailedClients: true })
    const client = await fixture.connect()
    expect(await login(client, 'bob', 'wrong')).toEqual({
      err: ErrorCode.SESSIONCLOSEDREQUIRESASLAUTH,
      token: null,
    })
    expect(client.closed).toBe(true)
  })
})

describe('a session that a client with a SASL login has opened', () => {
  /** Opens a session as bob. */
  async function bobs(settings?: Partial<ServerSettings>): Promise<{ fixture: TestServer; bob: RawClient }> {
    const fixture = await start(settings)
    const bob = await fixture.connect()
    await login(bob, 'bob', 'secret')
    bob.create(3, '/lock', CreateMode.EPHEMERAL)
    expect(await bob.received()).toEqual(['3:0'])
    return { fixture, bob }
  }

  it('is not resumed by a client that has its password and does not log in', async () => {
    const { fixture, bob } = await bobs()
    const thief = await fixture.connect({ resume: bob.session! })
    thief.ask(1, OpCode.closeSession)
    expect(await thief.received()).toEqual([`1:${ErrorCode.SESSIONCLOSEDREQUIRESASLAUTH}`])
    expect([thief.closed, bob.closed]).toEqual([true, false])
    expect(await look(bob, 4, '/lock')).toEqual(['4:0'])
  })

  it('is not resumed by another user, and its connection stays', async () => {
    const { fixture, bob } = await bobs()
    const eve = await fixture.connect({ resume: bob.session! })
    expect((await login(eve, 'eve', 'hidden')).err).toBe(ErrorCode.AUTHFAILED)
    expect([eve.closed, bob.closed]).toEqual([true, false])
    expect(fixture.logLines.map(({ sentence }) => sentence)).toContain(
      'Refused a login by SASL and closed the connection: the session belongs to another user',
    )
  })

  it('is resumed by its user, with requests that follow the login at once', async () => {
    const { fixture, bob } = await bobs()
    const again = await fixture.connect({ resume: bob.session! })
    expect(again.session).toEqual(bob.session)
    const mechanism = new DigestMd5Client({ username: 'bob', password: 'secret', cnonce: () => 'cnonce' })
    const { token } = await sasl(again, 1, (await mechanism.step())!)
    const response = (await mechanism.step(token))!
    expect(bob.closed).toBe(false)
    again.batch(() => {
      again.ask(2, OpCode.sasl, (w) => writeGetSASLRequest(w, { token: response }))
      again.ask(3, OpCode.getEphemerals, (w) => w.string('/'))
    })
    await again.untilIdle()
    expect(bob.closed).toBe(true)
    const [proof, listing] = again.replies()
    expect([proof!.err, listing!.err]).toEqual([0, 0])
    const { body } = listing!
    expect([body.int(), body.string(), body.remaining]).toEqual([1, '/lock', 0])
  })

  it('is resumed after many auth packets too, which are handled over several turns of the event loop', async () => {
    const { fixture, bob } = await bobs()
    const again = await fixture.connect({ resume: bob.session! })
    const { clock } = fixture
    const [now, immediate] = [clock.monotonic.bind(clock), clock.immediate.bind(clock)]
    let passed = 0
    clock.monotonic = () => now() + (passed += 3)
    const counts: number[] = [0]
    clock.immediate = (action) =>
      immediate(() => {
        action()
        counts.push(again.frames.length)
      })
    const auth = new TextEncoder().encode(`ada:${'x'.repeat(100)}`)
    again.batch(() => {
      for (let i = 0; i < 200; i++)
        again.ask(-4, OpCode.auth, (w) => writeAuthPacket(w, { type: 0, scheme: 'digest', auth }))
    })
    await fixture.untilIdle()
    expect(again.takeReceived()).toEqual(Array.from({ length: 200 }, () => '-4:0'))
    expect(Math.max(...counts.map((count, i) => count - (counts[i - 1] ?? 0)))).toBeLessThan(50)
    clock.monotonic = now
    await login(again, 'bob', 'secret')
    expect(await look(again, 3, '/lock')).toEqual(['3:0'])
  })

  it('is resumed by its user alone after a restart too', async () => {
    const { fixture, bob } = await bobs()
    await fixture.stop()
    await fixture.restart()
    const thief = await fixture.connect({ resume: bob.session! })
    expect(await look(thief, 1, '/lock')).toEqual([`1:${ErrorCode.SESSIONCLOSEDREQUIRESASLAUTH}`])
    const again = await fixture.connect({ resume: bob.session! })
    await login(again, 'bob', 'secret')
    expect(await look(again, 3, '/lock')).toEqual(['3:0'])
  })

  it('does not live longer because of connections that do not log in, which are closed', async () => {
    const { fixture, bob } = await bobs({ minSessionTimeoutMs: 4000, sessionlessTimeoutMs: 5000 })
    bob.connection.destroy()
    const thieves: RawClient[] = []
    for (let i = 0; i < 6; i++) {
      thieves.push(await fixture.connect({ resume: bob.session!, timeout: 10_000 }))
      await fixture.advance(2000)
    }
    expect(thieves.slice(0, 3).map(({ closed }) => closed)).toEqual([true, true, true])
    const late = await fixture.connect({ resume: bob.session! })
    expect(late.session!.sessionId).toBe(0n)
  })

  it('ends without a trace of its user', async () => {
    const { fixture, bob } = await bobs()
    expect((await fixture.command('dump')).match(/\/zookeeper\/sessions\//g)).toHaveLength(1)
    bob.ask(4, OpCode.closeSession)
    await bob.untilIdle()
    expect(await fixture.command('dump')).not.toContain('/zookeeper/sessions/')
  })

  it('keeps its user from all clients, who cannot make, change or remove the node', async () => {
    const fixture = await start()
    const eve = await fixture.connect()
    expect(await create(eve, 1, '/zookeeper/sessions', OPEN_ACL_UNSAFE)).toEqual([`1:${ErrorCode.NOAUTH}`])
    const bob = await fixture.connect()
    await login(bob, 'bob', 'secret')
    const id = bob.session!.sessionId.toString(16).padStart(16, '0')
    const node = `/zookeeper/sessions/${id}`
    eve.set(2, node, 'x')
    eve.delete(3, node)
    eve.delete(4, '/zookeeper/sessions')
    eve.create(5, `${node}0`, CreateMode.EPHEMERAL)
    eve.read(6, OpCode.getData, node)
    const noAuth = ErrorCode.NOAUTH
    expect(await eve.received()).toEqual([
      `2:${noAuth}`,
      `3:${noAuth}`,
      `4:${noAuth}`,
      `5:${noAuth}`,
      `6:${noAuth}`,
    ])
  })

  it('is resumed with its password alone where there is no secret of sessions, as in Apache ZooKeeper', async () => {
    const { fixture, bob } = await bobs({ sessionSecretEnabled: false })
    const other = await fixture.connect({ resume: bob.session! })
    expect(await look(other, 1, '/lock')).toEqual(['1:0'])
    expect(bob.closed).toBe(true)
  })

  it('cannot be resumed once it has ended, with its password or a login', async () => {
    const { fixture, bob } = await bobs()
    const again = await fixture.connect({ resume: bob.session! })
    bob.ask(4, OpCode.closeSession)
    await bob.untilIdle()
    await login(again, 'bob', 'secret')
    expect(again.closed).toBe(true)
    expect((await fixture.connect({ resume: bob.session! })).session!.sessionId).toBe(0n)
  })
})
