import { OPEN_ACL_UNSAFE, OpCode } from '@zabra/protocol'
import { SeededRandom } from '@zabra/runtime'
import { expect, it } from 'vitest'
import { DescendantCount, Tree } from './index.ts'

it.each([1, 2, 3, 4, 5, 6, 7, 8])(
  'counts in steps what is below a path as it was in the beginning, whatever changes meanwhile (seed %i)',
  (seed) => {
    const random = new SeededRandom(seed)
    const tree = new Tree({ extendedTypes: true, digest: false })
    const living = new Set<string>()
    let zxid = 0
    const apply = (txn: Parameters<Tree['apply']>[1]): void =>
      void tree.apply({ sessionId: 1n, cxid: 1, zxid: ++zxid, time: 0 }, txn)
    const change = (): void => {
      const path = `/${['in', 'out'][random.below(2)]}/${random.below(40)}`
      if (living.delete(path)) return apply({ type: OpCode.delete, path })
      living.add(path)
      const made = { data: null, acl: OPEN_ACL_UNSAFE, ephemeral: false, parentCVersion: -1 }
      apply({ type: OpCode.create2, path, ...made })
    }
    for (const path of ['/in', '/out'])
      apply({
        type: OpCode.create2,
        path,
        data: null,
        acl: OPEN_ACL_UNSAFE,
        ephemeral: false,
        parentCVersion: -1,
      })
    for (let i = 0; i < 200; i++) {
      for (let j = random.below(20); j > 0; j--) change()
      const expected = [...living].filter((path) => path.startsWith('/in/')).length
      const count = new DescendantCount(tree, '/in')
      do for (let j = random.below(6); j > 0; j--) change()
      while (count.next(1 + random.below(10)))
      count.done()
      expect(count.count, `round ${i}`).toBe(expected)
    }
  },
)
