import { aclEquals } from '../text/acl.ts'
import type { ExportedNode } from './export-format.ts'

/** A difference of two subtrees at a path below their roots; `/` is the root. */
export interface Difference {
  readonly kind: 'added' | 'removed' | 'changed'
  readonly path: string
  readonly from?: ExportedNode
  readonly to?: ExportedNode
  readonly data: boolean
  readonly acl: boolean
}

/** Yields the differences of two subtrees, each in the order of a walk: parents first, children by name. */
export async function* diffTrees(
  from: AsyncIterable<ExportedNode>,
  to: AsyncIterable<ExportedNode>,
): AsyncGenerator<Difference> {
  const [left, right] = [from[Symbol.asyncIterator](), to[Symbol.asyncIterator]()]
  try {
    let [a, b] = await Promise.all([left.next(), right.next()])
    while (!a.done || !b.done) {
      const order = a.done ? 1 : b.done ? -1 : comparePaths(a.value.path, b.value.path)
      if (order === 0) {
        const difference = compareNodes(a.value as ExportedNode, b.value as ExportedNode)
        if (difference !== undefined) yield difference
        ;[a, b] = await Promise.all([left.next(), right.next()])
      } else if (order < 0) {
        const node = a.value as ExportedNode
        yield { kind: 'removed', path: node.path, from: node, data: true, acl: true }
        a = await left.next()
      } else {
        const node = b.value as ExportedNode
        yield { kind: 'added', path: node.path, to: node, data: true, acl: true }
        b = await right.next()
      }
    }
  } finally {
    await Promise.all([left.return?.(), right.return?.()])
  }
}

/** Compares two paths in the order of a walk. */
export function comparePaths(a: string, b: string): number {
  const [left, right] = [a.split('/'), b.split('/')]
  for (let at = 0; at < left.length && at < right.length; at++)
    if (left[at] !== right[at]) return left[at]! < right[at]! ? -1 : 1
  if (a === b) return 0
  // The root of both sides sorts before its children.
  if (a === '/') return -1
  if (b === '/') return 1
  return left.length - right.length
}

function compareNodes(from: ExportedNode, to: ExportedNode): Difference | undefined {
  const data = Buffer.compare(from.data ?? new Uint8Array(0), to.data ?? new Uint8Array(0)) !== 0
  const acl = !aclEquals(from.acl, to.acl)
  return data || acl ? { kind: 'changed', path: from.path, from, to, data, acl } : undefined
}
