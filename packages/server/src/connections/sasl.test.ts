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

async function start(settings: Partial<ServerSettings> = {}): Promise<TestServer> {
  return TestServer.start({ saslUsers, saslAclScheme: true, ...settings })
}

async function connected(world: TestServer): Promise<RawClient> {
  const client = await world.client()
  client.takeConnectResponse()
  return client
}

/** Sends a token. Gives what came back: the error and the token. */
async function sasl(client: RawClient, xid: number, token: Uint8Array | null) {
  client.ask(xid, OpCode.sasl, (w) => writeGetSASLRequest(w, { token }))
  await client.untilIdle()
  const [reply, ...more] = client.replies()
  expect(more).toEqual([])
  expect(reply).toMatchObject({ xid, zxid: 0 })
  return { err: reply!.err, token: readSetSASLResponse(reply!.body).token }
}

/** Logs in and gives the last answer. The client checks the proof of the server. */
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

describe('a login by SASL', () => {
  it('gives an identity that access lists can name', async () => {
    const world = await start()
    const [bob, eve] = [await connected(world), await connected(world)]
    expect((await login(bob, 'bob', 'secret')).err).toBe(0)
    expect((await login(eve, 'eve', 'hidden')).err).toBe(0)
    expect(await create(bob, 3, '/bob', acl('bob'))).toEqual(['3:0'])
    expect(await create(bob, 4, '/mine', acl('', 'auth'))).toEqual(['4:0'])
    for (const path of ['/bob', '/mine']) {
      expect(await look(bob, 5, path)).toEqual(['5:0'])
      expect(await look(eve, 5, path)).toEqual([`5:${ErrorCode.NOAUTH}`])
    }
  })

  it('is refused with a wrong password or an unknown name, and the connection closes', async () => {
    const world = await start()
    for (const [name, password] of [
      ['bob', 'hidden'],
      ['mallory', 'secret'],
      ['__proto__', 'x'],
    ] as const) {
      const client = await connected(world)
      expect(await login(client, name, password)).toEqual({ err: ErrorCode.AUTHFAILED, token: null })
      expect(client.closed).toBe(true)
    }
    const told = world.logLines.filter(({ sentence }) => sentence.startsWith('Refused a login'))
    expect(told.map(({ facts }) => facts)).toMatchObject([
      { reason: 'wrong password', user: 'bob' },
      { reason: 'unknown user', user: 'mallory' },
      { reason: 'unknown user', user: '__proto__' },
    ])
    expect(await world.command('mntr')).toContain('zk_auth_failed_count\t3')
    expect(JSON.stringify(world.logLines)).not.toMatch(/secret|hidden/)
  })

  it('takes any first token as the wish for a challenge, and no second login', async () => {
    const world = await start()
    const client = await connected(world)
    const noise = new TextEncoder().encode('noise')
    expect((await sasl(client, 1, noise)).token?.length).toBe(101)
    expect(await sasl(client, 2, noise)).toEqual({ err: ErrorCode.AUTHFAILED, token: null })
    const again = await connected(world)
    await login(again, 'bob', 'secret')
    expect(await sasl(again, 3, new Uint8Array(0))).toEqual({ err: ErrorCode.AUTHFAILED, token: null })
    expect(again.closed).toBe(true)
  })

  it('has another nonce for every connection', async () => {
    const world = await start()
    const tokens = []
    for (let i = 0; i < 3; i++) tokens.push(String((await sasl(await connected(world), 1, null)).token))
    expect(new Set(tokens).size).toBe(3)
  })

  it('makes those super users who are named so', async () => {
    const world = await start({ saslSuperUsers: ['bob'] })
    const [bob, eve] = [await connected(world), await connected(world)]
    await login(bob, 'bob', 'secret')
    await login(eve, 'eve', 'hidden')
    expect(await create(eve, 3, '/eve', acl('eve'))).toEqual(['3:0'])
    expect(await look(bob, 3, '/eve')).toEqual(['3:0'])
  })

  it('as super has a password of its own, and passes for every SASL user', async () => {
    const users = { ...saslUsers, super: 'old' }
    const world = await start({ saslUsers: users, saslSuperPassword: 'new' })
    expect((await login(await connected(world), 'super', 'old')).err).toBe(ErrorCode.AUTHFAILED)
    const [bob, root] = [await connected(world), await connected(world)]
    await login(bob, 'bob', 'secret')
    expect((await login(root, 'super', 'new')).err).toBe(0)
    await create(bob, 3, '/bob', acl('bob'))
    await create(bob, 4, '/digest', acl('x:y', 'digest'))
    expect(await look(root, 3, '/bob')).toEqual(['3:0'])
    expect(await look(root, 4, '/digest')).toEqual([`4:${ErrorCode.NOAUTH}`])
  })

  it('is answered ahead of requests that wait, which keep the identities that they came with', async () => {
    const world = await start()
    const bob = await connected(world)
    await login(bob, 'bob', 'secret')
    await create(bob, 3, '/bob', acl('bob'))
    const late = await connected(world)
    const release = world.blockDisk()
    late.create(1, '/waits')
    late.read(2, OpCode.getData, '/bob')
    const mechanism = new DigestMd5Client({ username: 'bob', password: 'secret', cnonce: () => 'cnonce' })
    const { token } = await sasl(late, 3, (await mechanism.step())!)
    expect((await sasl(late, 4, (await mechanism.step(token))!)).err).toBe(0)
    late.read(5, OpCode.getData, '/bob')
    release()
    await world.untilIdle()
    expect(late.takeReceived()).toEqual(['1:0', `2:${ErrorCode.NOAUTH}`, '5:0'])
  })
})

describe('without a login by SASL', () => {
  it('clients hear an empty token where nobody can log in', async () => {
    const world = await start({ saslUsers: {} })
    const client = await connected(world)
    expect(await sasl(client, 1, new Uint8Array(0))).toEqual({ err: 0, token: null })
    expect(client.closed).toBe(false)
  })

  it('the scheme cannot stand in access lists unless it is switched on', async () => {
    const world = await start({ saslAclScheme: false })
    const client = await connected(world)
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
  ])('the name %j in an access list is answered with %d', async (id, err) => {
    const world = await start()
    const client = await connected(world)
    client.create(1, '/a')
    client.ask(2, OpCode.setACL, (w) => writeSetACLRequest(w, { path: '/a', acl: acl(id), version: -1 }))
    await world.untilIdle()
    expect(client.takeReceived()).toEqual(['1:0', `2:${err}`])
  })

  it('an auth packet of scheme sasl is refused', async () => {
    const world = await start()
    const client = await connected(world)
    client.ask(-4, OpCode.auth, (w) =>
      writeAuthPacket(w, { type: 0, scheme: 'sasl', auth: new Uint8Array(3) }),
    )
    await world.untilIdle()
    expect(client.takeReceived()).toEqual([`-4:${ErrorCode.AUTHFAILED}`])
    expect(client.closed).toBe(true)
  })

  it('clients go on where allowSaslFailedClients lets them', async () => {
    const world = await start({ allowSaslFailedClients: true })
    const client = await connected(world)
    expect(await login(client, 'bob', 'wrong')).toEqual({ err: 0, token: null })
    expect(await create(client, 3, '/a', acl('anyone', 'world'))).toEqual(['3:0'])
    for (let i = 0; i < 9; i++) expect(await sasl(client, 4, null)).toEqual({ err: 0, token: null })
    expect(world.logLines.filter(({ sentence }) => sentence.startsWith('Refused a login'))).toHaveLength(1)
    expect(await create(client, 5, '/b', acl('', 'auth'))).toEqual([`5:${ErrorCode.INVALIDACL}`])
  })
})

describe.each([
  ['sessionRequireClientSASLAuth', { requireSasl: true }],
  ['enforce.auth.schemes', { enforceAuthEnabled: true, enforceAuthSchemes: ['sasl'] }],
])('where %s demands a login', (_, demand) => {
  it('requests before it are refused, pings and auth packets do not count as one', async () => {
    const world = await start({ ...demand, allowSaslFailedClients: true })
    for (const type of [OpCode.ping, OpCode.exists, OpCode.create, OpCode.closeSession]) {
      const client = await connected(world)
      client.ask(-4, OpCode.auth, (w) =>
        writeAuthPacket(w, { type: 0, scheme: 'digest', auth: new TextEncoder().encode('a:b') }),
      )
      client.ask(1, type)
      await world.untilIdle()
      expect(client.takeReceived()).toEqual(['-4:0', `1:${ErrorCode.SESSIONCLOSEDREQUIRESASLAUTH}`])
      expect(client.closed).toBe(true)
    }
  })

  it('whoever has logged in is served', async () => {
    const world = await start(demand)
    const client = await connected(world)
    await login(client, 'bob', 'secret')
    expect(await create(client, 3, '/a', acl('bob'))).toEqual(['3:0'])
  })

  it('a login that fails says so and closes the connection, whatever allowSaslFailedClients says', async () => {
    const world = await start({ ...demand, allowSaslFailedClients: true })
    const client = await connected(world)
    expect(await login(client, 'bob', 'wrong')).toEqual({
      err: ErrorCode.SESSIONCLOSEDREQUIRESASLAUTH,
      token: null,
    })
    expect(client.closed).toBe(true)
  })
})
