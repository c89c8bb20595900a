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

describe('what is known of the place of a node', () => {
  it('is not believed when the index belongs to another node by now', () => {
    const bench = new PreparerFixture()
    for (const path of ['/a', '/b']) bench.apply(create(path))
    const { tree } = bench
    const [a, b] = [tree.find('/a'), tree.find('/b')]
    const data = new TextEncoder().encode('x')
    const txn: Txn = { type: OpCode.setData, path: '/a', data, version: 1 }
    const hint: ApplyHint = {
      node: { path: '/a', hash: tree.store.hash('/a'), index: b, parent: undefined },
      crc: 7,
    }
    expect(tree.apply(header(++bench.zxid), txn, undefined, undefined, hint)).toBe(0)
    expect([tree.dataOf(a), tree.dataOf(b)]).toEqual([data, null])
  })

  it('is forgotten, that of the last parent too, when what is on its way is lost', () => {
    const bench = new PreparerFixture()
    for (const path of ['/p', '/p/x']) bench.apply(create(path))
    // The second parent of this name is remembered, and will never be.
    const asks: RequestSpec[] = [
      { op: 'delete', path: '/p/x' },
      { op: 'delete', path: '/p' },
      create('/p'),
      create('/p/y'),
    ]
    for (const ask of asks) bench.prepare(ask)
    expect(bench.prepare(create('/p/z'))).toMatchObject({ type: OpCode.create, parentCVersion: 2 })
    bench.preparer.reset()
    expect(bench.prepare(create('/p/x'))).toEqual(failure(ErrorCode.NODEEXISTS))
    expect(bench.prepare({ op: 'setData', path: '/p/y' })).toEqual(failure(ErrorCode.NONODE))
    expect(bench.prepare(create('/p/z'))).toMatchObject({ type: OpCode.create, parentCVersion: 2 })
    expect(bench.prepare({ op: 'delete', path: '/p' })).toEqual(failure(ErrorCode.NOTEMPTY))
  })
})
