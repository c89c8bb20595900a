import { CreateMode, OPEN_ACL_UNSAFE, OpCode, Perms, Reader, Writer } from '@zabra/protocol'
import { describe, expect, it } from 'vitest'
import { describeWrite } from './describe-write.ts'
import { encodeRequest, only, type RequestSpec } from './testing/preparer-fixture.ts'

const { EPHEMERAL, PERSISTENT, PERSISTENT_SEQUENTIAL } = CreateMode
const nothing = { path: undefined, acl: undefined, mode: undefined, modes: [] }

function describeRequest(ask: RequestSpec | readonly RequestSpec[]): unknown {
  const { type, body } = encodeRequest(ask)
  // The body begins after a header.
  const reader = new Reader(Uint8Array.of(9, 9, ...body), 2)
  const { modes, ...rest } = describeWrite(type, reader)
  expect(reader.offset).toBe(2)
  body.fill(0xee)
  reader.bytes.fill(0xee)
  return { ...rest, modes: [...modes] }
}

describe('the description of a write', () => {
  it.each<[RequestSpec, object]>([
    [
      { op: 'create', path: '/a', flags: EPHEMERAL },
      { path: '/a', mode: EPHEMERAL },
    ],
    [
      { op: 'create2', path: '/a', acl: only(Perms.ALL) },
      { path: '/a', mode: PERSISTENT },
    ],
    [{ op: 'create', path: null }, { mode: PERSISTENT }],
    [{ op: 'delete', path: '/a' }, { path: '/a' }],
    [{ op: 'delete', path: null }, {}],
    [{ op: 'setData', path: '/a', data: 'x' }, { path: '/a' }],
    [
      { op: 'setACL', path: '/a', acl: only(Perms.READ) },
      { path: '/a', acl: only(Perms.READ) },
    ],
    [{ op: 'setACL', path: '/a', acl: null }, { path: '/a' }],
    [
      { op: 'setACL', path: '/a', acl: OPEN_ACL_UNSAFE },
      { path: '/a', acl: OPEN_ACL_UNSAFE },
    ],
  ])('names path, list and mode of %j', (ask, shown) => {
    expect(describeRequest(ask)).toEqual({ ...nothing, ...shown })
  })

  it('has the mode of each creation of a multi, also of one so large that it is decoded later', () => {
    const parts: RequestSpec[] = [
      { op: 'create', path: '/a', flags: PERSISTENT_SEQUENTIAL },
      { op: 'delete', path: '/b' },
      { op: 'create2', path: '/c', flags: EPHEMERAL },
    ]
    const modes = [PERSISTENT_SEQUENTIAL, undefined, EPHEMERAL]
    expect(describeRequest(parts)).toEqual({ ...nothing, modes })
    const large: RequestSpec = { op: 'setData', path: '/d', data: 'x'.repeat(20_000) }
    expect(describeRequest([...parts, large])).toEqual({ ...nothing, modes: [...modes, undefined] })
  })

  it('decodes a multi of 16 KiB only when its modes are iterated', () => {
    const isDecoded = (bytes: number): boolean =>
      Array.isArray(describeWrite(OpCode.multi, new Reader(new Uint8Array(bytes))).modes)
    expect([16_383, 16_384].map(isDecoded)).toEqual([true, false])
  })

  it('of a reconfiguration, or of a body that cannot be decoded, is empty', () => {
    const membership = new Writer()
    for (const list of [null, 'server.1=h:1:2', null]) membership.string(list)
    membership.longNumber(-1)
    expect(describeWrite(OpCode.reconfig, new Reader(membership.take()))).toEqual(nothing)
    for (const type of [OpCode.reconfig, OpCode.create, OpCode.delete, OpCode.multi, OpCode.sync]) {
      const reader = new Reader(Uint8Array.of(0, 0, 0, 9))
      expect(describeWrite(type, reader)).toEqual(nothing)
      expect(reader.offset).toBe(0)
    }
  })

  it('hides no other error', () => {
    expect(() => describeWrite(OpCode.delete, { offset: 0 } as Reader)).toThrow(TypeError)
  })
})
