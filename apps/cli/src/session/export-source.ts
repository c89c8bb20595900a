import { ErrorCode } from '@zabra/protocol'
import { hasCode } from '../exit-codes.ts'
import type { ExportedNode } from './export-format.ts'
import { dataOrNull } from './node-data.ts'
import { isReserved } from './paths.ts'
import { mapConcurrent, type Client, type Stat, type Visit } from '@zabra/client'

/** Reads the nodes of a subtree for an export. The protocol does not reveal containers and times to live. */
export async function* readNodes(
  zk: Client,
  root: string,
  signal: AbortSignal,
  unreadable: (path: string) => void,
): AsyncGenerator<ExportedNode & { readonly isEphemeral: boolean }> {
  const filter = (child: string): boolean => !isReserved(child)
  const nodes = zk.walk(root, { stats: true, signal, onUnreadable: unreadable, filter })
  for await (const node of mapConcurrent(nodes, (node) => readNode(zk, node, unreadable)))
    if (node !== undefined) yield node
}

/**
 * Returns the number of the next sequential child, which is that of the creations of children so far. A stat has twice the creations
 * less the children as its `cversion`.
 */
export const nextSequence = ({ cversion, numChildren }: Stat): number => (cversion + numChildren) / 2

/** Returns the sequence of a node for an export; none where it never had children. */
export const sequenceField = (sequence: number): Pick<ExportedNode, 'sequence'> =>
  sequence > 0 ? { sequence } : {}

async function readNode(zk: Client, { path, stat }: Visit, unreadable: (path: string) => void) {
  try {
    const [found, { acl }] = await Promise.all([zk.getData(path), zk.getACL(path)])
    return {
      path,
      data: dataOrNull(found),
      acl,
      isEphemeral: (stat?.ephemeralOwner ?? 0n) !== 0n,
      ...(stat === undefined ? {} : sequenceField(nextSequence(stat))),
    }
  } catch (error) {
    if (hasCode(error, ErrorCode.NOAUTH)) unreadable(path)
    else if (!hasCode(error, ErrorCode.NONODE)) throw error
    return undefined
  }
}
