import { ErrorCode, EventType } from '@zabra/protocol'
import { describe, expect, it } from 'vitest'
import type { WatchesReset } from '../history/records.ts'
import {
  aclOf,
  HistoryBuilder,
  get,
  setAcl,
  make,
  notice,
  put,
  rearmed,
  remove,
  set,
} from './testing/history-builder.ts'

const { NodeChildrenChanged, NodeCreated, NodeDataChanged, NodeDeleted } = EventType
const exists = { op: 'exists', path: '/w/a', watch: true } as const
const [changed, created, deleted] = [NodeDataChanged, NodeCreated, NodeDeleted].map((type) =>
  notice(type, '/w/a'),
)

/** A client that watches the data of a node, or its existence, from a zxid. */
function watching(as: 'data' | 'exist', zxid = 3): HistoryBuilder {
  const one = new HistoryBuilder()
  if (as === 'data') one.answer({ ...get, watch: true }, zxid, { err: 0 })
  else {
    one.transactions.push(remove(4, '/w/a'))
    one.answer(exists, 4, { err: ErrorCode.NONODE })
  }
  return one
}
const data = { data: ['/w/a'] }
const exist = { exist: ['/w/a'] }

describe('the watches checker', () => {
  it('accepts a reset without watches when all watches have fired', () => {
    const one = watching('data')
    one.transactions.push(setAcl(4, '/w/a'), put(5, 9, '/w/a', 1), make(6, 9, '/w/b', 2))
    one.answer(set, 5, { err: 0 })
    one.reattach(2, deleted!, rearmed(5, 3, data))
    one.reattach(3)
    one.answer({ op: 'children', path: '/w', watch: true }, 5, { err: 0 }, { connection: 3 })
    one.history.events.push(notice(NodeChildrenChanged, '/w'))
    one.answer(set, 6, { err: 0 }, { connection: 3 })
    expect(one.violationsOf('watches')).toEqual([])
  })

  it('accepts a deletion at an exist watch when an earlier data watch caused it', () => {
    const one = watching('data')
    one.transactions.push(setAcl(4, '/w/a'), remove(5, '/w/a'), make(6, 9, '/w/a', 3))
    one.answer(exists, 5, { err: ErrorCode.NONODE })
    one.reattach(2, deleted!, rearmed(5, 5, { ...data, ...exist }), created!)
    expect(one.violationsOf('watches')).toEqual([])
  })

  it('accepts a creation at a data watch when an earlier exist watch caused it', () => {
    const one = watching('exist')
    one.transactions.push(
      make(5, 1, '/w/a', 3, false, aclOf('mine')),
      setAcl(6, '/w/a', 'open'),
      put(7, 1, '/w/a', 1),
    )
    one.answer({ ...get, watch: true }, 6, { err: 0 })
    one.reattach(2, created!, rearmed(6, 6, { ...data, ...exist }), changed!)
    expect(one.violationsOf('watches')).toEqual([])
  })

  it.each<
    [
      string,
      'data' | 'exist',
      Partial<WatchesReset['requested']>,
      () => readonly (typeof changed)[],
      number,
      string,
    ]
  >([
    ['a change that never was', 'data', data, () => [changed], 3, 'when [] were due'],
    [
      'a notification of another change',
      'data',
      data,
      () => [deleted],
      4,
      `when [${NodeDataChanged} of /w/a] were due`,
    ],
    [
      'a notification for a node without a watch',
      'data',
      data,
      () => [notice(NodeChildrenChanged, '/w')],
      3,
      'when [] were due',
    ],
    ['the same change twice', 'data', data, () => [changed, changed], 4, 'when ['],
    ['a deletion at an exist watch', 'exist', exist, () => [deleted], 4, 'when [] were due'],
    ['nothing of a change', 'data', data, () => [], 4, 'when ['],
    [
      'a missing notification of a creation',
      'exist',
      exist,
      () => [],
      5,
      `when [${NodeCreated} of /w/a] were due`,
    ],
  ])('reports %s during a reset', (_, as, requested, notified, zxid, complaint) => {
    const one = watching(as)
    one.transactions.push(as === 'data' ? put(4, 9, '/w/a', 1) : make(5, 1, '/w/a', 3))
    one.reattach(2, ...notified().map((event) => event!), rearmed(zxid, as === 'data' ? 3 : 4, requested))
    expect(one.violationsOf('watches').join('\n')).toContain(complaint)
  })

  it.each([
    ['that does not ask for its watch again', {}, 3],
    ['whose relative zxid skips an event', data, 4],
  ])('reports a lost change for a session %s', (_, requested, since) => {
    const one = watching('data')
    one.transactions.push(put(4, 9, '/w/a', 1))
    one.reattach(2, rearmed(4, since, requested))
    expect(one.violationsOf('watches').join('\n')).toContain(
      'was not notified that data of /w/a had changed since 0x3',
    )
  })

  it('reports a lost change for a session that resets no watches', () => {
    const one = watching('data')
    one.transactions.push(put(4, 9, '/w/a', 1))
    one.reattach(2)
    one.answer(set, 4, { err: 0 }, { connection: 2 })
    expect(one.violationsOf('watches').join('\n')).toContain(
      'was not notified that data of /w/a had changed since 0x3',
    )
  })

  it('reports a change that a reset watch misses later', () => {
    const one = watching('exist')
    one.transactions.push(make(5, 1, '/w/a', 3))
    one.reattach(2, rearmed(4, 4, exist))
    one.answer(set, 5, { err: 0 }, { connection: 2 })
    expect(one.violationsOf('watches').join('\n')).toContain('before it was notified of 0x5')
  })
})
