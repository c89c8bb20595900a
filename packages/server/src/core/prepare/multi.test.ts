import { runToEnd } from '../steps.ts'
import {
  concatBytes,
  CreateMode,
  ErrorCode,
  OPEN_ACL_UNSAFE,
  OpCode,
  Perms,
  writeMultiHeader,
  Writer,
} from '@zabra/protocol'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import {
  PreparerFixture,
  BOB,
  encodeRequest,
  failure,
  only,
  type RequestSpec,
} from './testing/preparer-fixture.ts'

const SEQUENTIAL = CreateMode.PERSISTENT_SEQUENTIAL
const NOT_TRIED = failure(ErrorCode.RUNTIMEINCONSISTENCY)
const create = (path: string, flags: number = CreateMode.PERSISTENT): RequestSpec => ({
  op: 'create',
  path,
  flags,
})
const multi = (...txns: object[]): object => ({ type: OpCode.multi, txns })

describe('a multi', () => {
  it('whose access control lists name more than 2 MiB of identities is refused, others are not', () => {
    const fixture = new PreparerFixture()
    fixture.identities = Array.from({ length: 4 }, (_, i) => ({ scheme: 'digest', id: `${i}`.repeat(4090) }))
    const auth = [{ perms: Perms.ALL, id: { scheme: 'auth', id: '' } }]
    const lastOf = (name: string, count: number): unknown => {
      const parts = Array.from({ length: count }, (_, i): RequestSpec => ({
        op: 'create',
        path: `/${name}${i}`,
        acl: auth,
      }))
      return (fixture.prepare(parts) as unknown as { txns: object[] }).txns.at(-1)
    }
    expect(lastOf('a', 128)).toMatchObject({ path: '/a127' })
    expect(lastOf('b', 128)).toMatchObject({ path: '/b127' })
    expect(lastOf('c', 129)).toEqual(failure(ErrorCode.INVALIDACL))
  })

  it('validates each part against the changes of the parts before', () => {
    const fixture = new PreparerFixture()
    const txn = fixture.apply([
      create('/a'),
      { op: 'setData', path: '/a', data: 'x', version: 0 },
      { op: 'check', path: '/a', version: 1 },
      { op: 'delete', path: '/a', version: 1 },
      create('/s', SEQUENTIAL),
      create('/s', SEQUENTIAL),
    ])
    expect(txn).toMatchObject(
      multi(
        { path: '/a' },
        { version: 1 },
        { version: 2 },
        { path: '/a' },
        { path: '/s0000000001' },
        { path: '/s0000000002' },
      ),
    )
    expect(fixture.tree.matches(fixture.digest!)).toBe(true)
  })

  it('without parts succeeds', () => {
    expect(new PreparerFixture().prepare([])).toEqual(multi())
  })

  it('that fails lists no error for the parts before, the error, and "not tried" for the parts after', () => {
    const txn = new PreparerFixture().prepare([
      create('/e', CreateMode.EPHEMERAL),
      create('/e/x'),
      create('/b'),
      { op: 'delete', path: '/none' },
    ])
    expect(txn).toMatchObject(
      multi(
        { type: OpCode.create, path: '/e' },
        failure(ErrorCode.NOCHILDRENFOREPHEMERALS),
        NOT_TRIED,
        NOT_TRIED,
      ),
    )
  })

  it('that fails after its first step has a result for every part', () => {
    const asks = Array.from({ length: 1000 }, (_, n) => create(n === 700 ? '/none/x' : `/n${n}`))
    const { txns } = new PreparerFixture().prepare(asks) as unknown as { txns: object[] }
    expect(txns).toHaveLength(1000)
    expect(txns.slice(699, 702)).toMatchObject([{ path: '/n699' }, failure(ErrorCode.NONODE), NOT_TRIED])
    expect(txns[999]).toEqual(NOT_TRIED)
  })

  it('with a last part that cannot be decoded changes nothing', () => {
    const fixture = new PreparerFixture()
    expect(fixture.prepare([create('/a'), { op: 'setACL', path: '/a' }])).toEqual(
      failure(ErrorCode.MARSHALLINGERROR),
    )
    expect(fixture.preparer.pendingNodes).toBe(0)
  })

  it.each([OpCode.getData, OpCode.getChildren])(
    'with a read among its parts is refused as a whole: %d',
    (type) => {
      const fixture = new PreparerFixture()
      const [before, after] = ['/a', '/b'].map((path) => encodeRequest([create(path)]).body)
      const read = new Writer()
      writeMultiHeader(read, { type, done: false, err: -1 })
      read.string('/')
      read.bool(true)
      // The end of a multi is a header of nine bytes.
      const body = concatBytes([before!.subarray(0, -9), read.take(), after!])
      expect(fixture.prepareBytes(OpCode.multi, body)).toEqual(failure(ErrorCode.MARSHALLINGERROR))
      expect(fixture.preparer.pendingNodes).toBe(0)
    },
  )

  it('that fails leaves nodes, versions, sequence numbers, digest and pending changes as they were', () => {
    const fixture = new PreparerFixture()
    fixture.apply(create('/p'))
    // These two are pending while the multi fails.
    const before = [
      fixture.prepare(create('/p/s', SEQUENTIAL)),
      fixture.prepare({ op: 'setData', path: '/p', data: 'x' }),
    ]
    const digest = fixture.digest
    const waiting = fixture.preparer.pendingNodes
    const failed = fixture.prepare([
      { op: 'setData', path: '/p', data: 'lost', version: 1 },
      create('/p/s', SEQUENTIAL),
      { op: 'delete', path: '/p/s0000000000' },
      create('/other'),
      { op: 'check', path: '/none' },
    ])
    expect(failed).toMatchObject({ txns: [{}, {}, {}, {}, failure(ErrorCode.NONODE)] })
    expect(fixture.digest).toEqual(digest)
    expect(fixture.preparer.pendingNodes).toBe(waiting)
    const after = [
      fixture.prepare(create('/p/s', SEQUENTIAL)),
      fixture.prepare({ op: 'setData', path: '/p', data: 'y', version: 1 }),
      fixture.prepare({ op: 'delete', path: '/p/s0000000000' }),
      fixture.prepare(create('/other')),
    ]
    expect(after).toMatchObject([
      { path: '/p/s0000000001' },
      { version: 2 },
      { path: '/p/s0000000000' },
      { path: '/other' },
    ])
    let zxid = 1
    for (const txn of [...before, failed, ...after]) {
      if (typeof txn === 'number') throw new Error(`The request could not be decoded: ${txn}`)
      fixture.tree.apply({ sessionId: 5n, cxid: 0, zxid: ++zxid, time: 1 }, txn)
      fixture.preparer.forgetApplied(zxid)
    }
    expect(fixture.tree.matches(fixture.digest!)).toBe(true)
    expect(fixture.preparer.pendingNodes).toBe(0)
  })

  it('that fails changes nothing, even if its parts change the same nodes repeatedly', () => {
    const path = fc.constantFrom('/a', '/b', '/a/c', '/a/d')
    const flags = fc.constantFrom(CreateMode.PERSISTENT, CreateMode.EPHEMERAL, SEQUENTIAL)
    const ask: fc.Arbitrary<RequestSpec> = fc.oneof(
      fc.record({ op: fc.constant('create' as const), path, flags, data: fc.constantFrom('x', 'yy') }),
      fc.record({ op: fc.constant('delete' as const), path }),
      fc.record({ op: fc.constant('setData' as const), path, data: fc.constantFrom('', 'z') }),
    )
    const asks = fc.array(ask, { maxLength: 12 })
    fc.assert(
      fc.property(asks, asks, asks, asks, (applied, waiting, parts, after) => {
        const [one, other] = [new PreparerFixture(), new PreparerFixture()]
        for (const fixture of [one, other]) {
          for (const each of applied) fixture.apply(each)
          for (const each of waiting) fixture.prepare(each)
        }
        one.prepare([...parts, { op: 'check', path: '/none' }])
        other.prepare({ op: 'delete', path: '/none' })
        for (const each of after) expect(one.prepare(each)).toEqual(other.prepare(each))
        expect(one.preparer.pendingNodes).toBe(other.preparer.pendingNodes)
        const ends = [one, other].map(({ preparer, zxid }) => runToEnd(preparer.closeSession(5n, zxid + 1)))
        expect(ends[0]).toEqual(ends[1])
      }),
      { seed: 7, numRuns: 500 },
    )
  })

  it('of a closed session fails in its first part', () => {
    const fixture = new PreparerFixture()
    fixture.open = false
    expect(fixture.prepare([create('/a'), create('/b')])).toEqual(
      multi(failure(ErrorCode.SESSIONEXPIRED), NOT_TRIED),
    )
  })

  it.each<[string, RequestSpec, object | number]>([
    ['setACL', { op: 'setACL', path: '/a' }, failure(ErrorCode.MARSHALLINGERROR)],
    [
      'a plain creation with a time to live',
      create('/a', CreateMode.PERSISTENT_WITH_TTL),
      failure(ErrorCode.MARSHALLINGERROR),
    ],
    ['a plain creation with unknown flags', create('/a', 7), failure(ErrorCode.MARSHALLINGERROR)],
    [
      'a creation without a list, which takes no zxid',
      { op: 'create', path: '/a', acl: null },
      ErrorCode.MARSHALLINGERROR,
    ],
  ])('is refused as a whole for %s', (_, ask, refusal) => {
    expect(new PreparerFixture().prepare([create('/ok'), ask])).toEqual(refusal)
  })

  it('rejects only the part that requests a TTL with unknown flags', () => {
    expect(new PreparerFixture().prepare([{ op: 'createTTL', path: '/a', flags: 9 }])).toEqual(
      multi(failure(ErrorCode.BADARGUMENTS)),
    )
  })

  it('takes the kind of a created node from the flags', () => {
    const txn = new PreparerFixture().prepare([
      create('/c', CreateMode.CONTAINER),
      { op: 'createTTL', path: '/n', flags: 0, ttl: -1n },
    ])
    expect(txn).toMatchObject(
      multi({ type: OpCode.createContainer }, { type: OpCode.create, ephemeral: false }),
    )
  })

  it('may exceed a quota, which counts applied changes only', () => {
    const fixture = new PreparerFixture({ enforceQuota: true })
    fixture.apply(create('/q'))
    fixture.apply(create('/zookeeper/quota/q'))
    fixture.apply({
      op: 'create',
      path: '/zookeeper/quota/q/zookeeper_limits',
      data: 'count=-1,bytes=-1=;byteHardLimit=-1;countHardLimit=2',
    })
    fixture.apply(create('/zookeeper/quota/q/zookeeper_stats'))
    expect(fixture.apply([create('/q/a'), create('/q/b')])).toMatchObject(
      multi({ path: '/q/a' }, { path: '/q/b' }),
    )
    expect(fixture.apply([{ op: 'delete', path: '/q/a' }, create('/q/c')])).toMatchObject(
      multi({}, failure(ErrorCode.QUOTAEXCEEDED)),
    )
  })
})

describe('ACLs', () => {
  it('are stored with the identities of the client in place of auth, by create and setACL', () => {
    const fixture = new PreparerFixture()
    const auth = [{ perms: Perms.ALL, id: { scheme: 'auth', id: null } }]
    expect(fixture.prepare({ op: 'create', path: '/a', acl: auth })).toEqual(failure(ErrorCode.INVALIDACL))
    fixture.identities = [BOB]
    expect(fixture.apply({ op: 'create', path: '/a', acl: auth })).toMatchObject({ acl: only(Perms.ALL) })
    expect(fixture.apply({ op: 'setACL', path: '/a', acl: [...auth, ...auth] })).toMatchObject({
      acl: only(Perms.ALL),
    })
    fixture.identities = [{ scheme: 'ip', id: '10.0.0.1' }]
    expect(fixture.prepare(create('/a/x'))).toEqual(failure(ErrorCode.NOAUTH))
    fixture.identities = [{ scheme: 'super', id: '' }]
    expect(fixture.prepare(create('/a/x'))).toMatchObject({ path: '/a/x' })
  })

  it('are checked in their pending state, not the applied one', () => {
    const fixture = new PreparerFixture()
    fixture.apply(create('/a'))
    fixture.prepare({ op: 'setACL', path: '/a', acl: only(Perms.ALL) })
    expect(fixture.prepare(create('/a/x'))).toEqual(failure(ErrorCode.NOAUTH))
  })

  it('with a null id are rejected as undecodable', () => {
    const acl = [{ perms: Perms.ALL, id: { scheme: 'digest', id: null } }]
    expect(new PreparerFixture().prepare({ op: 'create', path: '/a', acl })).toEqual(
      failure(ErrorCode.MARSHALLINGERROR),
    )
  })
})

describe('the system nodes', () => {
  it('let every client create below /zookeeper, and only the super user change the configuration', () => {
    const fixture = new PreparerFixture()
    const config: RequestSpec = { op: 'setData', path: '/zookeeper/config', data: 'x' }
    expect(fixture.prepare(create('/zookeeper/mine'))).toMatchObject({ path: '/zookeeper/mine' })
    expect(fixture.prepare({ op: 'setACL', path: '/zookeeper', acl: OPEN_ACL_UNSAFE })).toMatchObject({
      version: 1,
    })
    expect(fixture.prepare(config)).toEqual(failure(ErrorCode.NOAUTH))
    expect(fixture.prepare(create('/zookeeper/config/x'))).toEqual(failure(ErrorCode.NOAUTH))
    fixture.identities = [{ scheme: 'super', id: '' }]
    expect(fixture.prepare(config)).toMatchObject({ version: 1 })
  })
})
