import type { SnapshotContents, SnapshotNode } from '@zabra/server/files'
import { formatAcl, fromStoredAcl } from '../text/acl.ts'

/** A node that two snapshots do not have in common. */
export type NodeDifference =
  | { readonly kind: 'added' | 'removed'; readonly path: string; readonly bytes: number }
  | {
      readonly kind: 'changed'
      readonly path: string
      readonly what: readonly string[]
      readonly bytes: number
    }

/**
 * Yields the differences between two snapshots: the nodes that only the later one has, and those that have changed, in its order;
 * then those that only the earlier one has.
 */
export function* compareSnapshots(
  earlier: SnapshotContents,
  later: SnapshotContents,
): Generator<NodeDifference> {
  const before = new Map<string, SnapshotNode>()
  for (const node of earlier.nodes()) before.set(node.path, node)
  for (const node of later.nodes()) {
    const { path } = node
    const bytes = sizeOf(node)
    const old = before.get(path)
    before.delete(path)
    if (old === undefined) yield { kind: 'added', path, bytes }
    else {
      const what = changesOf(old, node)
      if (what.length > 0) yield { kind: 'changed', path, what, bytes: bytes - sizeOf(old) }
    }
  }
  for (const node of before.values()) yield { kind: 'removed', path: node.path, bytes: sizeOf(node) }
}

const sizeOf = ({ data }: SnapshotNode): number => data?.length ?? 0

/** Returns what differs between two states of one path. A node that was deleted and created again has another czxid. */
function changesOf(old: SnapshotNode, node: SnapshotNode): string[] {
  const [a, b] = [old.stat, node.stat]
  if (a.czxid !== b.czxid) return ['created again']
  return [
    ...(a.mzxid === b.mzxid && isSameData(old.data, node.data) ? [] : ['data']),
    ...(a.aversion === b.aversion && formatAcl(fromStoredAcl(old.acl)) === formatAcl(fromStoredAcl(node.acl))
      ? []
      : ['acl']),
    ...(a.pzxid === b.pzxid && old.children === node.children ? [] : ['children']),
  ]
}

const isSameData = (a: Uint8Array | null, b: Uint8Array | null): boolean =>
  a === null || b === null ? a === b : Buffer.compare(a, b) === 0
