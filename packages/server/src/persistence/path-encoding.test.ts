import { expect, it } from 'vitest'
import { createOf } from '../core/testing/create-of.ts'
import { hasNonAsciiPaths } from './path-encoding.ts'
import { newTree } from './testing/log-fixture.ts'

it.each([
  [[], false],
  [['/a', '/a/\u007f'], false],
  [['/\u0080'], true],
  [['/ü', '/a'], true],
  [['/a', '/a/名', '/b'], true],
  [['/zookeeper/ü'], false],
  [['/zookeeper-ü'], true],
])('the digest of a tree with %j depends on the encoding of paths: %s', (paths, expected) => {
  const tree = newTree()
  for (const [at, path] of paths.entries())
    tree.apply({ sessionId: 1n, cxid: 0, zxid: at + 1, time: 1 }, createOf(path))
  const addTraversal = tree.addTraversal.bind(tree)
  let open = 0
  tree.addTraversal = (traversal) => {
    const end = addTraversal(traversal)
    open++
    return () => (open--, end())
  }
  expect(hasNonAsciiPaths(tree)).toBe(expected)
  expect(open).toBe(0)
})
