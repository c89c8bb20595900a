import { describe, expect, it } from 'vitest'
import { NamespaceTraffic } from './namespace-traffic.ts'
import { NONE, NodeStore } from './node-store.ts'

describe('the traffic of first path elements', () => {
  function tree() {
    const store = new NodeStore(7)
    const root = store.add('/', NONE)
    return { store, root, add: (path: string, parent = root) => store.add(path, parent) }
  }
  const sums = ({ measured }: NamespaceTraffic) =>
    Object.fromEntries(measured.map(({ name, read, written }) => [name, [read.totalSum, written.totalSum]]))

  it('is counted for the first path element, and nowhere for the root', () => {
    const { store, root, add } = tree()
    const traffic = new NamespaceTraffic()
    const below = add('/app/b', add('/app'))
    traffic.written(store, below, 7)
    traffic.read(store, below, 7)
    traffic.read(store, root, 5)
    traffic.written(store, root, 5)
    expect(sums(traffic)).toEqual({ app: [6 + 7 + 68, 6 + 7], other: [0, 0] })
  })

  it('of the first 50 that have any is counted each for itself, and of later ones and one named other together', () => {
    const { store, add } = tree()
    const traffic = new NamespaceTraffic()
    traffic.written(store, add('/other'), 1)
    for (let i = 100; i < 200; i++) traffic.written(store, add(`/n${i}`), 5)
    const found = sums(traffic)
    expect(Object.keys(found)).toHaveLength(51)
    expect(found).toMatchObject({ other: [0, 7 + 50 * 10], n100: [0, 10], n149: [0, 10] })
  })

  it('goes on when a first path element is created again, in this tree or another one', () => {
    const { store, add } = tree()
    const traffic = new NamespaceTraffic()
    const node = add('/app')
    traffic.written(store, node, 6)
    store.remove(node)
    const other = add('/late')
    traffic.written(store, other, 5)
    traffic.written(store, add('/app'), 6)
    const again = tree()
    traffic.written(again.store, again.add('/late'), 5)
    traffic.written(again.store, again.add('/app'), 6)
    expect(sums(traffic)).toEqual({ app: [0, 30], late: [0, 20], other: [0, 0] })
  })

  it('of one with a long name is counted with the others', () => {
    const { store, add } = tree()
    const traffic = new NamespaceTraffic()
    traffic.written(store, add(`/${'x'.repeat(100)}`), 5)
    traffic.refused(`/${'x'.repeat(100)}/y`)
    traffic.refused(`/${'x'.repeat(99)}`)
    traffic.refused('/app/b/c')
    traffic.refused('/')
    expect(sums(traffic)).toEqual({ other: [0, 101 + 5], ['x'.repeat(99)]: [0, 0], app: [0, 0] })
    expect(traffic.measured.map(({ refused }) => refused)).toEqual([1, 1, 1])
  })

  it('has percentiles of the last five parts of a window', () => {
    const { store, add } = tree()
    const traffic = new NamespaceTraffic()
    const node = add('/app')
    traffic.read(store, node, 1000)
    traffic.written(store, node, 1000)
    const recent = (): number[] => {
      const { read, written } = traffic.measured.find(({ name }) => name === 'app')!
      return [read, written].map((one) => one.recentPercentile(0.5))
    }
    for (let part = 0; part < 4; part++) traffic.rotate()
    for (const value of recent()) expect(value).toBeGreaterThan(900)
    traffic.rotate()
    expect(recent()).toEqual([NaN, NaN])
  })
})
