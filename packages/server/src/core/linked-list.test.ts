import fc from 'fast-check'
import { expect, it } from 'vitest'
import { LinkedList } from './linked-list.ts'

class LinkedPart {
  readonly name: number
  previous: LinkedPart | undefined
  next: LinkedPart | undefined

  constructor(name: number) {
    this.name = name
  }
}

it('a list holds what a set does, in the same order, whatever is added and removed', () => {
  fc.assert(
    fc.property(fc.array(fc.nat(9)), (names) => {
      const items = Array.from({ length: 10 }, (_, name) => new LinkedPart(name))
      const [list, model] = [new LinkedList<LinkedPart>(), new Set<LinkedPart>()]
      for (const name of names) {
        const item = items[name]!
        if (model.delete(item)) list.remove(item)
        else {
          model.add(item)
          list.add(item)
        }
        const listed: LinkedPart[] = []
        for (let each = list.first; each !== undefined; each = each.next) listed.push(each)
        expect(listed).toEqual([...model])
      }
    }),
  )
})
