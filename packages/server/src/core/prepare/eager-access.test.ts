import { ErrorCode, OpCode, Perms, Reader, type ACL } from '@zabra/protocol'
import { describe, expect, it } from 'vitest'
import { AclRules } from '../auth/index.ts'
import { EagerAccessCheck } from './eager-access.ts'
import { BOB, encodeRequest, only, PreparerFixture, type RequestSpec } from './testing/preparer-fixture.ts'

const { OK, NOAUTH, INVALIDACL } = ErrorCode
const { CREATE, DELETE, WRITE, ADMIN, READ } = Perms

/** Returns the check of a tree with a node `/p` and its child `/p/c`, which have these lists. */
function checkOf(parent: readonly ACL[], child: readonly ACL[]): EagerAccessCheck {
  const fixture = new PreparerFixture({ skipACL: true })
  fixture.apply({ op: 'create', path: '/p', acl: parent })
  fixture.apply({ op: 'create', path: '/p/c', acl: child })
  return new EagerAccessCheck(fixture.tree, new AclRules({ skipACL: false }))
}

function result(check: EagerAccessCheck, ask: RequestSpec | readonly RequestSpec[], as = [BOB]): number {
  const { type, body } = encodeRequest(ask)
  const reader = new Reader(body)
  const err = check.check(type, reader, as)
  expect(reader.offset).toBe(0)
  return err
}

describe('the check of access before a write takes a zxid', () => {
  it.each<[RequestSpec, number, 'parent' | 'child']>([
    [{ op: 'create', path: '/p/c' }, CREATE, 'parent'],
    [{ op: 'create2', path: '/p/new' }, CREATE, 'parent'],
    [{ op: 'delete', path: '/p/c' }, DELETE, 'parent'],
    [{ op: 'setData', path: '/p/c' }, WRITE, 'child'],
    [{ op: 'setACL', path: '/p/c' }, ADMIN, 'child'],
  ])('of %j needs permission %i of the %s alone', (ask, perms, at) => {
    const lists = (granted: number): [ACL[], ACL[]] => {
      const [has, lacks] = [only(granted), only(READ)]
      return at === 'parent' ? [has, lacks] : [lacks, has]
    }
    expect(result(checkOf(...lists(perms)), ask)).toBe(OK)
    expect(result(checkOf(...lists(perms)), ask, [])).toBe(NOAUTH)
    expect(result(checkOf(...lists(Perms.ALL & ~perms)), ask)).toBe(NOAUTH)
  })

  it('refuses a list that cannot be stored, before it looks at the node', () => {
    const check = checkOf(only(READ), only(READ))
    const acl = [{ perms: Perms.ALL, id: { scheme: 'nonsense', id: 'x' } }]
    expect(result(check, { op: 'create', path: '/p/new', acl })).toBe(INVALIDACL)
    expect(result(check, { op: 'setACL', path: '/none', acl })).toBe(INVALIDACL)
  })

  it.each<RequestSpec | readonly RequestSpec[]>([
    { op: 'setData', path: '/none' },
    { op: 'setData', path: 'p/c' },
    { op: 'setData', path: null },
    { op: 'create', path: '/none/x' },
    { op: 'createContainer', path: '/p/x' },
    { op: 'check', path: '/p/c' },
    [{ op: 'setData', path: '/p/c' }],
  ])('leaves %j to the leader', (ask) => {
    expect(result(checkOf(only(READ), only(READ)), ask)).toBe(OK)
  })

  it('leaves a body that cannot be decoded to the leader, and hides no other error', () => {
    const check = checkOf(only(READ), only(READ))
    const reader = new Reader(Uint8Array.of(0, 0, 0, 9))
    expect(check.check(OpCode.setData, reader, [])).toBe(OK)
    expect(reader.offset).toBe(0)
    expect(() => check.check(OpCode.setData, { offset: 0 } as Reader, [])).toThrow(TypeError)
  })
})
