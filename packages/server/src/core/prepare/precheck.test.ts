import { CreateMode, ErrorCode, OpCode, Reader } from '@zabra/protocol'
import { describe, expect, it } from 'vitest'
import { precheck } from './precheck.ts'
import { encodeRequest, type RequestSpec } from './testing/preparer-fixture.ts'

const { CONTAINER, EPHEMERAL, EPHEMERAL_SEQUENTIAL } = CreateMode
const forward = { err: 0, isEphemeral: false, create2Parts: [] }
const undecodable = { ...forward, err: ErrorCode.MARSHALLINGERROR }

function check(ask: RequestSpec | readonly RequestSpec[]): unknown {
  const { type, body } = encodeRequest(ask)
  return precheck(type, new Reader(body))
}

describe('the check of a write before it is forwarded', () => {
  it.each<[RequestSpec | readonly RequestSpec[], object]>([
    [{ op: 'create', path: '/a' }, forward],
    [{ op: 'setData', path: '/a' }, forward],
    [{ op: 'create', path: '/a', acl: null }, forward],
    [
      { op: 'create2', path: '/a', flags: EPHEMERAL },
      { ...forward, isEphemeral: true },
    ],
    [
      { op: 'create', path: '/a', flags: EPHEMERAL_SEQUENTIAL },
      { ...forward, isEphemeral: true },
    ],
    [[], forward],
    [
      [
        { op: 'create', path: '/a', flags: EPHEMERAL },
        { op: 'delete', path: '/b' },
      ],
      { ...forward, isEphemeral: true },
    ],
    [
      [
        { op: 'create2', path: '/a' },
        { op: 'create', path: '/b' },
        { op: 'create2', path: '/c', flags: CONTAINER },
        { op: 'create2', path: '/d' },
      ],
      { ...forward, create2Parts: [0, 3] },
    ],
    [
      [
        { op: 'create', path: '/a', acl: null },
        { op: 'create2', path: '/b' },
      ],
      undecodable,
    ],
  ])('of %j finds what its transaction will not show', (ask, result) => {
    expect(check(ask)).toEqual(result)
  })

  it('refuses a body that cannot be decoded, except that of a multi, which the leader answers by a transaction', () => {
    const body = (): Reader => new Reader(Uint8Array.of(0, 0, 0, 9))
    expect(precheck(OpCode.setData, body())).toEqual(undecodable)
    expect(precheck(OpCode.multi, body())).toEqual(forward)
  })

  it('hides no other error', () => {
    for (const type of [OpCode.setData, OpCode.multi])
      expect(() => precheck(type, {} as Reader)).toThrow(TypeError)
  })
})
