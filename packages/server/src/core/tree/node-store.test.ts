import { Reader, Writer } from '@zabra/protocol'
import { expect, it } from 'vitest'
import { NodeStore, NONE } from './node-store.ts'
import { PathIndex } from './path-index.ts'

const KEY = 7
const readerOf = (path: string): Reader => {
  const writer = new Writer()
  writer.string(path)
  return new Reader(writer.take())
}

it('NodeStore hashes paths as PathIndex does after the index of the node found last was reused for another path', () => {
  const store = new NodeStore(KEY)
  const index = new PathIndex(KEY)
  const root = store.add('/', NONE)
  const node = store.add('/first', root)
  expect(store.findFromReader(readerOf('/first'))).toBe(node)
  store.remove(node)
  expect(store.add('/second', root)).toBe(node)
  for (const path of ['/first', '/second', '/', '', '/ü', '/\u{1f600}'])
    expect(store.hash(path)).toBe(index.hash(path))
  expect([store.find('/first'), store.find('/second', index.hash('/second'))]).toEqual([NONE, node])
})
