import { OpCode } from '@zabra/protocol'
import { SeededRandom } from '@zabra/runtime'
import { afterEach, describe, expect, it } from 'vitest'
import { createOf } from '../../../core/testing/create-of.ts'
import { Tree } from '../../../core/tree/index.ts'
import { TestServer } from '../../../testing/test-server.ts'
import { treeUsage, type NodeUsage, type TreeUsage } from './tree-usage.ts'

/** A tree with random nodes: those named `k` stay, those named `t` come and go. */
class RandomTree {
  readonly tree = new Tree({ extendedTypes: true, digest: false })
  /** The bytes of each node. */
  readonly sizes = new Map<string, number>()
  readonly #random: SeededRandom
  #zxid = 0

  constructor(seed: number) {
    this.#random = new SeededRandom(seed)
    this.create('/in', 3)
    for (let i = 0; i < 150; i++) this.grow('k')
  }

  grow(kind: 'k' | 't'): void {
    const above = [...this.sizes.keys()].filter((path) => path.split('/').length < 6)
    const parent = above[this.#random.below(above.length)]!
    this.create(`${parent}/${kind}${this.#zxid}`, this.#random.below(50))
  }

  create(path: string, size: number): void {
    this.sizes.set(path, size)
    this.#apply(createOf(path, { data: new Uint8Array(size) }))
  }

  /** Deletes a node without children that may go, and creates one. */
  change(): void {
    this.grow('t')
    const leaves = [...this.sizes.keys()].filter(
      (path) => /\/t\d+$/.test(path) && this.tree.childCount(this.tree.find(path)) === 0,
    )
    const path = leaves[this.#random.below(leaves.length)]!
    if (this.#random.below(4) === 0) return
    this.delete(path)
  }

  delete(path: string): void {
    this.sizes.delete(path)
    this.#apply({ type: OpCode.delete, path })
  }

  #apply(txn: Parameters<Tree['apply']>[1]): void {
    this.tree.apply({ sessionId: 1n, cxid: 1, zxid: ++this.#zxid, time: 1 }, txn)
  }

  /** Walks with `between` called between two steps. */
  usage(path: string, depth: number, between = (): void => {}): TreeUsage {
    const steps = treeUsage(this.tree, path, depth)
    for (;;) {
      const step = steps.next()
      if (step.done === true) return step.value!
      between()
    }
  }
}

/** Adds up the nodes of a map that are below a path. */
function usageIn(sizes: ReadonlyMap<string, number>, path: string): NodeUsage {
  const below = [...sizes].filter(([other]) => other.startsWith(`${path}/`))
  const bytes = sizes.get(path)!
  return {
    path,
    children: below.filter(([other]) => !other.slice(path.length + 1).includes('/')).length,
    descendants: below.length,
    bytes,
    subtreeBytes: below.reduce((sum, [, size]) => sum + size, bytes),
  }
}

const levelOf = (path: string): number => path.split('/').length - 2

describe('a walk for the sizes of nodes', () => {
  it.each([1, 2, 9])('adds up each node down to level %i, the largest subtree first', (depth) => {
    for (let seed = 0; seed < 10; seed++) {
      const random = new RandomTree(seed)
      const { node, nodes, omitted } = random.usage('/in', depth)
      expect(node).toEqual(usageIn(random.sizes, '/in'))
      const expected = [...random.sizes.keys()].filter((path) => path !== '/in' && levelOf(path) <= depth)
      expect(nodes.toSorted((a, b) => (a.path < b.path ? -1 : 1))).toEqual(
        expected.toSorted().map((path) => usageIn(random.sizes, path)),
      )
      const sizes = nodes.map(({ subtreeBytes }) => subtreeBytes)
      expect([sizes, omitted]).toEqual([sizes.toSorted((a, b) => b - a), 0])
    }
  })

  it('counts all that stays in its place while other nodes come and go', () => {
    for (let seed = 0; seed < 10; seed++) {
      const random = new RandomTree(seed)
      const staying = new Map(random.sizes)
      for (let i = 0; i < 50; i++) random.grow('t')
      const ever = new Map(random.sizes)
      const { nodes } = random.usage('/in', 9, () => {
        for (let i = 0; i < 10; i++) random.change()
        for (const [path, size] of random.sizes) ever.set(path, size)
      })
      const found = new Map(nodes.map((node) => [node.path, node]))
      expect(found.size).toBe(nodes.length)
      for (const path of staying.keys()) {
        if (path === '/in') continue
        const { descendants, subtreeBytes } = found.get(path)!
        const [least, most] = [usageIn(staying, path), usageIn(ever, path)]
        expect(descendants).toBeGreaterThanOrEqual(least.descendants)
        expect(descendants).toBeLessThanOrEqual(most.descendants)
        expect(subtreeBytes).toBeGreaterThanOrEqual(least.subtreeBytes)
        expect(subtreeBytes).toBeLessThanOrEqual(most.subtreeBytes)
      }
    }
  })

  it('takes no node for a deleted one that had its place in the store', () => {
    const random = new RandomTree(1)
    random.create('/top', 0)
    for (let i = 0; i < 23; i++) random.create(`/top/x${i}`, 1)
    random.create('/top/deleted', 100)
    random.create('/top/y', 1)
    let isFirst = true
    const { node, nodes } = random.usage('/top', 1, () => {
      if (!isFirst) return
      isFirst = false
      random.delete('/top/deleted')
      random.create('/top/y/new', 5)
    })
    expect(nodes.map(({ path }) => path)).toEqual([
      '/top/y',
      ...Array.from({ length: 23 }, (_, i) => `/top/x${i}`),
    ])
    expect(node).toEqual(usageIn(random.sizes, '/top'))
  })

  it('lists the ten thousand largest of very many, a few nodes in a step', () => {
    const random = new RandomTree(1)
    random.create('/many', 0)
    for (let i = 0; i < 12_000; i++) random.create(`/many/${i}`, i % 100)
    let steps = 0
    const { node, nodes, omitted } = random.usage('/many', 1, () => steps++)
    expect([node.children, nodes.length, omitted]).toEqual([12_000, 10_000, 2000])
    expect([nodes[0]!.path, nodes.at(-1)!.bytes]).toEqual(['/many/99', 16])
    expect(steps).toBeGreaterThan(12_000 / 25)
  })

  it('keeps no more characters of paths than four million', () => {
    const random = new RandomTree(1)
    random.create('/long', 0)
    for (let i = 0; i < 50; i++) random.create(`/long/${'x'.repeat(100_000)}${i}`, 0)
    const { nodes, omitted } = random.usage('/long', 1)
    expect([nodes.length, omitted]).toEqual([41, 9])
  })
})

describe('/api/v1/tree', () => {
  let server: TestServer
  afterEach(() => server.stop())

  const ask = async (query: string) => {
    const answer = await server.http.request(`/api/v1/tree${query}`)
    await server.untilIdle()
    return { ...answer, body: JSON.parse(answer.text) as TreeUsage & { readonly next: string | null } }
  }

  async function start(): Promise<void> {
    server = await TestServer.start()
    const client = await server.connect()
    client.create(1, '/a', 0, 'x'.repeat(10))
    for (let i = 0; i < 5; i++) client.create(2 + i, `/a/${i}`, 0, 'x'.repeat(i))
    await server.untilIdle()
  }

  it('shows the level below a path in pages of one walk, which stay as they are while the tree changes', async () => {
    await start()
    const first = (await ask('?path=/a&limit=2')).body
    expect(first.node).toEqual({ path: '/a', children: 5, descendants: 5, bytes: 10, subtreeBytes: 20 })
    expect(first.nodes.map(({ path }) => path)).toEqual(['/a/4', '/a/3'])
    const client = await server.connect()
    client.set(1, '/a/0', 'x'.repeat(1000))
    client.delete(2, '/a/1')
    await server.untilIdle()
    const second = (await ask(`?limit=2&after=${first.next}`)).body
    expect(second.nodes.map(({ path }) => path)).toEqual(['/a/2', '/a/1'])
    const third = (await ask(`?limit=2&after=${second.next}`)).body
    expect([third.nodes.map(({ path }) => path), third.next]).toEqual([['/a/0'], null])
    expect((await ask('?path=/a')).body.nodes[0]!.path).toBe('/a/0')
  })

  it('shows the root and its levels by default, and names no data', async () => {
    await start()
    const { body, text } = await ask('')
    expect(body.node).toMatchObject({ path: '/', descendants: 9 })
    expect(body.nodes.map(({ path }) => path)).toEqual(['/a', '/zookeeper'])
    expect(text).not.toContain('xxx')
  })

  it('is refused for a missing node, a walk that is gone, and what cannot be understood', async () => {
    await start()
    expect((await ask('?path=/none')).status).toBe(404)
    expect((await ask('?after=7-0')).status).toBe(410)
    for (const query of ['?depth=0', '?depth=11', '?limit=0', '?path=a', '?after=1'])
      expect((await ask(query)).status).toBe(400)
    const { next } = (await ask('?path=/a&limit=1')).body
    for (let i = 0; i < 4; i++) await ask('?path=/a')
    expect((await ask(`?after=${next}`)).status).toBe(410)
  })

  it('shares a walk that is under way, and refuses another one meanwhile', async () => {
    await start()
    const client = await server.connect()
    for (let i = 0; i < 6000; i++) client.create(1 + i, `/a/more-${i}`)
    await server.untilIdle()
    const [one, same, other] = ['?path=/a', '?path=/a', '?path=/'].map((query) =>
      server.http.request(`/api/v1/tree${query}`),
    )
    await server.untilIdle()
    expect(await other).toMatchObject({ status: 429, headers: { 'retry-after': '1' } })
    expect((await one!).text).toBe((await same!).text)
    expect((await ask('?path=/')).status).toBe(200)
  })
})
