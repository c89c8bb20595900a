// oxlint-disable-next-line no-restricted-imports -- the oracle of the pure hash is the platform's
import { createHash } from 'node:crypto'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { DigestMd5Client, DigestMd5Server, md5, nonceSource, SaslError } from '../index.ts'
import { parseDirectives, toByteText } from './directives.ts'

const bytes = (text: string): Uint8Array => new TextEncoder().encode(text)
const latin1 = (text: string): Uint8Array => Uint8Array.from(text, (character) => character.charCodeAt(0))
const text = (token: Uint8Array | undefined): string => new TextDecoder().decode(token)

const users = new Map([
  ['bob', 'se"cret'],
  ['bjørn', 'pässwörd'],
  ['łukasz', 'zażółć'],
])
const nonce = 'vtWHoWPqlcUcgVGZWNU1CXa4vxR/P5dcjEYgo2+7'
const challenge = `realm="zk-sasl-md5",nonce="${nonce}",charset=utf-8,algorithm=md5-sess`

function challengedServer(known: ReadonlyMap<string, string> = users): DigestMd5Server {
  const server = new DigestMd5Server({ users: known, nonce: () => nonce })
  expect(text(server.challenge())).toBe(challenge)
  return server
}

const evaluate = (response: string): unknown => {
  const { ok, ...rest } = challengedServer().evaluate(bytes(response))
  return ok || ('reason' in rest && rest.reason)
}

function login(username: string, password: string, more: { realm?: string } = {}): DigestMd5Client {
  return new DigestMd5Client({ username, password, cnonce: () => 'client-nonce', ...more })
}

/** Returns the response of a client to a challenge. */
async function answer(to: string, username = 'bob', password = 'se"cret'): Promise<Uint8Array> {
  const client = login(username, password)
  await client.step()
  return (await client.step(bytes(to)))!
}

describe('MD5', () => {
  it('equals that of Node', () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 300 }), (message) => {
        expect([...md5(message)]).toEqual([...createHash('md5').update(message).digest()])
      }),
      { seed: 7 },
    )
  })
})

describe('DigestMd5Client', () => {
  it.each([
    {
      service: 'imap',
      nonce: 'OA6MG9tEQGm2hh',
      cnonce: 'OA6MHXh6VqTrRk',
      response: 'd388dad90d4bbd760a152321f2143af7',
      proof: 'ea40f60335c427b5527b84dbabcdfffd',
    },
    {
      service: 'acap',
      nonce: 'OA9BSXrbuRhWay',
      cnonce: 'OA9BSuZWMSpW8m',
      response: '6084c6db3fede7352c551284490fd0fc',
      proof: '2f0b3d7c3c2e486600ef710726aa2eae',
    },
  ])('says to $service what RFC 2831 gives as an example', async (example) => {
    const host = 'elwood.innosoft.com'
    const client = new DigestMd5Client({
      username: 'chris',
      password: 'secret',
      service: example.service,
      host,
      cnonce: () => example.cnonce,
    })
    expect(await client.step()).toEqual(new Uint8Array(0))
    const response = await client.step(
      bytes(`realm="${host}",nonce="${example.nonce}",qop="auth",algorithm=md5-sess,charset=utf-8`),
    )
    expect(text(response)).toBe(
      `charset=utf-8,username="chris",realm="${host}",nonce="${example.nonce}",nc=00000001,` +
        `cnonce="${example.cnonce}",digest-uri="${example.service}/${host}",` +
        `response=${example.response},qop=auth`,
    )
    expect(await client.step(bytes(`rspauth=${example.proof}`))).toBeUndefined()
  })

  it.each([...users])(
    'logs %s in, and each side has proved that it knows the password',
    async (user, password) => {
      const [server, client] = [challengedServer(), login(user, password)]
      await client.step()
      const verdict = server.evaluate((await client.step(bytes(challenge)))!)
      expect(verdict).toMatchObject({ ok: true, user })
      expect(await client.step(verdict.ok ? verdict.rspauth : undefined)).toBeUndefined()
    },
  )

  it('uses ISO 8859-1 with a server that does not offer UTF-8', async () => {
    const old = `nonce="${nonce}",algorithm=md5-sess`
    expect(toByteText(await answer(old, 'bjørn', 'pässwörd'))).toContain('username="bjørn",nonce=')
    await expect(answer(old, 'łukasz', 'x')).rejects.toThrow(/ISO 8859-1/)
  })

  it('uses the configured realm, if the server offers it', async () => {
    const realms = `realm="a",realm="b",nonce="n",algorithm=md5-sess,charset=utf-8`
    for (const [realm, said] of [
      [undefined, 'a'],
      ['b', 'b'],
    ] as const) {
      const client = login('bob', 'x', realm === undefined ? {} : { realm })
      await client.step()
      expect(text(await client.step(bytes(realms)))).toContain(`realm="${said}"`)
    }
    const client = login('bob', 'x', { realm: 'c' })
    await client.step()
    await expect(client.step(bytes(realms))).rejects.toThrow('does not offer the realm c')
  })

  it.each([
    ['nothing', '', /offers no SASL/],
    ['text that is no list', 'bob', /Expected directives/],
    ['no nonce', 'algorithm=md5-sess', /no nonce/],
    ['two nonces', 'nonce="a",nonce="b",algorithm=md5-sess', /nonce once/],
    ['another algorithm', 'nonce="a",algorithm=sha', /md5-sess/],
    ['no qop for plain logins', 'nonce="a",algorithm=md5-sess,qop="auth-int"', /qop auth/],
    ['another charset', 'nonce="a",algorithm=md5-sess,charset=x', /charset/],
    ['more than a challenge may be', `nonce="${'a'.repeat(2048)}",algorithm=md5-sess`, /Expected directives/],
  ])('fails when the server sends %s', async (_, said, expected) => {
    await expect(answer(said)).rejects.toThrow(expected)
    await expect(answer(said)).rejects.toBeInstanceOf(SaslError)
  })

  it.each([
    ['no proof', 'realm="x"'],
    ['a wrong proof', 'rspauth=ea40f60335c427b5527b84dbabcdfffd'],
    ['a short proof', 'rspauth=ea'],
  ])('does not trust a server with %s', async (_, said) => {
    const client = login('bob', 'se"cret')
    await client.step()
    await client.step(bytes(challenge))
    await expect(client.step(bytes(said))).rejects.toThrow(/Do not trust it/)
    await expect(client.step(bytes(said))).rejects.toThrow(/over/)
  })

  it('fails with a SaslError only', async () => {
    await fc.assert(
      fc.asyncProperty(fc.uint8Array({ maxLength: 80 }), fc.boolean(), async (noise, late) => {
        const client = login('bob', 'se"cret')
        await client.step()
        if (late) await client.step(bytes(challenge))
        await expect(client.step(noise)).rejects.toBeInstanceOf(SaslError)
      }),
      { seed: 9 },
    )
  })
})

/** Responses of OpenJDK 17, and of pure-sasl 0.5.1 with kazoo 2.8, to the challenge above. */
const recorded = {
  'Java, ASCII': [
    'bob',
    'charset=utf-8,username="bob",realm="zk-sasl-md5",nonce="vtWHoWPqlcUcgVGZWNU1CXa4vxR/P5dcjEYgo2+7",nc=00000001,cnonce="5DIrNzPVXJhD8VgzKvaw7n/ealCOuRxiDKPADjWD",digest-uri="zookeeper/zk-sasl-md5",maxbuf=65536,response=373028fe18c76815924bb6b49ba2ae47,qop=auth,authzid="bob"',
  ],
  'Java, within ISO 8859-1': [
    'bjørn',
    'charset=utf-8,username="bjørn",realm="zk-sasl-md5",nonce="vtWHoWPqlcUcgVGZWNU1CXa4vxR/P5dcjEYgo2+7",nc=00000001,cnonce="Y5ffpEO4ieDctV0mugX1NFFr2wlkfws5zJg3vzYA",digest-uri="zookeeper/zk-sasl-md5",maxbuf=65536,response=5dfbf4e5627c54cea29cdc696c65f24a,qop=auth,authzid="bjørn"',
  ],
  'Java, beyond ISO 8859-1': [
    'łukasz',
    'charset=utf-8,username="łukasz",realm="zk-sasl-md5",nonce="vtWHoWPqlcUcgVGZWNU1CXa4vxR/P5dcjEYgo2+7",nc=00000001,cnonce="eIOFV64Z1c3r4S+VhoTgjWlhFBUtX8F7+hmzNoWf",digest-uri="zookeeper/zk-sasl-md5",maxbuf=65536,response=390e1e9558acafdac792b36cf631c104,qop=auth,authzid="łukasz"',
  ],
  'pure-sasl': [
    'bob',
    'qop=auth,realm="zk-sasl-md5",username="bob",nonce="vtWHoWPqlcUcgVGZWNU1CXa4vxR/P5dcjEYgo2+7",cnonce="58001203357943",nc=00000001,digest-uri="zookeeper/zk-sasl-md5",response=d6665c4ef89f6c9d71f3d6eb6d699777',
  ],
} as const
const [, java] = recorded['Java, ASCII']

describe('DigestMd5Server', () => {
  it.each(Object.entries(recorded))('accepts the recorded response of %s', (_, [user, response]) => {
    expect(challengedServer().evaluate(bytes(response))).toMatchObject({ ok: true, user })
    const others = new Map([...users].map(([name, password]) => [name, `${password}!`]))
    expect(challengedServer(others).evaluate(bytes(response))).toEqual({
      ok: false,
      reason: 'wrong password',
      user,
    })
    expect(challengedServer(new Map()).evaluate(bytes(response))).toEqual({
      ok: false,
      reason: 'unknown user',
      user,
    })
  })

  it('accepts clients that use ISO 8859-1, or UTF-8 without the charset directive', async () => {
    const without = challenge.replace('charset=utf-8,', '')
    expect(challengedServer().evaluate(await answer(without, 'bjørn', 'pässwörd'))).toMatchObject({
      user: 'bjørn',
      ok: true,
    })
    // A client that takes the bytes of UTF-8 for characters of ISO 8859-1.
    const raw = toByteText(bytes('pässwörd'))
    const known = new Map([['bob', 'pässwörd']])
    expect(challengedServer(known).evaluate(await answer(without, 'bob', raw))).toMatchObject({ ok: true })
  })

  it.each([
    ['malformed', java.replace(/response=\w+,/, '')],
    ['malformed', java.replace(/username="bob",/, '')],
    ['malformed', `${java},nonce="again"`],
    ['malformed', `${java},"`],
    ['malformed', `${java},padding=${'x'.repeat(4096)}`],
    ['malformed', ''],
    ['charset', java.replace('charset=utf-8', 'charset=latin')],
    ['realm', java.replace('realm="zk-sasl-md5"', 'realm="other"')],
    ['realm', java.replace('realm="zk-sasl-md5",', '')],
    ['nonce', java.replace('nonce="vt', 'nonce="Vt')],
    ['nonce', java.replace(/nonce="vt[^,]*,/, '')],
    ['nonce count', java.replace('nc=00000001', 'nc=00000002')],
    ['nonce count', java.replace('nc=00000001,', '')],
    ['qop', java.replace('qop=auth', 'qop=auth-int')],
    ['digest-uri', java.replace('zookeeper/', 'imap/')],
    ['wrong password', java.replace('authzid="bob"', 'authzid="root"')],
    ['wrong password', java.replace('cnonce="5', 'cnonce="6')],
    ['wrong password', java.replace('response=3', 'response=4')],
    ['unknown user', java.replace('username="bob"', 'username="eve"')],
    ['unknown user', java.replace('username="bob"', 'username="__proto__"')],
  ])('refuses for its %s: %s', (reason, response) => {
    expect(evaluate(response)).toBe(reason)
  })

  it('refuses a malformed UTF-8 name with charset=utf-8', () => {
    const response = latin1(java.replace('username="bob"', 'username="b\u00f8b"'))
    expect(challengedServer().evaluate(response)).toMatchObject({ reason: 'charset' })
  })

  it('accepts blanks, empty elements and upper-case names, as RFC 2831 allows', () => {
    expect(evaluate(`, ${java.replaceAll(',', ' ,\t').replace('username=', 'USERNAME = ')} ,, `)).toBe(true)
    expect(evaluate(java.replace('username="bob"', 'username="b\\o\\b"'))).toBe(true)
    expect(evaluate(java.replace('realm="zk-sasl-md5"', 'realm=zk-sasl-md5'))).toBe(true)
  })

  it('accepts one response per challenge, right or wrong', () => {
    const server = challengedServer()
    expect(server.evaluate(bytes(java)).ok).toBe(true)
    expect(server.evaluate(bytes(java))).toEqual({ ok: false, reason: 'out of order' })
    expect(new DigestMd5Server({ users, nonce: () => nonce }).evaluate(bytes(java)).ok).toBe(false)
  })

  it('refuses any other response, and never throws', () => {
    const meaning = (response: Uint8Array): unknown => {
      const directives = parseDirectives(toByteText(response))
      const bound = ['username', 'realm', 'nonce', 'nc', 'cnonce', 'digest-uri', 'qop', 'response', 'authzid']
      return bound.map((name) => directives?.get(name) ?? (name === 'qop' ? ['auth'] : []))
    }
    const right = bytes(java)
    fc.assert(
      fc.property(
        fc.nat(right.length),
        fc.nat(4),
        fc.oneof(fc.uint8Array({ maxLength: 4 }), fc.constantFrom(bytes('"'), bytes('\\'), bytes(','))),
        (at, removed, inserted) => {
          const changed = Uint8Array.from([...right.slice(0, at), ...inserted, ...right.slice(at + removed)])
          const { ok } = challengedServer().evaluate(changed)
          if (ok) expect(meaning(changed)).toEqual(meaning(right))
        },
      ),
      { seed: 11, numRuns: 5000 },
    )
    for (let at = 0; at < right.length; at++)
      for (let bit = 0; bit < 8; bit++) {
        const changed = right.slice()
        changed[at]! ^= 1 << bit
        if (challengedServer().evaluate(changed).ok) expect(meaning(changed)).toEqual(meaning(right))
      }
  })

  it('parses the longest responses in linear time, whatever they contain', () => {
    for (const part of ['"', '\\', '\\"', ' ', ',', 'a=', 'a="', 'a=" ', 'a="\\'])
      expect(challengedServer().evaluate(bytes(part.repeat(4096 / part.length))).ok).toBe(false)
  })
})

it('nonceSource makes nonces of 30 bytes, as Java does', () => {
  expect(nonceSource((length) => new Uint8Array(length).fill(255))()).toBe('/'.repeat(40))
})
