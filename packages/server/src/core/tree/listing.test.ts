import { OpCode } from '@zabra/protocol'
import { SeededRandom } from '@zabra/runtime'
import { expect, it } from 'vitest'
import { createOf } from '../testing/create-of.ts'
import type { Txn } from '../types.ts'
import { ChildPathsCursor, DescendantCounter, EphemeralPathsCursor, Tree } from './index.ts'

/** Creates and deletes random nodes below `/in` and `/out`. Those below `/in` are ephemerals of session 2, where `ephemeral` is set. */
class RandomTree {
  readonly random: SeededRandom
  readonly tree = new Tree({ extendedTypes: true, digest: false })
  readonly living = new Set<string>()
  readonly #areEphemeral: boolean
  #zxid = 0

  constructor(seed: number, { ephemeral = false } = {}) {
    this.random = new SeededRandom(seed)
    this.#areEphemeral = ephemeral
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
    const isOwned = path.startsWith('/in/')
    this.#apply(
      createOf(path, { ephemeral: this.#areEphemeral && path.lastIndexOf('/') > 0 }),
      isOwned ? 2n : 1n,
    )
  }

  #apply(txn: Txn, sessionId = 1n): void {
    this.tree.apply({ sessionId, cxid: 1, zxid: ++this.#zxid, time: 0 }, txn)
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

it.each(SEEDS)(
  'EphemeralPathsCursor collects the ephemerals that a session had at its start, whatever changes between its steps (seed %i)',
  (seed) => {
    const world = new RandomTree(seed, { ephemeral: true })
    const { random, tree } = world
    const isEven = (path: string): boolean => Number(path.at(-1)) % 2 === 0
    for (let i = 0; i < 400; i++) {
      for (let j = random.below(20); j > 0; j--) world.change()
      const expected = world.inside.filter(isEven)
      const ephemerals = new EphemeralPathsCursor(tree, 2n, isEven)
      do for (let j = random.below(6); j > 0; j--) world.change()
      while (ephemerals.next(1 + random.below(10)))
      ephemerals.close()
      const found = ephemerals.lists.flat()
      expect(found.toSorted(), `round ${i}`).toEqual(expected.toSorted())
      expect([ephemerals.count, ephemerals.bytes]).toEqual([
        expected.length,
        expected.join('').length + expected.length * 4,
      ])
    }
  },
)
