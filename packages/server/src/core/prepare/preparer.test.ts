import {
  ANYONE,
  CreateMode,
  ErrorCode,
  OPEN_ACL_UNSAFE,
  OpCode,
  Perms,
  Reader,
  Writer,
  type ACL,
} from '@zabra/protocol'
import { describe, expect, it, vi } from 'vitest'
import { AclRules } from '../auth/index.ts'
import { runToEnd } from '../steps.ts'
import { crcPrefix, pathCrc } from '../tree/digest.ts'
import { Tree } from '../tree/index.ts'
import type { Identity } from '../types.ts'
import { Preparer, type PreparedTxn } from './index.ts'
import { sequenceNumber } from './sequence.ts'
import {
  encodeRequest,
  failure,
  only,
  PreparerFixture,
  type RequestSpec,
} from './testing/preparer-fixture.ts'

const text = (value: string): Uint8Array => new TextEncoder().encode(value)
const sequential = (path: string): RequestSpec => ({
  op: 'create',
  path,
  flags: CreateMode.PERSISTENT_SEQUENTIAL,
})

describe('sequence numbers', () => {
  it('have ten characters, sign included', () => {
    expect([0, 42, 2_147_483_647, -1, -2_147_483_648].map(sequenceNumber)).toEqual([
      '0000000000',
      '0000000042',
      '2147483647',
      '-000000001',
      '-2147483648',
    ])
  })

  it('stay at the highest number, so that the same name is rejected', () => {
    const fixture = new PreparerFixture()
    fixture.create('/p')
    const parent = fixture.tree.find('/p')
    fixture.tree.store.columns(parent).cversion[fixture.tree.store.slot(parent)] = 2_147_483_646
    expect(fixture.apply(sequential('/p/s'))).toMatchObject({ path: '/p/s2147483646' })
    expect(fixture.apply(sequential('/p/s'))).toMatchObject({ path: '/p/s2147483647' })
    expect(fixture.apply(sequential('/p/s'))).toEqual(failure(ErrorCode.NODEEXISTS))
    expect(fixture.apply(sequential('/p/t'))).toMatchObject({ path: '/p/t2147483647' })
  })

  it('count all children created, pending ones included', () => {
    const fixture = new PreparerFixture()
    for (const path of ['/p', '/p/plain']) fixture.create(path)
    expect(fixture.prepare(sequential('/p/s'))).toMatchObject({ path: '/p/s0000000001' })
    expect(fixture.prepare(sequential('/p/s'))).toMatchObject({ path: '/p/s0000000002' })
  })
})

describe('the nodes of the users of sessions', () => {
  const server: Identity[] = [{ scheme: 'super', id: '' }]
  const user = '/zookeeper/sessions/0100000000000001'

  it.each([
    { op: 'create', path: `${user}0` },
    { op: 'setData', path: user },
    { op: 'setACL', path: user },
    { op: 'delete', path: user },
    { op: 'delete', path: '/zookeeper/sessions' },
    { op: 'setACL', path: '/zookeeper/sessions' },
  ] satisfies RequestSpec[])('refuse $op of $path to clients without access control, too', (request) => {
    const fixture = new PreparerFixture({ skipACL: true })
    fixture.identities = server
    fixture.create('/zookeeper/sessions')
    if (request.path !== '/zookeeper/sessions' || request.op !== 'delete') fixture.create(user)
    const client: Identity[] = [
      { scheme: 'ip', id: '10.0.0.1' },
      { scheme: 'digest', id: 'ada:hash' },
    ]
    for (const identities of [[], client]) {
      fixture.identities = identities
      expect(fixture.prepare(request)).toMatchObject(failure(ErrorCode.NOAUTH))
    }
    fixture.create('/zookeeper/sessions-of-mine')
    fixture.identities = [...client, ...server]
    expect(fixture.prepare({ acl: OPEN_ACL_UNSAFE, ...request })).not.toHaveProperty('err')
  })

  it('are stored however much memory access control lists take', () => {
    const fixture = new PreparerFixture({ maxAclBytes: 100 })
    const id = { scheme: 'digest', id: `ada:${'h'.repeat(1000)}` }
    fixture.apply({ op: 'create', path: '/long', acl: [{ perms: Perms.ALL, id }] })
    const acl = [{ perms: 0, id: { scheme: 'world', id: 'anyone' } }]
    expect(fixture.prepare({ op: 'create', path: '/other', acl })).toMatchObject(
      failure(ErrorCode.QUOTAEXCEEDED),
    )
    expect(fixture.prepare({ op: 'setACL', path: '/zookeeper', acl })).toMatchObject(
      failure(ErrorCode.QUOTAEXCEEDED),
    )
    fixture.identities = server
    fixture.apply({ op: 'create', path: '/zookeeper/sessions', acl })
    expect(fixture.apply({ op: 'create', path: user, acl })).toMatchObject({ path: user })
    expect(fixture.prepare({ op: 'setACL', path: user, acl })).toMatchObject({ path: user })
  })

  it('are stored whatever quota a client sets on /zookeeper', () => {
    const fixture = new PreparerFixture({ enforceQuota: true })
    fixture.create('/zookeeper/quota/zookeeper')
    fixture.create('/zookeeper/quota/zookeeper/zookeeper_limits', 'countHardLimit=1')
    fixture.create('/zookeeper/quota/zookeeper/zookeeper_stats')
    expect(fixture.prepare({ op: 'create', path: '/zookeeper/mine' })).toMatchObject(
      failure(ErrorCode.QUOTAEXCEEDED),
    )
    fixture.identities = server
    fixture.create('/zookeeper/sessions')
    expect(fixture.prepare({ op: 'create', path: user })).not.toHaveProperty('err')
  })
})

describe('quotas', () => {
  const stats = '/zookeeper/quota/q/zookeeper_stats'

  function limited(limits: string, enforceQuota = true): PreparerFixture {
    const fixture = new PreparerFixture({ enforceQuota })
    fixture.create('/q', '12345')
    fixture.create('/q/old', '678')
    fixture.create('/zookeeper/quota/q', '')
    fixture.create('/zookeeper/quota/q/zookeeper_limits', limits)
    fixture.create(stats, '')
    return fixture
  }

  const set = (fixture: PreparerFixture, path: string, data: string) =>
    fixture.apply({ op: 'setData', path, data })

  const stranger: Identity[] = [{ scheme: 'digest', id: 'eve:hash' }]
  const owner: Identity[] = [{ scheme: 'digest', id: 'bob:hash' }]

  it.each(['/q', '/q/x', '/q/absent', '/q/absent/deeper'])(
    'of %s are changed only by a client that may administer it or the deepest node above it',
    (subject) => {
      const fixture = new PreparerFixture({ quotaRequiresAdmin: true })
      const acl = [...only(Perms.ADMIN), { perms: 15, id: ANYONE }]
      for (const path of ['/q', '/q/x']) fixture.apply({ op: 'create', path, acl })
      const names = subject.split('/').slice(1)
      const folders = names.map((_, i) => `/zookeeper/quota/${names.slice(0, i + 1).join('/')}`)
      const limits = `${folders.at(-1)}/zookeeper_limits`
      const as = (identities: readonly Identity[], request: RequestSpec): unknown => {
        fixture.identities = identities
        const txn = fixture.apply(request)
        return typeof txn === 'object' && txn.type === OpCode.error ? txn.err : 0
      }
      for (const path of [...folders, limits])
        for (const [who, err] of [
          [stranger, ErrorCode.NOAUTH],
          [owner, 0],
        ] as const)
          expect(as(who, { op: 'create', path }), path).toBe(err)
      for (const request of [
        { op: 'setData', path: limits, data: 'count=1' },
        { op: 'setACL', path: limits },
        { op: 'delete', path: limits },
      ] as const) {
        expect(as(stranger, request)).toBe(ErrorCode.NOAUTH)
        expect(as(owner, request)).toBe(0)
      }
    },
  )

  it('have a common folder, whose access list is changed only by a client that may administer the root', () => {
    const fixture = new PreparerFixture({ quotaRequiresAdmin: true })
    fixture.apply({ op: 'setACL', path: '/', acl: [...only(Perms.ADMIN), { perms: 15, id: ANYONE }] })
    for (const request of [
      { op: 'setACL', path: '/zookeeper/quota' },
      { op: 'setData', path: '/zookeeper/quota', data: 'a' },
    ] as const) {
      fixture.identities = stranger
      expect(fixture.apply(request)).toEqual(failure(ErrorCode.NOAUTH))
      fixture.identities = owner
      expect(fixture.apply(request)).not.toHaveProperty('err')
    }
  })

  it('that only an administrator of the root may change leave all other nodes alone', () => {
    const fixture = new PreparerFixture({ quotaRequiresAdmin: true })
    fixture.apply({ op: 'setACL', path: '/', acl: [...only(Perms.ADMIN), { perms: 15, id: ANYONE }] })
    fixture.identities = stranger
    for (const path of ['/a', '/zookeeper/quotas', '/a-path-that-is-longer-than-that-of-the-quotas'])
      expect(fixture.create(path)).toMatchObject({ path })
  })

  it('are open to everyone without quotaRequiresAdmin', () => {
    const fixture = new PreparerFixture()
    fixture.apply({ op: 'create', path: '/q', acl: only(Perms.ALL) })
    expect(fixture.apply({ op: 'create', path: '/zookeeper/quota/q' })).toMatchObject({ type: OpCode.create })
  })

  it('count existing nodes, creations and deletions', () => {
    const fixture = limited('count=-1,bytes=-1')
    expect(fixture.dataOf(stats)).toBe('count=2,bytes=8')
    fixture.create('/q/new', '12')
    set(fixture, '/q/new', '1')
    expect(fixture.dataOf(stats)).toBe('count=3,bytes=9')
    fixture.create('/elsewhere', '123')
    expect(fixture.dataOf(stats)).toBe('count=3,bytes=9')
  })

  it('reject writes above a hard limit of nodes or bytes when they are enforced', () => {
    const fixture = limited('count=-1,bytes=-1;byteHardLimit=12,countHardLimit=3')
    expect(fixture.create('/q/a', '1234')).toMatchObject({ path: '/q/a' })
    expect(fixture.create('/q/b')).toEqual(failure(ErrorCode.QUOTAEXCEEDED))
    expect(set(fixture, '/q/a', '12345')).toEqual(failure(ErrorCode.QUOTAEXCEEDED))
    expect(set(fixture, '/q/a', '123')).toMatchObject({ type: OpCode.setData })
  })

  it('count the data of a creation, and what a change adds to data that are not applied yet', () => {
    const fixture = limited('count=-1,bytes=-1;byteHardLimit=13')
    const prepared = (request: RequestSpec): unknown => fixture.prepare(request)
    expect(prepared({ op: 'create', path: '/q/a', data: '123456' })).toEqual(failure(ErrorCode.QUOTAEXCEEDED))
    expect(prepared({ op: 'create', path: '/q/a', data: '12345' })).toMatchObject({ path: '/q/a' })
    // The usage is that of what is applied, 8 bytes, and the change adds 4.
    expect(prepared({ op: 'setData', path: '/q/a', data: '123456789' })).toMatchObject({ path: '/q/a' })
    expect(prepared({ op: 'setData', path: '/q/a', data: '12345678901234' })).toMatchObject({ path: '/q/a' })
    expect(prepared({ op: 'setData', path: '/q/a', data: '12345678901234567890' })).toEqual(
      failure(ErrorCode.QUOTAEXCEEDED),
    )
    expect(prepared({ op: 'create', path: '/q/empty' })).toMatchObject({ path: '/q/empty' })
    expect(prepared({ op: 'setData', path: '/q/empty', data: '12345' })).toMatchObject({ version: 1 })
  })

  it('report writes above a soft limit, or without enforcement, and accept them', () => {
    const soft = limited('count=1,bytes=1')
    expect(soft.create('/q/a', '1234')).toMatchObject({ path: '/q/a' })
    expect(soft.breaches).toEqual(['/q soft nodes 3 of 1'])
    expect(set(soft, '/q/a', '12345')).toMatchObject({ type: OpCode.setData })
    expect(soft.breaches.slice(1)).toEqual(['/q soft bytes 13 of 1'])
    const open = limited('count=-1,bytes=-1;byteHardLimit=1,countHardLimit=1', false)
    expect(open.create('/q/a', '1')).toMatchObject({ path: '/q/a' })
    expect(open.breaches).toEqual(['/q hard nodes 3 of 1'])
  })

  it('that cannot be parsed reject writes below them, and no others', () => {
    const fixture = limited('count=many')
    expect(fixture.create('/q/a')).toEqual(failure(ErrorCode.MARSHALLINGERROR))
    expect(fixture.create('/other')).toMatchObject({ path: '/other' })
    const open = limited('count=many', false)
    expect(open.create('/q/a')).toMatchObject({ path: '/q/a' })
    expect(open.breaches).toEqual([])
  })

  it('hide no error of the server itself', () => {
    const fixture = limited('count=1', false)
    vi.spyOn(fixture.tree, 'dataOf').mockImplementation(() => {
      throw new TypeError('broken')
    })
    expect(() => fixture.prepare({ op: 'create', path: '/q/a' })).toThrow('broken')
  })

  it.each(['limits', 'stats'])('without %s reject nothing', (missing) => {
    const fixture = limited('count=-1,bytes=-1;countHardLimit=1')
    fixture.apply({ op: 'delete', path: `/zookeeper/quota/q/zookeeper_${missing}` })
    expect(fixture.create('/q/a')).toMatchObject({ path: '/q/a' })
    expect(fixture.breaches).toEqual([])
  })

  it.each(['limits', 'stats'])(
    'belong to their subject, also where it has a child named zookeeper_%s',
    (name) => {
      const fixture = new PreparerFixture({ quotaRequiresAdmin: true })
      fixture.apply({ op: 'create', path: '/q', acl: [...only(Perms.ADMIN), { perms: 15, id: ANYONE }] })
      fixture.create(`/q/zookeeper_${name}`)
      fixture.identities = owner
      fixture.create('/zookeeper/quota/q')
      fixture.identities = stranger
      expect(fixture.create(`/zookeeper/quota/q/zookeeper_${name}`)).toEqual(failure(ErrorCode.NOAUTH))
    },
  )
})

describe('the preparer', () => {
  it('uses no zxid for a request that cannot be decoded, except a multi', () => {
    const fixture = new PreparerFixture()
    const { create, create2, createTTL, setData, setACL, reconfig, multi } = OpCode
    for (const type of [create, create2, createTTL, OpCode.delete, setData, setACL, reconfig])
      expect(fixture.prepareBytes(type, Uint8Array.of(1))).toBe(ErrorCode.MARSHALLINGERROR)
    expect(fixture.prepareBytes(multi, Uint8Array.of(1))).toEqual(failure(ErrorCode.MARSHALLINGERROR))
  })

  it('uses no zxid for an operation that is no write, and hides no error of the server itself', () => {
    const fixture = new PreparerFixture()
    expect(fixture.prepareBytes(OpCode.exists, new Uint8Array(40))).toBe(ErrorCode.MARSHALLINGERROR)
    const request = { sessionId: 5n, type: OpCode.setData, identities: [] }
    expect(() => fixture.preparer.prepare(request, {} as Reader, 1, 1)).toThrow(TypeError)
  })

  it('asks for a global session where a write creates an ephemeral node, only there', () => {
    const asked: [bigint, boolean][] = []
    const tree = new Tree({ extendedTypes: true, digest: false })
    const preparer = new Preparer({
      tree,
      acls: new AclRules({ skipACL: false }),
      sessions: { check: (session, global) => (asked.push([session, global]), 0) },
      enforceQuota: false,
      reconfigEnabled: false,
    })
    const asks: RequestSpec[] = [
      { op: 'create', path: '/a' },
      { op: 'create', path: '/e', flags: CreateMode.EPHEMERAL },
      { op: 'setData', path: '/a' },
      { op: 'delete', path: '/a' },
    ]
    for (const [index, ask] of asks.entries()) {
      const { type, body } = encodeRequest(ask)
      const request = { sessionId: BigInt(index), type, identities: [] }
      expect(preparer.prepare(request, new Reader(body), index + 1, 1)).toMatchObject({ digest: undefined })
    }
    expect(asked).toEqual([
      [0n, false],
      [1n, true],
      [2n, false],
      [3n, false],
    ])
  })

  it('refuses writes beyond limits without a listener for warnings', () => {
    const tree = new Tree({ extendedTypes: true, digest: false })
    let isMemoryFull = false
    const preparer = new Preparer({
      tree,
      acls: new AclRules({ skipACL: false }),
      sessions: { check: () => 0 },
      enforceQuota: false,
      reconfigEnabled: false,
      maxAclBytes: -1,
      isMemoryFull: () => isMemoryFull,
    })
    const prepared = (ask: RequestSpec): object => {
      const { type, body } = encodeRequest(ask)
      const zxid = tree.lastZxid + 1
      const made = preparer.prepare({ sessionId: 5n, type, identities: [] }, new Reader(body), zxid, 1)
      const { txn } = made as PreparedTxn
      tree.apply({ sessionId: 5n, cxid: 0, zxid, time: 1 }, txn)
      preparer.forgetApplied(zxid)
      return txn
    }
    const limits = '/zookeeper/quota/q'
    for (const path of ['/q', limits]) prepared({ op: 'create', path })
    prepared({ op: 'create', path: `${limits}/zookeeper_limits`, data: 'count=1' })
    prepared({ op: 'create', path: `${limits}/zookeeper_stats` })
    expect(prepared({ op: 'create', path: '/q/a' })).toMatchObject({ path: '/q/a' })
    const refused = failure(ErrorCode.QUOTAEXCEEDED)
    expect(prepared({ op: 'create', path: '/a', acl: only(Perms.ALL) })).toEqual(refused)
    isMemoryFull = true
    expect(prepared({ op: 'create', path: '/a' })).toEqual(refused)
  })

  it('prepares a request in steps as it prepares it at once', () => {
    const inSteps = (fixture: PreparerFixture, type: number, body: Uint8Array): PreparedTxn | number => {
      const request = { sessionId: 5n, type, identities: [] }
      return runToEnd(fixture.preparer.prepareInSteps(request, new Reader(body), fixture.zxid + 1, 1))
    }
    const asks: (RequestSpec | RequestSpec[])[] = [
      { op: 'create', path: '/a' },
      { op: 'create', path: null },
      { op: 'setData', path: '/none' },
      [{ op: 'create', path: '/a' }],
    ]
    for (const ask of asks) {
      const [stepped, whole] = [new PreparerFixture(), new PreparerFixture()]
      const { type, body } = encodeRequest(ask)
      expect(inSteps(stepped, type, body.slice())).toMatchObject({ txn: whole.prepare(ask) })
    }
    const fixture = new PreparerFixture()
    expect(inSteps(fixture, OpCode.create, Uint8Array.of(1))).toBe(ErrorCode.MARSHALLINGERROR)
    expect(inSteps(fixture, OpCode.multi, Uint8Array.of(1))).toMatchObject({ digest: undefined })
    const broken = fixture.preparer.prepareInSteps(
      { sessionId: 5n, type: OpCode.create, identities: [] },
      {} as Reader,
      1,
      1,
    )
    expect(() => runToEnd(broken)).toThrow(TypeError)
  })

  it('hands on the checksum from which that of a changed node is computed', () => {
    const fixture = new PreparerFixture()
    const { type, body } = encodeRequest({ op: 'create', path: '/a', data: 'x' })
    const request = { sessionId: 5n, type, identities: [] }
    const { crc } = fixture.prepareWith(request, body, 1) as PreparedTxn
    expect(crc).toBe(crcPrefix(pathCrc('/a', '/', 0), text('x')))
  })

  it('refuses a list with more than 2 MiB of identities', () => {
    const fixture = new PreparerFixture()
    const listOf = (count: number): ACL[] =>
      Array.from({ length: count }, (_, n) => ({
        perms: 31,
        id: { scheme: 'digest', id: `${n}:`.padEnd(4090, 'x') },
      }))
    expect(fixture.prepare({ op: 'create', path: '/a', acl: listOf(512) })).toMatchObject({ path: '/a' })
    expect(fixture.prepare({ op: 'create', path: '/b', acl: listOf(513) })).toEqual(
      failure(ErrorCode.INVALIDACL),
    )
  })

  it('uses a zxid for the failed request of a closed session', () => {
    const fixture = new PreparerFixture()
    fixture.open = false
    expect(fixture.create('/a')).toEqual(failure(ErrorCode.SESSIONEXPIRED))
  })

  it('rejects a reconfiguration of a standalone server', () => {
    const w = new Writer()
    for (const list of [null, null, null]) w.string(list)
    w.long(-1n)
    const prepared = new PreparerFixture().prepareBytes(OpCode.reconfig, w.take())
    expect(prepared).toEqual(failure(ErrorCode.RECONFIGDISABLED))
  })

  it('copies the data of a request, of the parts of a multi and of a setData, whose bytes change later', () => {
    const fixture = new PreparerFixture()
    expect(fixture.create('/a', 'kept')).toMatchObject({ path: '/a', data: text('kept') })
    const [set, create] = [
      { op: 'setData', path: '/a', data: 'kept' },
      { op: 'create', path: '/a/b', data: 'too' },
    ] as const
    const txns = [
      { path: '/a', data: text('kept') },
      { path: '/a/b', data: text('too') },
    ]
    expect(fixture.prepare([set, create])).toMatchObject({ txns })
    expect(fixture.prepare(set)).toMatchObject({ path: '/a', data: text('kept') })
  })

  it('validates against pending changes until they are reset', () => {
    const fixture = new PreparerFixture()
    const create = { op: 'create', path: '/a' } as const
    expect(fixture.prepare(create)).toMatchObject({ path: '/a' })
    expect(fixture.prepare(create)).toEqual(failure(ErrorCode.NODEEXISTS))
    fixture.preparer.reset()
    expect(fixture.prepare(create)).toMatchObject({ path: '/a' })
  })
})

it('a new access control list is refused while the others take too much memory, known ones and deletes are not', () => {
  const fixture = new PreparerFixture({ maxAclBytes: 100_000 })
  const long = (user: number) => [
    { perms: Perms.ALL, id: { scheme: 'digest', id: `${user}:${'h'.repeat(30_000)}` } },
  ]
  for (const user of [1, 2]) fixture.apply({ op: 'create', path: `/${user}`, acl: long(user) })
  expect(fixture.prepare({ op: 'create', path: '/3', acl: long(3) })).toEqual(
    failure(ErrorCode.QUOTAEXCEEDED),
  )
  expect(fixture.prepare({ op: 'setACL', path: '/1', acl: long(3) })).toMatchObject({ type: OpCode.error })
  expect(fixture.breaches).toContain('access lists')
  expect(fixture.apply({ op: 'create', path: '/4', acl: long(2) })).toMatchObject({ path: '/4' })
  expect(fixture.create('/5')).toMatchObject({ path: '/5' })
  fixture.apply({ op: 'delete', path: '/1' })
  expect(fixture.apply({ op: 'create', path: '/3', acl: long(3) })).toMatchObject({ path: '/3' })
})

it('a new access control list is accepted while the others take exactly the memory that they may', () => {
  const { bytes } = new PreparerFixture().tree.acls
  const fixture = new PreparerFixture({ maxAclBytes: bytes })
  expect(fixture.apply({ op: 'create', path: '/a', acl: only(Perms.READ) })).toMatchObject({ path: '/a' })
  expect(fixture.prepare({ op: 'create', path: '/b', acl: only(Perms.ALL) })).toEqual(
    failure(ErrorCode.QUOTAEXCEEDED),
  )
})

it('while the memory is full, writes that make the data larger are refused, and all others are not', () => {
  let isFull = false
  const fixture = new PreparerFixture({ isMemoryFull: () => isFull })
  const sized = (length: number) => 'x'.repeat(length)
  fixture.apply({ op: 'create', path: '/a', data: sized(100) })
  isFull = true
  const refused = failure(ErrorCode.QUOTAEXCEEDED)
  for (const op of ['create', 'create2', 'createContainer'] as const)
    expect(fixture.prepare({ op, path: '/b' })).toEqual(refused)
  expect(fixture.prepare({ op: 'setData', path: '/a', data: sized(101) })).toEqual(refused)
  expect(fixture.breaches).toContain('memory')
  for (const length of [100, 99])
    expect(fixture.apply({ op: 'setData', path: '/a', data: sized(length) })).toMatchObject({ path: '/a' })
  expect(fixture.apply({ op: 'delete', path: '/a' })).toMatchObject({ path: '/a' })
  isFull = false
  expect(fixture.create('/b')).toMatchObject({ path: '/b' })
})

it('a counter of children that has run out stays in the pending parent as in the tree', () => {
  const fixture = new PreparerFixture()
  fixture.create('/p')
  const { store } = fixture.tree
  const node = store.find('/p')
  store.columns(node).cversion[store.slot(node)] = 2 ** 31 - 1
  const next = (): unknown =>
    fixture.prepare({ op: 'create', path: '/p/s-', flags: CreateMode.PERSISTENT_SEQUENTIAL })
  expect(next()).toMatchObject({ path: '/p/s-2147483647' })
  expect(next()).toEqual(failure(ErrorCode.NODEEXISTS))
  expect(fixture.prepare({ op: 'create2', path: '/p/other' })).toMatchObject({ type: OpCode.create2 })
})
