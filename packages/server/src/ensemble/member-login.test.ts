import { Writer } from '@zabra/protocol'
import type { Address } from '@zabra/runtime'
import { nodeNetwork, nodePlatform } from '@zabra/runtime/node'
import fc from 'fast-check'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import type { ServerSettings } from '../settings/index.ts'
import { connectToMaster } from './connect-to-master.ts'
import type { MemberContext } from './context.ts'
import { encodeHello } from './election-hello.ts'
import { LoginBuffer } from './member-login.ts'
import { SaslLogin } from './sasl-login.ts'
import { SecretLogin } from './secret-login.ts'
import { followerInfo, hostOf, MemberSecurityFixture } from './testing/member-security-fixture.ts'

let fixture: MemberSecurityFixture
beforeEach(() => void (fixture = new MemberSecurityFixture()))
afterEach(() => fixture.close())

const text = (value: string): Uint8Array => new TextEncoder().encode(value)
const bytes = (hex: string): Uint8Array => Uint8Array.from(Buffer.from(hex.replaceAll(' ', ''), 'hex'))
const hello = (id: number): Uint8Array => encodeHello(id, [{ host: hostOf(id), port: 3888 }], false)
const plain = { sslQuorum: false } as const
const sasl = {
  ...plain,
  quorumSaslEnabled: true,
  quorumLearnerRequiresSasl: true,
  quorumServerRequiresSasl: true,
  quorumSaslUsers: { one: 'secret-1', two: 'secret-2' },
  quorumSaslUser: 'two',
  quorumSaslPassword: 'secret-2',
} satisfies Partial<ServerSettings>
const secret = { ...plain, quorumSecret: 'x'.repeat(40) } satisfies Partial<ServerSettings>
const MAGIC = '5f2435013501edcc'
/** Returns the logins that were proved, refused and left out, at all members. */
const logins = (): number[] => {
  const { loginsProved, loginsRefused, loginsSkipped } = fixture.stats
  return [loginsProved, loginsRefused, loginsSkipped]
}

/** Connects to the quorum port of server 1 as a learner. */
function connect(
  { port }: { readonly port: { readonly addresses: readonly Address[] } },
  learner: ServerSettings,
  security = fixture.security(learner),
): ReturnType<typeof connectToMaster> {
  const context = {
    settings: learner,
    platform: nodePlatform(),
    security,
    membership: { addressesOf: () => port.addresses },
  } as unknown as MemberContext
  return connectToMaster(context, { leader: 1, isObserver: false, signal: new AbortController().signal })
}

describe.each([
  ['by SASL', sasl],
  ['with a shared secret', secret],
])('members that log in %s', (_, login) => {
  it('exchange messages, whichever of them connects first', async () => {
    const one = await fixture.elections(1, login)
    const two = await fixture.elections(2, login)
    one.connections.send(2, text('from 1'))
    expect(await two.messages(1)).toEqual(['1: from 1'])
    two.connections.send(1, text('from 2'))
    expect(await one.messages(1)).toEqual(['2: from 2'])
    expect([logins()[0]! > 0, logins()[1], logins()[2]]).toEqual([true, 0, 0])
    expect([one.authenticated, two.authenticated]).toEqual([new Set([2]), new Set([1])])
  })

  it('also use TLS', async () => {
    const settings = { ...login, sslQuorum: true }
    const one = await fixture.elections(1, settings)
    const two = await fixture.elections(2, settings)
    two.connections.send(1, text('x'))
    expect(await one.messages(1)).toEqual(['2: x'])
  })

  it('follow on the quorum port, where both sides are authenticated', async () => {
    const leader = await fixture.quorumPort(fixture.settings(1, login))
    const settings = fixture.settings(2, login)
    const security = fixture.security(settings)
    const { connection } = await connect(leader, settings, security)
    expect(security.isAuthenticated(connection)).toBe(true)
    const closed = new Promise<void>((resolve) =>
      connection.setHandler({ data() {}, drain() {}, closed: () => resolve() }),
    )
    connection.write(followerInfo(2))
    await closed
    expect(leader.identified).toEqual([{ serverId: 2, isAuthenticated: true }])
  })

  it('refuse a server that does not log in', async () => {
    const one = await fixture.elections(1, login)
    const stranger = await fixture.dial(
      nodeNetwork,
      one.address,
      Buffer.concat([hello(2), bytes('0000000178')]),
    )
    await stranger.closed
    expect(await one.log.matching(/Expected a login/)).toMatch(
      /^warn A connection to the election port was closed/,
    )
    expect([stranger.received, one.received]).toEqual(['', []])
    expect(logins()).toEqual([0, 1, 0])
  })

  it('refuse a login that is held open or too large', async () => {
    const one = await fixture.elections(1, login)
    const start = login === sasl ? `${MAGIC} 00000000 7fffffff` : '5f7a616272610001'
    const stranger = await fixture.dial(nodeNetwork, one.address, Buffer.concat([hello(2), bytes(start)]))
    for (let sent = 0; login === secret && sent < 3; sent++) stranger.connection.write(new Uint8Array(65_536))
    await stranger.closed
    expect(await one.log.matching(/was closed/)).toMatch(
      /at most 4096 bytes|Expected a login on the election port/,
    )
  })
})

describe('a login by SASL', () => {
  it('with a wrong password is refused in both logs, also where a login is optional', async () => {
    const one = await fixture.elections(1, { ...sasl, quorumServerRequiresSasl: false })
    const two = await fixture.elections(2, { ...sasl, quorumSaslPassword: 'wrong' })
    two.connections.send(1, text('x'))
    expect(await one.log.matching(/was closed/)).toContain(
      'its login by SASL of \\"two\\" failed: wrong password',
    )
    expect(await two.log.matching(/cannot be reached/)).toContain('it refused the user or the password')
    expect(one.received).toEqual([])
  })

  it('is no login at a server that does not know the password', async () => {
    await fixture.elections(1, { ...sasl, quorumSaslUsers: { two: 'another' } })
    const two = await fixture.elections(2, sasl)
    two.connections.connect(1)
    expect(await two.log.matching(/cannot be reached/)).toContain('The login at server 1 failed')
  })

  it('may be left out where it is optional', async () => {
    const one = await fixture.elections(1, { ...sasl, quorumServerRequiresSasl: false })
    const two = await fixture.elections(2, plain)
    two.connections.send(1, text('x'))
    expect(await one.messages(1)).toEqual(['2: x'])
    expect(one.authenticated).toEqual(new Set())
    expect(logins()).toEqual([0, 0, 1])
  })

  it('as the user of another server is refused', async () => {
    const one = await fixture.elections(1, { ...sasl, quorumUserOf: { '1': 'one', '2': 'one' } })
    const two = await fixture.elections(2, sasl)
    two.connections.send(1, text('x'))
    expect(await one.log.matching(/was closed/)).toContain('expected the user one for server 2, got two')
    expect(logins().slice(0, 2)).toEqual([0, 1])
    expect(one.received).toEqual([])
  })

  it('answers the bytes of Apache ZooKeeper: a challenge for an empty token', async () => {
    const one = await fixture.elections(1, sasl)
    const apache = await fixture.dial(
      nodeNetwork,
      one.address,
      Buffer.concat([hello(2), bytes(`${MAGIC} 00000000 00000000`)]),
    )
    const answer = await apache.bytes(20)
    expect(answer.slice(0, 24)).toBe(`${MAGIC}00000000`)
    expect(Buffer.from(answer.slice(32), 'hex').toString()).toMatch(/^realm="zk-quorum-sasl-md5",nonce="/)
    apache.connection.destroy()
  })

  it('accepts no bytes but the right ones, and never throws anything but a ProtocolError', () => {
    const method = new SaslLogin({
      users: new Map([['a', 'b']]),
      self: undefined,
      isOptional: false,
      userOf: new Map(),
      random: { bytes: (length) => new Uint8Array(length) },
    })
    const packet = fc
      .tuple(fc.integer({ min: -2, max: 2 }), fc.uint8Array({ maxLength: 300 }))
      .map(([status, token]) => {
        const writer = new Writer(64)
        writer.raw(bytes(MAGIC))
        writer.int(status)
        writer.buffer(token)
        return writer.take()
      })
    const chunks = fc.array(fc.oneof(packet, fc.uint8Array({ maxLength: 300 })), { maxLength: 6 })
    fc.assert(
      fc.property(chunks, (all) => {
        const written: Uint8Array[] = []
        const reader = method.accept({ write: (each: Uint8Array) => written.push(each) } as never)
        try {
          for (const chunk of all) expect(reader.push(chunk)).toBeUndefined()
        } catch (error) {
          expect(error).toMatchObject({ name: 'ProtocolError' })
        }
        expect(written.length).toBeLessThanOrEqual(2)
      }),
      { seed: 7, numRuns: 500 },
    )
  })
})

describe('a login with a shared secret', () => {
  it('with another secret is refused in both logs', async () => {
    const one = await fixture.elections(1, secret)
    const two = await fixture.elections(2, { ...plain, quorumSecret: 'y'.repeat(40) })
    two.connections.send(1, text('x'))
    expect(await one.log.matching(/was closed/)).toContain('it does not know the secret in quorumSecretFile')
    expect(await two.log.matching(/cannot be reached/)).toContain('The login at server 1 failed')
    expect(one.received).toEqual([])
  })

  it('as one server does not let another id in', async () => {
    const one = await fixture.elections(1, secret)
    const three = await fixture.elections(3, secret)
    const connection = await nodeNetwork.connect(one.address)
    const { signal } = new AbortController()
    const target = { id: 1, port: 'election', host: hostOf(1), hello: hello(2) } as const
    const rest = await three.security.open(connection, target, signal)
    const closed = new Promise<void>((resolve) =>
      connection.setHandler({ data() {}, drain() {}, closed: () => resolve() }),
    )
    await closed
    expect(rest.length).toBe(0)
    expect(await one.log.matching(/was closed/)).toContain(
      'it has logged in as server 3 and claims to be server 2',
    )
  })

  it('as one server does not let another id follow', async () => {
    const leader = await fixture.quorumPort(fixture.settings(1, secret))
    const { connection } = await connect(leader, fixture.settings(3, secret))
    const closed = new Promise<void>((resolve) =>
      connection.setHandler({ data() {}, drain() {}, closed: () => resolve() }),
    )
    connection.write(followerInfo(2))
    await closed
    expect(await leader.log.matching(/was closed/)).toContain('it has logged in as server 3 and claims')
    expect(leader.identified).toEqual([])
  })

  it('is not proved by what its own side has sent', async () => {
    const { random } = nodePlatform()
    const method = new SecretLogin({ self: 1, secret: secret.quorumSecret, random })
    const hello = Buffer.concat([
      bytes('5f7a616272610001 01 0000000000000002 0000000000000001'),
      new Uint8Array(32),
    ])
    const written: Uint8Array[] = []
    const reader = method.accept({ write: (each: Uint8Array) => written.push(each) } as never, 'election')
    expect(reader.push(hello)).toBeUndefined()
    const [challenge] = written
    expect(() => reader.push(challenge!.slice(8))).toThrow(/does not know the secret/)
    // A server that is asked to prove itself to its own connection.
    const loop = method.open(
      {
        write() {},
        read: async <T>(parse: (from: LoginBuffer) => T | undefined) => {
          const buffer = new LoginBuffer()
          buffer.push(new Uint8Array(challenge!.slice(0, 40)))
          return parse(buffer)!
        },
      } as never,
      { id: 2, port: 'election' },
    )
    await expect(loop).rejects.toThrow(/does not know the secret/)
  })

  it('recorded from another connection is refused, since the nonces differ', async () => {
    const random = nodePlatform().random
    const method = new SecretLogin({ self: 1, secret: secret.quorumSecret, random })
    const recorded: Uint8Array[] = []
    const sent: Uint8Array[] = []
    const first = method.accept({ write: (each: Uint8Array) => sent.push(each) } as never, 'election')
    const buffer = new LoginBuffer()
    const opening = new SecretLogin({ self: 2, secret: secret.quorumSecret, random }).open(
      {
        write: (each: Uint8Array) => {
          recorded.push(each.slice())
          first.push(each)
          for (const answer of sent.splice(0)) buffer.push(answer)
        },
        read: async <T>(parse: (from: LoginBuffer) => T | undefined) => parse(buffer)!,
      } as never,
      { id: 1, port: 'election' },
    )
    await opening
    const replayed = method.accept({ write() {} } as never, 'election')
    expect(replayed.push(recorded[0]!)).toBeUndefined()
    expect(() => replayed.push(recorded[1]!)).toThrow(/does not know the secret/)
  })

  it('for one port is refused on another, and one for another server too', () => {
    const random = { bytes: (length: number) => new Uint8Array(length) }
    const method = new SecretLogin({ self: 1, secret: secret.quorumSecret, random })
    const login = (code: number, to: number): Uint8Array =>
      Buffer.concat([
        bytes(`5f7a616272610001 0${code} 0000000000000002 000000000000000${to}`),
        new Uint8Array(32),
      ])
    for (const wrong of [login(2, 1), login(1, 3)])
      expect(() => method.accept({ write() {} } as never, 'election').push(wrong)).toThrow(
        /Expected a login on the election port of server 1/,
      )
  })
})
