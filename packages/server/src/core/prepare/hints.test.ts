import { CreateMode, ErrorCode, OpCode } from '@zabra/protocol'
import { describe, expect, it } from 'vitest'
import type { ApplyHint } from '../tree/index.ts'
import type { Txn } from '../types.ts'
import { PreparerFixture, failure, type RequestSpec } from './testing/preparer-fixture.ts'

const create = (path: string): RequestSpec => ({ op: 'create', path, flags: CreateMode.PERSISTENT })
const header = (zxid: number): { sessionId: bigint; cxid: number; zxid: number; time: number } => ({
  sessionId: 5n,
  cxid: 0,
  zxid,
  time: 1,
})

describe('the node reference of a prepared transaction', () => {
  it('is ignored when its index belongs to another node by now', () => {
    const fixture = new PreparerFixture()
    for (const path of ['/a', '/b']) fixture.apply(create(path))
    const { tree } = fixture
    const [a, b] = [tree.find('/a'), tree.find('/b')]
    const data = new TextEncoder().encode('x')
    const txn: Txn = { type: OpCode.setData, path: '/a', data, version: 1 }
    const hint: ApplyHint = {
      node: { path: '/a', hash: tree.store.hash('/a'), index: b, parent: undefined },
      crc: 7,
    }
    expect(tree.apply(header(++fixture.zxid), txn, undefined, undefined, hint)).toBe(0)
    expect([tree.dataOf(a), tree.dataOf(b)]).toEqual([data, null])
  })

  it('is forgotten, as is the cached parent, when pending changes are reset', () => {
    const fixture = new PreparerFixture()
    for (const path of ['/p', '/p/x']) fixture.apply(create(path))
    // The second parent of this path is cached, and will never exist.
    const asks: RequestSpec[] = [
      { op: 'delete', path: '/p/x' },
      { op: 'delete', path: '/p' },
      create('/p'),
      create('/p/y'),
    ]
    for (const ask of asks) fixture.prepare(ask)
    expect(fixture.prepare(create('/p/z'))).toMatchObject({ type: OpCode.create, parentCVersion: 2 })
    fixture.preparer.reset()
    expect(fixture.prepare(create('/p/x'))).toEqual(failure(ErrorCode.NODEEXISTS))
    expect(fixture.prepare({ op: 'setData', path: '/p/y' })).toEqual(failure(ErrorCode.NONODE))
    expect(fixture.prepare(create('/p/z'))).toMatchObject({ type: OpCode.create, parentCVersion: 2 })
    expect(fixture.prepare({ op: 'delete', path: '/p' })).toEqual(failure(ErrorCode.NOTEMPTY))
  })
})
