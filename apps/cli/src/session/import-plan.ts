import { aclEquals, ErrorCode, parentOf, Perms, type ACL } from '@zabra/protocol'
import { isCode } from '../exit-codes.ts'
import type { ExportedNode } from './export-format.ts'
import type { Identities } from './identities.ts'
import { isReserved } from './paths.ts'
import { mapAhead } from '@zabra/client'
import type { ZooKeeper } from './zookeeper.ts'

/** What an import would do. */
export interface Plan {
  readonly create: readonly ExportedNode[]
  /** Existing nodes whose data or access list differ. */
  readonly replace: readonly ExportedNode[]
  /** Nodes of an import that was killed: only their access lists are still to be closed. */
  readonly close: readonly ExportedNode[]
  /** Existing nodes that stay as they are. */
  readonly keep: readonly string[]
  /** Existing nodes of which nobody said what to do. */
  readonly conflicts: readonly string[]
  /** Nodes of the server itself. */
  readonly reserved: readonly string[]
  /** Parents that are neither in the export nor there; they are created empty. */
  readonly parents: readonly string[]
}

/** Compares nodes, whose paths are those at which they are to be, with the tree. Changes nothing. */
export async function planImport(
  zk: ZooKeeper,
  nodes: readonly ExportedNode[],
  existing: 'refuse' | 'skip' | 'replace',
  us: Identities,
): Promise<Plan> {
  const ours = nodes.filter(({ path }) => !isReserved(path)).toSorted((a, b) => compare(a.path, b.path))
  const plan = {
    create: [] as ExportedNode[],
    replace: [] as ExportedNode[],
    close: [] as ExportedNode[],
    keep: [] as string[],
    conflicts: [] as string[],
    reserved: nodes.filter(({ path }) => isReserved(path)).map(({ path }) => path),
    parents: [] as string[],
  }
  const look = async (node: ExportedNode) => ({ node, found: await content(zk, node.path) })
  for await (const { node, found } of mapAhead(ours, look)) {
    if (found === undefined) plan.create.push(node)
    else if (found !== 'unreadable' && same(node, found)) plan.keep.push(node.path)
    else if (found !== 'unreadable' && isLeftOpen(node, found, us)) plan.close.push(node)
    else if (existing === 'replace') plan.replace.push(node)
    // The root of a tree is always there, so it alone is no conflict.
    else if (existing === 'skip' || node.path === '/') plan.keep.push(node.path)
    else plan.conflicts.push(node.path)
  }
  const known = new Set(nodes.map(({ path }) => path))
  for (const { path } of plan.create) {
    const missing: string[] = []
    for (let parent = parentOf(path); parent !== '/' && !known.has(parent); parent = parentOf(parent)) {
      known.add(parent)
      if ((await zk.exists(parent)) === undefined) missing.unshift(parent)
    }
    plan.parents.push(...missing)
  }
  return plan
}

const OPENING = Perms.CREATE | Perms.DELETE | Perms.READ | Perms.ADMIN

/**
 * What lets this client, by its address and nobody else, create children below a node, delete them again if it is
 * interrupted, and set the node's own list afterwards.
 */
export const openingFor = ({ addresses }: Identities): ACL[] =>
  addresses.map((address) => ({ perms: OPENING, id: { scheme: 'ip', id: address } }))

/** Whether a node is what an import makes of it on the way, which was killed before it could close the node. */
const isLeftOpen = (node: ExportedNode, found: Content, us: Identities): boolean =>
  us.addresses.length > 0 && same({ ...node, acl: [...node.acl, ...openingFor(us)] }, found)

interface Content {
  readonly data: Uint8Array | null
  readonly acl: ACL[]
}

async function content(zk: ZooKeeper, path: string): Promise<Content | 'unreadable' | undefined> {
  try {
    const [{ data }, { acl }] = await Promise.all([zk.getData(path), zk.getACL(path)])
    return { data, acl }
  } catch (error) {
    if (isCode(error, ErrorCode.NONODE)) return undefined
    if (isCode(error, ErrorCode.NOAUTH)) return 'unreadable'
    throw error
  }
}

function same(node: ExportedNode, found: Content): boolean {
  const [a, b] = [node.data, found.data]
  const equal = a === null || b === null ? a === b : Buffer.compare(a, b) === 0
  return equal && aclEquals(node.acl, found.acl)
}

const compare = (a: string, b: string): number => (a < b ? -1 : a > b ? 1 : 0)
