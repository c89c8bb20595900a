import type { SnapshotContents } from '@zabra/server/files'

/** The size of a subtree, its root included. */
export interface SubtreeSummary {
  readonly path: string
  readonly nodes: number
  readonly bytes: number
}

/** Returns the sizes of the subtrees at `root` and down to `depth` levels below it, by path. */
export function summarizeSubtrees(snapshot: SnapshotContents, root: string, depth: number): SubtreeSummary[] {
  const sums = new Map<string, { nodes: number; bytes: number }>()
  for (const { path, data } of snapshot.nodes())
    for (const subtree of subtreesOf(path, root, depth)) {
      const sum = sums.get(subtree) ?? { nodes: 0, bytes: 0 }
      sum.nodes++
      sum.bytes += data?.length ?? 0
      sums.set(subtree, sum)
    }
  return [...sums]
    .map(([path, sum]) => ({ path, ...sum }))
    .sort((a, b) => (a.path < b.path ? -1 : a.path > b.path ? 1 : 0))
}

/** Yields the subtrees that a path counts for: `root`, and its descendants on the way to the path. */
function* subtreesOf(path: string, root: string, depth: number): Generator<string> {
  const prefix = root === '/' ? '/' : `${root}/`
  if (path !== root && !path.startsWith(prefix)) return
  yield root
  const names = path.slice(prefix.length).split('/')
  for (let level = 1; level <= Math.min(depth, path === root ? 0 : names.length); level++)
    yield prefix + names.slice(0, level).join('/')
}
