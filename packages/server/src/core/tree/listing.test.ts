import { OpCode } from '@zabra/protocol'
import { SeededRandom } from '@zabra/runtime'
import { expect, it } from 'vitest'
import { createOf } from '../testing/create-of.ts'
import type { Txn } from '../types.ts'
import { ChildPathsCursor, DescendantCounter, Tree } from './index.ts'

/** Creates and deletes random nodes below `/in` and `/out`. */
class RandomTree {
  readonly random: SeededRandom
  readonly tree = new Tree({ extendedTypes: true, digest: false })
  readonly living = new Set<string>()
  #zxid = 0

  constructor(seed: number) {
    this.random = new SeededRandom(seed)
    for (const path of ['/in', '/out']) this.#create(path)
  }

  get inside(): string[] {
    return [...this.living].filter((path) => path.startsWith('/in/'))
  }

  change(): void {
    const path = `/${['in', 'out'][this.random.below(2)]}/${this.random.below(40)}`
    if (this.living.delete(path)) return this.#apply({ type: OpCode.delete, path })
    this.living.add(path)
    this.#create(path)
  }

  #create(path: string): void {
    this.#apply(createOf(path))
  }

  #apply(txn: Txn): void {
    this.tree.apply({ sessionId: 1n, cxid: 1, zxid: ++this.#zxid, time: 0 }, txn)
  }
}

const SEEDS = [1, 2, 3, 4, 5, 6, 7, 8]

it.each(SEEDS)(
  'DescendantCounter counts the descendants that a path had at its start, whatever changes between its steps (seed %i)',
  (seed) => {
    const world = new RandomTree(seed)
    const { random, tree } = world
    for (let i = 0; i < 200; i++) {
      for (let j = random.below(20); j > 0; j--) world.change()
      const expected = world.inside.length
      const count = new DescendantCounter(tree, '/in')
      do for (let j = random.below(6); j > 0; j--) world.change()
      while (count.next(1 + random.below(10)))
      count.close()
      expect(count.count, `round ${i}`).toBe(expected)
    }
  },
)

it.each(SEEDS)(
  'ChildPathsCursor collects the children that a node had at its start, whatever changes between its steps (seed %i)',
  (seed) => {
    const world = new RandomTree(seed)
    const { random, tree } = world
    for (let i = 0; i < 400; i++) {
      for (let j = random.below(20); j > 0; j--) world.change()
      const expected = world.inside
      const children = new ChildPathsCursor(tree, tree.find('/in'))
      do for (let j = random.below(6); j > 0; j--) world.change()
      while (children.next(1 + random.below(10)))
      children.close()
      expect(children.lists.flat().toSorted(), `round ${i}`).toEqual(expected.toSorted())
      expect(children.bytes).toBe(
        expected.join('').length - expected.length * '/in/'.length + expected.length * 4,
      )
    }
  },
)
