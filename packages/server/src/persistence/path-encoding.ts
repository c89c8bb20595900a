import type { Tree } from '../core/tree/index.ts'

/**
 * Returns whether the digest of the tree depends on how paths are encoded. Apache ZooKeeper uses the default charset of the
 * JVM, which is not always UTF-8 (disk-format 6.1).
 */
export function hasNonAsciiPaths(tree: Tree): boolean {
  const cursor = tree.scan()
  try {
    let found = false
    cursor.next(Infinity, (node) => {
      // oxlint-disable-next-line no-control-regex -- everything up to U+007F is meant, control characters too
      found ||= !tree.pathOf(node).startsWith('/zookeeper/') && !/^[\u0000-\u007f]*$/.test(tree.pathOf(node))
    })
    return found
  } finally {
    cursor.close()
  }
}
