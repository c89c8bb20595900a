import { CreateMode, ErrorCode, OPEN_ACL_UNSAFE, OpCode, Perms, type ACL } from '@zabra/protocol'
import { describe, expect, it } from 'vitest'
import { PreparerFixture, BOB, failure, only, type RequestSpec } from './testing/preparer-fixture.ts'

const UNKNOWN: ACL[] = [{ perms: Perms.ALL, id: { scheme: 'kerberos', id: 'x' } }]
const TTL = CreateMode.PERSISTENT_WITH_TTL
const SEQUENTIAL = CreateMode.PERSISTENT_SEQUENTIAL

/**
 * Creates a tree in which a request can fail at every check: `/locked` belongs to another user, the quota of `/full` is used up,
 * `/p` has a child, data of version 2 and an ACL of version 1, `/e` is ephemeral.
 */
function newFixture(extendedTypes = true): PreparerFixture {
  const fixture = new PreparerFixture({ extendedTypes, enforceQuota: true })
  fixture.identities = [BOB]
  const asks: RequestSpec[] = [
    { op: 'create', path: '/locked', data: 'x' },
    { op: 'create', path: '/locked/child', data: 'x', acl: only(Perms.ALL) },
    { op: 'create', path: '/locked/e', flags: CreateMode.EPHEMERAL },
    { op: 'setACL', path: '/locked', acl: only(Perms.ALL) },
    { op: 'create', path: '/p', data: 'x' },
    { op: 'create', path: '/p/child', data: 'x' },
    { op: 'setData', path: '/p', data: 'y' },
    { op: 'setData', path: '/p', data: 'z' },
    { op: 'setACL', path: '/p', acl: OPEN_ACL_UNSAFE },
    { op: 'create', path: '/e', data: 'x', flags: CreateMode.EPHEMERAL },
    { op: 'create', path: '/full', data: 'x' },
    { op: 'create', path: '/full/e', flags: CreateMode.EPHEMERAL },
    { op: 'create', path: '/zookeeper/quota/full' },
    {
      op: 'create',
      path: '/zookeeper/quota/full/zookeeper_limits',
      data: 'count=-1,bytes=-1=;byteHardLimit=1;countHardLimit=2',
    },
    { op: 'create', path: '/zookeeper/quota/full/zookeeper_stats' },
  ]
  for (const ask of asks) expect(fixture.apply(ask)).not.toMatchObject({ type: OpCode.error })
  fixture.identities = []
  return fixture
}

/** Each request fails the named check and, where possible, every later one too: the first failed check decides. */
type Step = readonly [string, RequestSpec, number, 'closed'?]

const cases = (steps: Step[]) => steps.map(([name, ask, code, session]) => ({ name, ask, code, session }))

const created = (op: 'create' | 'create2' | 'createContainer'): Step[] => [
  ['unknown flags', { op, path: 'none', flags: 7, acl: [] }, ErrorCode.BADARGUMENTS, 'closed'],
  ['negative flags', { op, path: 'none', flags: -1, acl: [] }, ErrorCode.BADARGUMENTS, 'closed'],
  ['flags of a TTL', { op, path: 'none', flags: TTL, acl: [] }, ErrorCode.BADARGUMENTS, 'closed'],
  ['a closed session', { op, path: 'none', acl: [] }, ErrorCode.SESSIONEXPIRED, 'closed'],
  ['no path', { op, path: null, acl: [] }, ErrorCode.MARSHALLINGERROR],
  ['a path without a slash', { op, path: 'none', acl: [] }, ErrorCode.BADARGUMENTS],
  ['a path with NUL', { op, path: '/none/\0', acl: [] }, ErrorCode.BADARGUMENTS],
  ['an empty list', { op, path: '/none//x', acl: [] }, ErrorCode.INVALIDACL],
  ['an ACL of an unknown scheme', { op, path: '/none//x', acl: UNKNOWN }, ErrorCode.INVALIDACL],
  ['a missing parent', { op, path: '/none//x' }, ErrorCode.NONODE],
  ['no permission on the parent', { op, path: '/locked/.' }, ErrorCode.NOAUTH],
  ['no permission, though the node is there', { op, path: '/locked/child' }, ErrorCode.NOAUTH],
  ['a path that is none', { op, path: '/e/.' }, ErrorCode.BADARGUMENTS],
  ['a path that ends with a slash', { op, path: '/p/' }, ErrorCode.BADARGUMENTS],
  ['a node that is there', { op, path: '/full/e' }, ErrorCode.NODEEXISTS],
  ['the root', { op, path: '/' }, ErrorCode.NODEEXISTS],
  ['an ephemeral parent', { op, path: '/full/e/x' }, ErrorCode.NOCHILDRENFOREPHEMERALS],
  ['a quota that is used up', { op, path: '/full/x' }, ErrorCode.QUOTAEXCEEDED],
  ['nothing', { op, path: '/p/new' }, 0],
  ['nothing, its name being given by the server', { op, path: '/p/', flags: SEQUENTIAL }, 0],
]

const op = 'createTTL'
const tables: Record<string, Step[]> = {
  create: created('create'),
  create2: created('create2'),
  createContainer: created('createContainer'),
  createTTL: [
    ['no time to live', { op, path: 'none', flags: TTL, ttl: 0n }, ErrorCode.BADARGUMENTS, 'closed'],
    ['a negative one', { op, path: 'none', flags: TTL, ttl: -1n }, ErrorCode.BADARGUMENTS, 'closed'],
    ['one of 2^40 ms', { op, path: 'none', flags: TTL, ttl: 1n << 40n }, ErrorCode.BADARGUMENTS, 'closed'],
    ['flags without it', { op, path: 'none', flags: 0 }, ErrorCode.BADARGUMENTS, 'closed'],
    ['flags without it and none', { op, path: 'none', flags: 0, ttl: -1n }, ErrorCode.BADARGUMENTS, 'closed'],
    ['a closed session', { op, path: 'none', flags: TTL, acl: [] }, ErrorCode.SESSIONEXPIRED, 'closed'],
    ['an empty list', { op, path: '/none//x', flags: TTL, acl: [] }, ErrorCode.INVALIDACL],
    ['a quota that is used up', { op, path: '/full/x', flags: TTL }, ErrorCode.QUOTAEXCEEDED],
    ['nothing, with the shortest', { op, path: '/p/new', flags: TTL }, 0],
    ['nothing, with the longest', { op, path: '/p/new', flags: TTL, ttl: (1n << 40n) - 1n }, 0],
  ],
  delete: [
    ['a closed session', { op: 'delete', path: '/' }, ErrorCode.SESSIONEXPIRED, 'closed'],
    ['no path', { op: 'delete', path: null }, ErrorCode.MARSHALLINGERROR],
    ['a path without a slash', { op: 'delete', path: 'none' }, ErrorCode.BADARGUMENTS],
    ['a path with NUL', { op: 'delete', path: '/none/\0' }, ErrorCode.BADARGUMENTS],
    ['the root', { op: 'delete', path: '/', version: 9 }, ErrorCode.BADARGUMENTS],
    ['/zookeeper', { op: 'delete', path: '/zookeeper', version: 9 }, ErrorCode.BADARGUMENTS],
    ['its quota', { op: 'delete', path: '/zookeeper/quota', version: 9 }, ErrorCode.BADARGUMENTS],
    ['its config', { op: 'delete', path: '/zookeeper/config', version: 9 }, ErrorCode.BADARGUMENTS],
    ['a missing parent', { op: 'delete', path: '/none/x', version: 9 }, ErrorCode.NONODE],
    ['no permission on the parent', { op: 'delete', path: '/locked/none', version: 9 }, ErrorCode.NOAUTH],
    ['a missing node', { op: 'delete', path: '/p/none', version: 9 }, ErrorCode.NONODE],
    ['a path that can be no node', { op: 'delete', path: '/p/', version: 9 }, ErrorCode.NONODE],
    ['another version', { op: 'delete', path: '/p', version: 9 }, ErrorCode.BADVERSION],
    ['a version that is taken literally', { op: 'delete', path: '/p', version: -2 }, ErrorCode.BADVERSION],
    ['children', { op: 'delete', path: '/p', version: 2 }, ErrorCode.NOTEMPTY],
    ['nothing', { op: 'delete', path: '/p/child', version: 0 }, 0],
  ],
  setData: [
    ['a closed session', { op: 'setData', path: null, version: 9 }, ErrorCode.SESSIONEXPIRED, 'closed'],
    ['no path', { op: 'setData', path: null, version: 9 }, ErrorCode.BADARGUMENTS],
    ['a path that is none', { op: 'setData', path: '/none/', version: 9 }, ErrorCode.BADARGUMENTS],
    ['a missing node', { op: 'setData', path: '/locked/none', version: 9 }, ErrorCode.NONODE],
    ['no permission', { op: 'setData', path: '/locked', data: 'xy', version: 9 }, ErrorCode.NOAUTH],
    ['a quota', { op: 'setData', path: '/full', data: 'xy', version: 9 }, ErrorCode.QUOTAEXCEEDED],
    ['another version', { op: 'setData', path: '/full', data: 'y', version: 9 }, ErrorCode.BADVERSION],
    ['nothing, the length being what it was', { op: 'setData', path: '/full', data: 'y', version: 0 }, 0],
    ['nothing, at the root', { op: 'setData', path: '/' }, 0],
  ],
  setACL: [
    ['a closed session', { op: 'setACL', path: null, acl: [] }, ErrorCode.SESSIONEXPIRED, 'closed'],
    ['no path', { op: 'setACL', path: null, acl: [] }, ErrorCode.BADARGUMENTS],
    ['a path that is none', { op: 'setACL', path: '/none/', acl: [] }, ErrorCode.BADARGUMENTS],
    ['no list', { op: 'setACL', path: '/none', acl: null }, ErrorCode.INVALIDACL],
    ['an ACL of an unknown scheme', { op: 'setACL', path: '/none', acl: UNKNOWN }, ErrorCode.INVALIDACL],
    ['a missing node', { op: 'setACL', path: '/locked/none', version: 9 }, ErrorCode.NONODE],
    ['no permission', { op: 'setACL', path: '/locked', version: 9 }, ErrorCode.NOAUTH],
    ['the version of the data', { op: 'setACL', path: '/p', version: 2 }, ErrorCode.BADVERSION],
    ['nothing', { op: 'setACL', path: '/p', version: 1 }, 0],
  ],
}

describe.each(Object.entries(tables))('%s', (_, steps) => {
  it.each(cases(steps))('is decided by $name', ({ ask, code, session }) => {
    const fixture = newFixture()
    fixture.open = session !== 'closed'
    const txn = fixture.prepare(ask)
    if (code === 0) expect(txn).not.toMatchObject({ type: OpCode.error })
    else expect(txn).toEqual(failure(code))
  })
})

describe('the error of a check', () => {
  const steps: Step[] = [
    ['a closed session', { op: 'check', path: '/none/' }, ErrorCode.SESSIONEXPIRED, 'closed'],
    ['a path that is none', { op: 'check', path: '/none/', version: 9 }, ErrorCode.BADARGUMENTS],
    ['a missing node', { op: 'check', path: '/locked/none', version: 9 }, ErrorCode.NONODE],
    ['no permission', { op: 'check', path: '/locked', version: 9 }, ErrorCode.NOAUTH],
    ['another version', { op: 'check', path: '/p', version: 9 }, ErrorCode.BADVERSION],
    ['nothing', { op: 'check', path: '/p', version: 2 }, 0],
  ]
  it.each(cases(steps))('in a multi is decided by $name', ({ ask, code, session }) => {
    const fixture = newFixture()
    fixture.open = session !== 'closed'
    const part = code === 0 ? { type: OpCode.check, path: '/p', version: 3 } : failure(code)
    expect(fixture.prepare([ask])).toEqual({ type: OpCode.multi, txns: [part] })
  })
})

describe('a TTL without extended types', () => {
  it.each(['create', 'createTTL'] as const)(
    'is rejected as unimplemented for %s, whatever else is wrong',
    (name) => {
      const fixture = newFixture(false)
      fixture.open = false
      expect(fixture.prepare({ op: name, path: 'none', flags: TTL, ttl: 0n })).toEqual(
        failure(ErrorCode.UNIMPLEMENTED),
      )
    },
  )
})
