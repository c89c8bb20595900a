import {
  DigestMd5Client,
  ErrorCode,
  OpCode,
  readSetSASLResponse,
  writeAuthPacket,
  writeCreateRequest,
  writeGetSASLRequest,
  writeSetACLRequest,
  type ACL,
} from '@zabra/protocol'
import { describe, expect, it } from 'vitest'
import type { ServerSettings } from '../settings/index.ts'
import { TestServer, type RawClient } from '../testing/test-server.ts'

const saslUsers = { bob: 'secret', eve: 'hidden' }
const acl = (id: string, scheme = 'sasl'): ACL[] => [{ perms: 31, id: { scheme, id } }]

const start = (settings: Partial<ServerSettings> = {}): Promise<TestServer> =>
  TestServer.start({ saslUsers, saslAclScheme: true, ...settings })

/** Sends a SASL token. Returns the error and the token of the reply. */
async function sasl(client: RawClient, xid: number, token: Uint8Array | null) {
  client.ask(xid, OpCode.sasl, (w) => writeGetSASLRequest(w, { token }))
  await client.untilIdle()
  const [reply, ...more] = client.replies()
  expect(more).toEqual([])
  expect(reply).toMatchObject({ xid, zxid: 0 })
  return { err: reply!.err, token: readSetSASLResponse(reply!.body).token }
}

/** Logs in by DIGEST-MD5 and returns the last reply. The client verifies the `rspauth` of the server. */
async function login(client: RawClient, username: string, password: string) {
  const mechanism = new DigestMd5Client({ username, password, cnonce: () => 'cnonce' })
  const challenge = await sasl(client, 1, (await mechanism.step())!)
  expect(challenge.err).toBe(0)
  const last = await sasl(client, 2, (await mechanism.step(challenge.token))!)
  if (last.token !== null) expect(await mechanism.step(last.token)).toBeUndefined()
  return last
}

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
