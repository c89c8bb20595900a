import { ChildPathsCursor, type Tree } from '../tree/index.ts'

/** Returns the paths of a node's children. */
export function childPaths(tree: Tree, node: number): string[] {
  const children = new ChildPathsCursor(tree, node)
  while (children.next(1000));
  children.close()
  return children.lists.flat()
}
