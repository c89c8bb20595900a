import { OpCode } from '@zabra/protocol'
import { describe, expect, it } from 'vitest'
import { createOf } from '../testing/create-of.ts'
import { runToEnd } from '../steps.ts'
import type { Txn } from '../types.ts'
import { applyInSteps, parseQuota, quotaBreach, Tree } from './index.ts'
import { QuotaIndex, quotaTarget } from './quotas.ts'

const bytes = (text: string): Uint8Array => new TextEncoder().encode(text)
const none = { count: -1, bytes: -1, countHardLimit: -1, byteHardLimit: -1 }

describe('the data of a quota node', () => {
  it.each([
    ['count=5,bytes=-1', { count: 5 }],
    ['count=-12,bytes=+340', { count: -12, bytes: 340 }],
    [
      'count=-1,bytes=+7=;byteHardLimit=8;countHardLimit=9',
      { bytes: 7, byteHardLimit: 8, countHardLimit: 9 },
    ],
    [';,count=1,;,', { count: 1 }],
    ['=nonsense,count=1', { count: 1 }],
    ['more=5,count=1', { count: 1 }],
    ['', {}],
    [`count=1${','.repeat(1017)}`, { count: 1 }],
  ])('%j has numbers, and -1 for those that it lacks', (text, numbers) => {
    expect(parseQuota(bytes(text))).toEqual({ ...none, ...numbers })
  })

  it.each(['count', 'count=', 'count=x1', 'count=1x', 'count=1.5', 'bytes=1,count=a', 'nonsense'])(
    'may not be %j',
    (text) => {
      expect(() => parseQuota(bytes(text))).toThrow(SyntaxError)
    },
  )

  it('may not be null, nor longer than any six numbers, and an error shows a little of it', () => {
    expect(() => parseQuota(null)).toThrow(SyntaxError)
    expect(() => parseQuota(bytes(`count=1${','.repeat(1018)}`))).toThrow(
      'at most 1024 bytes, got one of 1025',
    )
    expect(() => parseQuota(bytes('x'.repeat(500)))).toThrow(`got "${'x'.repeat(80)}"`)
  })
})

describe('a limit', () => {
  const used = { ...none, count: 10, bytes: 100 }

  it.each([
    ['of nodes is exceeded by one more', { count: 10 }, 1, 0, ['nodes', false, 10, 11]],
    ['of nodes is reached', { count: 11 }, 1, 0, undefined],
    ['of no nodes is exceeded', { count: 0 }, 1, 0, ['nodes', false, 0, 11]],
    ['of nodes says nothing of a write that adds none', { count: 5 }, 0, 50, undefined],
    ['of nodes says nothing of a deletion', { count: 5, countHardLimit: 5 }, -1, 0, undefined],
    ['of bytes is exceeded', { bytes: 149 }, 0, 50, ['bytes', false, 149, 150]],
    ['of bytes is reached', { bytes: 150 }, 0, 50, undefined],
    ['of bytes is exceeded by data that shrink', { bytes: 50 }, 0, -10, ['bytes', false, 50, 90]],
    ['of bytes says nothing of data that keep their size', { bytes: 50 }, 0, 0, undefined],
    ['that is hard comes first', { count: 5, byteHardLimit: 120 }, 1, 50, ['bytes', true, 120, 150]],
    ['of nodes that is hard', { countHardLimit: 10, count: 5 }, 1, 0, ['nodes', true, 10, 11]],
    ['that is not set', {}, 100, 100, undefined],
  ])('%s', (_name, allowed, nodes, more, expected) => {
    const breach = quotaBreach({ ...none, ...allowed }, used, nodes, more)
    const found = breach && [breach.what, breach.isHard, breach.limit, breach.use]
    expect(found).toEqual(expected)
  })
})

describe('the subtrees that have a quota', () => {
  it('are found as the deepest one that contains a path, the root never', () => {
    const index = new QuotaIndex()
    expect(index.deepest('/a/b')).toBeUndefined()
    for (const path of ['/', '/a', '/a/b']) index.add(path)
    const deepest = (path: string): string | undefined => index.deepest(path)
    expect(['/a/b/c', '/a/b', '/a/bc', '/a', '/ab', '/b'].map(deepest)).toEqual([
      '/a/b',
      '/a/b',
      '/a',
      '/a',
      undefined,
      undefined,
    ])
    index.delete('/a/b')
    expect(index.deepest('/a/b/c')).toBe('/a')
    expect([index.size, [...index.subjects()]]).toEqual([2, ['/', '/a']])
  })

  it.each([
    ['/zookeeper/quota/a/zookeeper_limits', '/a'],
    ['/zookeeper/quota/a/b/zookeeper_limits', '/a/b'],
    ['/zookeeper/quota/zookeeper_limits', ''],
    ['/zookeeper/quota/a/zookeeper_stats', undefined],
    ['/zookeeper/quota/a/my_zookeeper_limits', undefined],
    ['/zookeeper/quotas/a/zookeeper_limits', undefined],
    ['/a/zookeeper_limits', undefined],
    ['/zookeeper/quota/a', undefined],
  ])('a node %s limits %s', (path, subject) => {
    expect(quotaTarget(path, 'zookeeper_limits')).toBe(subject)
  })
})

describe('the usage of a quota', () => {
  const [folder, stats] = ['/zookeeper/quota/a', '/zookeeper/quota/a/zookeeper_stats']

  class Given {
    tree = new Tree({ extendedTypes: true, digest: true })
    readonly apply = (txn: Txn): number =>
      this.tree.apply({ sessionId: 1n, cxid: 1, zxid: this.tree.lastZxid + 1, time: 1 }, txn)
    readonly create = (path: string, data: string | null = null): number =>
      this.apply(createOf(path, { data: data === null ? null : bytes(data) }))
    readonly usage = (at = stats): string => new TextDecoder().decode(this.tree.dataOf(this.tree.find(at))!)

    constructor(limits: string | null = 'count=5') {
      this.create('/a', '12345')
      this.create(folder)
      if (limits !== null) this.create(`${folder}/zookeeper_limits`, limits)
    }
  }

  it('is that of the subtree, whatever the stats node was created with, and of nothing beside it', () => {
    const given = new Given()
    given.create('/a/null')
    given.create('/ab', '123')
    given.create(stats, 'count=77,bytes=77')
    expect(given.usage()).toBe('count=2,bytes=5')
    given.create('/b', '123')
    given.create('/a/b', '1')
    expect(given.usage()).toBe('count=3,bytes=6')
  })

  it('is counted of an absent subtree too', () => {
    const given = new Given()
    given.create('/zookeeper/quota/none')
    given.create('/zookeeper/quota/none/zookeeper_stats', 'x')
    expect(given.usage('/zookeeper/quota/none/zookeeper_stats')).toBe('count=0,bytes=0')
  })

  it('stays as it is from when the limits are deleted on, and follows the subtree from when they are back', () => {
    const given = new Given()
    given.create(stats)
    given.apply({ type: OpCode.delete, path: `${folder}/zookeeper_limits` })
    given.create('/a/b', '123')
    expect(given.usage()).toBe('count=1,bytes=5')
    given.apply({ type: OpCode.setData, path: stats, data: bytes('garbage'), version: 1 })
    given.create(`${folder}/zookeeper_limits`, 'count=5')
    given.create('/a/c', '1')
    // What was counted before the deletion is out of date, so the subtree is counted again.
    expect(given.usage()).toBe('count=3,bytes=9')
  })

  it('is noted nowhere without a stats node, and stays in one without limits', () => {
    const without = new Given()
    without.create('/a/b', '123')
    expect(without.tree.has(stats)).toBe(false)
    const unlimited = new Given(null)
    unlimited.create(stats)
    unlimited.create('/a/b', '123')
    expect(unlimited.usage()).toBe('count=1,bytes=5')
  })

  it('changes no version, zxid or digest of the stats node', () => {
    const given = new Given()
    given.create(stats)
    const stat = (): unknown => given.tree.statOf(given.tree.find(stats))
    const before = stat()
    given.create('/a/b', '123')
    expect(stat()).toEqual(before)
  })

  it('is counted anew when a snapshot is loaded, whose stats nodes may be inexact', () => {
    const given = new Given()
    given.create(stats)
    // Limits alone, beside which nothing is counted.
    given.create('/zookeeper/quota/b')
    given.create('/zookeeper/quota/b/zookeeper_limits', 'count=5')
    const { tree } = given
    const rows: [string, Uint8Array | null, number][] = []
    tree.scan().next(100, (node) => rows.push([tree.pathOf(node), tree.dataOf(node), tree.aclIdOf(node)]))
    given.tree = new Tree({ extendedTypes: true, digest: true })
    given.tree.clear()
    for (const [path, data, acl] of rows)
      given.tree.loadNode(path, path === stats ? bytes('count=9,bytes=9') : data, acl, {
        ...tree.statOf(tree.find(path)),
      })
    given.tree.endLoad(100)
    expect(given.usage()).toBe('count=1,bytes=5')
    given.create('/a/b', '123')
    expect(given.usage()).toBe('count=2,bytes=8')
  })

  it('of a large subtree is counted in steps of 2,000 nodes where its stats node is created', () => {
    const given = new Given()
    const children = 5000
    for (let i = 0; i < children; i++) given.create(`/a/n${i}`, 'x')
    const { tree } = given
    const header = { sessionId: 1n, cxid: 1, zxid: tree.lastZxid + 1, time: 1 }
    const steps = applyInSteps(tree, header, createOf(stats))
    let turns = 1
    while (steps.next().done !== true) turns++
    expect(turns).toBe(3)
    expect(given.usage()).toBe(`count=${children + 1},bytes=${children + 5}`)
    // Nothing is counted again with the next transaction that is applied in steps.
    given.apply({ type: OpCode.setData, path: stats, data: bytes('count=1,bytes=1'), version: 1 })
    runToEnd(applyInSteps(tree, { ...header, zxid: tree.lastZxid + 1 }, createOf('/b')))
    expect(given.usage()).toBe('count=1,bytes=1')
  })
})
