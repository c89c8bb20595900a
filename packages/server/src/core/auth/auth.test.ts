import { digestId, OPEN_ACL_UNSAFE, Perms, type ACL } from '@zabra/protocol'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import type { Identity } from '../types.ts'
import {
  AclRules,
  aclVisibility,
  authenticate,
  canonicalIp,
  ipMatches,
  isIpExpression,
  maskDigests,
  saslScheme,
  userName,
  addIdentities,
} from './index.ts'

const rules = new AclRules({ skipACL: false })
const entry = (scheme: string | null, id: string | null, perms: number = Perms.ALL): ACL => ({
  perms,
  id: { scheme, id },
})
const bob: Identity = { scheme: 'digest', id: digestId(new TextEncoder().encode('bob:secret')) }
const local: Identity = { scheme: 'ip', id: '127.0.0.1' }

describe('AclRules.allows', () => {
  it('allows what an entry with a matching identity and the permission allows', () => {
    const acl = [
      entry('world', 'anyone', Perms.READ),
      entry('digest', bob.id, Perms.WRITE),
      entry('ip', '127.0.0.0/8', Perms.DELETE),
    ]
    expect(rules.allows(acl, Perms.READ, [])).toBe(true)
    expect(rules.allows(acl, Perms.WRITE, [])).toBe(false)
    expect(rules.allows(acl, Perms.WRITE, [bob])).toBe(true)
    expect(rules.allows(acl, Perms.DELETE, [local])).toBe(true)
    expect(rules.allows(acl, Perms.ADMIN, [bob, local])).toBe(false)
  })

  it('allows nothing to others of the scheme, to the same id of another scheme, and by an id that reads anyone', () => {
    const acl = [entry('digest', bob.id), entry('sasl', 'anyone')]
    for (const identity of [
      { scheme: 'digest', id: 'eve:hash' },
      { scheme: 'sasl', id: bob.id },
      { scheme: 'digest', id: 'anyone' },
    ])
      expect(rules.allows(acl, Perms.READ, [identity]), identity.id).toBe(false)
  })

  it('allows everything for the super user, an empty ACL and with skipACL', () => {
    expect(rules.allows([entry('digest', 'x:y', Perms.READ)], Perms.ALL, [{ scheme: 'super', id: '' }])).toBe(
      true,
    )
    expect(rules.allows([], Perms.ALL, [])).toBe(true)
    expect(new AclRules({ skipACL: true }).allows([entry('digest', 'x:y')], Perms.WRITE, [])).toBe(true)
  })

  it('uses an additional scheme, and ignores entries of unknown schemes', () => {
    const x509 = {
      isValid: () => true,
      matches: (proved: string, id: string) => proved === id,
      isAuthenticated: true,
    }
    const more = new AclRules({ skipACL: false, schemes: new Map([['x509', x509]]) })
    const identity = { scheme: 'x509', id: 'CN=bob' }
    expect(more.allows([entry('x509', 'CN=bob')], Perms.READ, [identity])).toBe(true)
    expect(rules.allows([entry('x509', 'CN=bob')], Perms.READ, [identity])).toBe(false)
    expect(more.allows([entry('digest', bob.id)], Perms.READ, [bob])).toBe(true)
    expect(more.allows([entry('ip', '127.0.0.0/8')], Perms.READ, [local])).toBe(true)
  })
})

describe('a long list', () => {
  const many = (count: number, id: (i: number) => ACL): ACL[] =>
    Array.from({ length: count }, (_, i) => id(i))
  const schemes = new Map([['sasl', saslScheme]])
  // Entries and identities that allow everything are few: lists with them say nothing of the others.
  const usual = 30
  const anyEntry = fc.record({
    perms: fc.integer({ min: 0, max: Perms.ALL }),
    id: fc.oneof(
      {
        weight: usual,
        arbitrary: fc.record({
          scheme: fc.constantFrom('digest', 'sasl', 'kerberos'),
          id: fc.constantFrom('a', 'b', 'c', 'd', 'anyone', null),
        }),
      },
      {
        weight: usual,
        arbitrary: fc.record({
          scheme: fc.constant('ip'),
          id: fc.constantFrom('10.0.0.0/8', '10.0.0.1', '10.2.0.0/16', 'x', null),
        }),
      },
      {
        weight: 1,
        arbitrary: fc.record({ scheme: fc.constant('world'), id: fc.constantFrom('anyone', 'noone') }),
      },
      { weight: 1, arbitrary: fc.constant({ scheme: null, id: null }) },
    ),
  })
  const identity = fc.oneof(
    {
      weight: usual,
      arbitrary: fc.record({
        scheme: fc.constantFrom('digest', 'sasl', 'kerberos'),
        id: fc.constantFrom('a', 'b', 'e', ''),
      }),
    },
    {
      weight: usual,
      arbitrary: fc.record({ scheme: fc.constant('ip'), id: fc.constantFrom('10.0.0.1', '10.1.1.1', '::1') }),
    },
    { weight: 1, arbitrary: fc.constantFrom({ scheme: 'super', id: '' }, { scheme: 'sasl', id: 'super' }) },
  )

  it('allows the same as its entries one by one', () => {
    const mixed = new AclRules({ skipACL: false, schemes })
    fc.assert(
      fc.property(
        fc.array(anyEntry, { minLength: 9, maxLength: 30 }),
        fc.array(identity, { maxLength: 4 }),
        fc.integer({ min: 1, max: Perms.ALL }),
        (acl, identities, wanted) => {
          const one = acl.some((part) => mixed.allows([part], wanted, identities))
          expect(mixed.allows(acl, wanted, identities)).toBe(one)
          expect(mixed.allows(acl, wanted, identities)).toBe(one)
        },
      ),
    )
  })

  it('grants an id what all of its entries do', () => {
    const acl = [...many(200, (i) => entry('digest', `u${i}:x`)), entry('digest', bob.id, Perms.READ)]
    const more = [...acl, entry('digest', bob.id, Perms.WRITE)]
    for (const [perms, allowed] of [
      [Perms.READ, true],
      [Perms.WRITE, true],
      [Perms.ADMIN, false],
    ] as const)
      expect(rules.allows(more, perms, [bob]), String(perms)).toBe(allowed)
  })

  it('allows users of SASL, among them super, what their own entries and all entries do', () => {
    const mixed = new AclRules({ skipACL: false, schemes })
    const users = many(200, (i) => entry('sasl', `u${i}`, i === 7 ? Perms.WRITE : Perms.READ))
    const allowed = (id: string): boolean => mixed.allows(users, Perms.WRITE, [{ scheme: 'sasl', id }])
    expect(['u7', 'u8', 'super', 'eve'].map(allowed)).toEqual([true, false, true, false])
  })

  it('is read once for many checks with the same identities', () => {
    const acl = many(1000, (i) => entry('ip', `10.0.${i >> 8}.${i & 255}`))
    let reads = 0
    const counted = acl.map(({ perms, id }) => ({
      perms,
      get id() {
        reads++
        return id
      },
    }))
    const identities = [...many(99, (i) => entry('digest', `u${i}:x`)).map(({ id }) => id as Identity), local]
    for (let i = 0; i < 100; i++) expect(rules.allows(counted, Perms.READ, identities)).toBe(false)
    expect(reads).toBeLessThan(3000)
  })

  it('is compiled once, however many others are checked in turn', () => {
    const lists = many(300, (n) => entry('ip', `10.${n >> 8}.${n & 255}`)).map(({ id }) =>
      many(1000, (i) => entry('ip', `${id.id}.${i & 255}`)),
    )
    const before = rules.entriesVisited
    const identities = [local]
    for (let round = 0; round < 3; round++)
      for (const list of lists) expect(rules.allows(list, Perms.READ, identities)).toBe(false)
    expect(rules.entriesVisited - before).toBe(300_000)
    expect(lists[0]).toEqual([...lists[0]!])
  })

  it('is one of few entries too, where these are compared with many identities', () => {
    const few = many(8, (i) => entry('digest', `u${i}:x`))
    const identities = Array.from({ length: 99 }, (_, i) => ({ scheme: 'digest', id: `v${i}:x` }))
    const before = rules.entriesVisited
    expect(rules.allows(few, Perms.READ, identities)).toBe(false)
    expect(rules.allows(few, Perms.READ, [...identities, { scheme: 'digest', id: 'u7:x' }])).toBe(true)
    expect(rules.entriesVisited - before).toBe(9)
  })

  it('of 200 entries or more is reported when it is compiled, once for each set of rules', () => {
    let long = 0
    const onLongList = (): void => void long++
    const two = [1, 2].map(() => new AclRules({ skipACL: false, onLongList })) as [AclRules, AclRules]
    const digests = many(200, (i) => entry('digest', `u${i}:x`))
    for (const one of two) expect(one.allows(digests.slice(1), Perms.READ, [bob])).toBe(false)
    expect(long).toBe(0)
    for (const one of two) for (const who of [bob, local]) one.allows(digests, Perms.READ, [who])
    expect(long).toBe(2)
  })

  it('is accepted with 1,000 entries and refused with more, those that auth entries stand for included', () => {
    const digests = many(1001, (i) => entry('digest', `u${i}:x`))
    const identities = Array.from({ length: 100 }, (_, i) => ({ scheme: 'digest', id: `u${i}:x` }))
    expect(rules.accept(digests.slice(1), [])).toHaveLength(1000)
    expect(rules.accept(digests, [])).toBe('invalid')
    const auth = many(11, (i) => entry('auth', '', i))
    expect(rules.accept(auth.slice(1), identities)).toHaveLength(1000)
    expect(rules.accept(auth, identities)).toBe('invalid')
  })
})

describe('AclRules.accept', () => {
  it('removes duplicates and keeps the order', () => {
    const acl = [entry('ip', '10.0.0.1'), entry('world', 'anyone', Perms.READ), entry('ip', '10.0.0.1')]
    expect(rules.accept(acl, [])).toEqual([entry('ip', '10.0.0.1'), entry('world', 'anyone', Perms.READ)])
  })

  it('replaces auth by the authenticated identities, without the address', () => {
    const eve = { scheme: 'digest', id: 'eve:hash' }
    expect(rules.accept([entry('auth', '', Perms.WRITE)], [local, bob, eve])).toEqual([
      entry('digest', bob.id, Perms.WRITE),
      entry('digest', 'eve:hash', Perms.WRITE),
    ])
    expect(rules.accept([entry('auth', null)], [local])).toBe('invalid')
    expect(rules.accept([entry('auth', '')], [{ scheme: 'super', id: '' }, bob])).toEqual([
      entry('digest', bob.id),
    ])
  })

  it('returns the open list itself, which most nodes share', () => {
    expect(rules.accept(OPEN_ACL_UNSAFE, [])).toBe(OPEN_ACL_UNSAFE)
  })

  it('takes no invalid entry for the duplicate of another one', () => {
    expect(rules.accept([entry('digest', 'x 1 y:z'), entry('digest 1 x', 'y:z')], [])).toBe('invalid')
    expect(rules.accept([entry('digest', 'x:y'), entry(null, 'x:y')], [])).toBe('invalid')
    const withSasl = new AclRules({ skipACL: false, schemes: new Map([['sasl', saslScheme]]) })
    expect(withSasl.accept([entry('sasl', 'null'), entry('sasl', null)], [])).toBe('null id')
  })

  it.each([
    ['no list', null],
    ['an empty list', []],
    ['a null scheme', [entry(null, 'x')]],
    ['an unknown scheme', [entry('kerberos', 'x')]],
    ['super, which no entry may have', [entry('super', '')]],
    ['world with another id', [entry('world', 'somebody')]],
    ['a digest without a hash', [entry('digest', 'bob')]],
    ['a digest with three parts', [entry('digest', 'bob:a:b')]],
    ['an address that is none', [entry('ip', '300.1.1.1')]],
    ['one bad entry among good ones', [...OPEN_ACL_UNSAFE, entry('ip', 'x')]],
  ])('is refused for %s', (_, acl) => {
    expect(rules.accept(acl, [bob])).toBe('invalid')
  })

  it('reports a null id apart from other errors, since Apache cannot decode it', () => {
    expect(rules.accept([entry('digest', null)], [])).toBe('null id')
  })
})

describe('aclVisibility', () => {
  const acl = [entry('digest', 'bob:hash', Perms.READ), entry('ip', '1.2.3.4', Perms.ADMIN)]
  it('is none without READ or ADMIN, masked with READ, full with ADMIN', () => {
    expect(aclVisibility(rules, acl, [])).toBe('none')
    expect(aclVisibility(rules, acl, [{ scheme: 'digest', id: 'bob:hash' }])).toBe('masked')
    expect(aclVisibility(rules, acl, [{ scheme: 'ip', id: '1.2.3.4' }])).toBe('full')
    const others = [entry('ip', '::1', Perms.ADMIN), entry('sasl', 'a:b'), entry('digest', null)]
    expect(maskDigests([...acl, ...others])).toEqual([
      entry('digest', 'bob:x', Perms.READ),
      acl[1],
      ...others,
    ])
  })
})

describe('authenticate', () => {
  const options = { remoteIp: '10.1.2.3', superDigest: bob.id }
  const secret = new TextEncoder().encode('bob:secret')
  it('returns the digest identity, and that of the super user for its digest', () => {
    expect(authenticate('digest', secret, { ...options, superDigest: undefined })).toEqual([bob])
    expect(authenticate('digest', secret, options)).toEqual([bob, { scheme: 'super', id: '' }])
    expect(authenticate('ip', null, options)).toEqual([{ scheme: 'ip', id: '10.1.2.3' }])
  })

  it.each(['world', 'auth', 'super', 'sasl', 'x509', '', null])('refuses the scheme %s', (scheme) => {
    expect(authenticate(scheme, secret, options)).toBeUndefined()
  })

  it('refuses null credentials for digest', () => {
    expect(authenticate('digest', null, options)).toBeUndefined()
  })

  it('addIdentities adds each identity once', () => {
    const once = addIdentities([local], [bob])
    expect(addIdentities(once, [bob])).toBe(once)
    const others = [
      { scheme: 'digest', id: 'eve:hash' },
      { scheme: 'sasl', id: bob.id },
    ]
    expect(addIdentities(once, [bob, ...others])).toEqual([local, bob, ...others])
    expect(once.map(userName)).toEqual(['127.0.0.1', 'bob'])
    expect(userName({ scheme: 'super', id: 'x' })).toBe('')
  })
})

describe('addresses', () => {
  it.each([
    ['192.168.1.7', '192.168.1.7', true],
    ['192.168.1.7', '192.168.1.0/24', true],
    ['192.168.2.7', '192.168.1.0/24', false],
    ['192.168.1.130', '192.168.1.128/25', true],
    ['192.168.1.127', '192.168.1.128/25', false],
    ['1.2.3.4', '0.0.0.0/0', true],
    ['2001:db8:0:0:0:0:0:1', '2001:db8::/32', true],
    ['2001:db9:0:0:0:0:0:1', '2001:db8::/32', false],
    ['0:0:0:0:0:0:0:1', '::1', true],
    ['1.2.3.4', '::/0', false],
  ])('%s lies in %s: %s', (address, expression, lies) => {
    expect(ipMatches(address, expression)).toBe(lies)
  })

  it.each([
    '',
    '1.2.3',
    '1.2.3.4.5',
    '1.2.3.256',
    'a.b.c.d',
    '1.2.3.4/33',
    '1.2.3.4/-1',
    '1.2.3.4/',
    ':::',
    '1::2::3',
    '::/129',
    '12345::',
  ])('the expression %j is none', (expression) => {
    expect(isIpExpression(expression)).toBe(false)
  })

  it.each([
    ['::ffff:10.0.0.1', '10.0.0.1'],
    ['10.0.0.1', '10.0.0.1'],
    ['::1', '0:0:0:0:0:0:0:1'],
    ['fe80::1%eth0', 'fe80:0:0:0:0:0:0:1'],
    ['2001:DB8::A', '2001:db8:0:0:0:0:0:a'],
  ])('%s is written %s', (host, canonical) => {
    expect(canonicalIp(host)).toBe(canonical)
  })
})
