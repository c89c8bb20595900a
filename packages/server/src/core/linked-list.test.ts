import fc from 'fast-check'
import { expect, it } from 'vitest'
import { LinkedList } from './linked-list.ts'

class Item {
  readonly name: number
  previous: Item | undefined
  next: Item | undefined

  constructor(name: number) {
    this.name = name
  }
}

it('a list holds what a set does, in the same order, whatever is added and removed', () => {
  fc.assert(
    fc.property(fc.array(fc.nat(9)), (names) => {
      const items = Array.from({ length: 10 }, (_, name) => new Item(name))
      const [list, model] = [new LinkedList<Item>(), new Set<Item>()]
      for (const name of names) {
        const item = items[name]!
        if (model.delete(item)) list.remove(item)
        else {
          model.add(item)
          list.add(item)
        }
        const listed: Item[] = []
        for (let each = list.first; each !== undefined; each = each.next) listed.push(each)
        expect(listed).toEqual([...model])
      }
    }),
  )
})
