import { aclEquals, ErrorCode, parentOf, Perms, type ACL } from '@zabra/protocol'
import { hasCode } from '../exit-codes.ts'
import type { ExportedNodeLine } from './export-file.ts'
import type { Identities } from './identities.ts'
import { isReserved } from './paths.ts'
import { mapConcurrent } from '@zabra/client'
import type { ZooKeeper } from './zookeeper.ts'

/** What an import would do. */
export interface ImportPlan {
  readonly create: readonly ExportedNodeLine[]
  /** Existing nodes whose data or access list differ. */
  readonly replace: readonly ExportedNodeLine[]
  /** Nodes of an import that was killed: only their access lists are still to be closed. */
  readonly restore: readonly ExportedNodeLine[]
  /** Existing nodes that stay as they are. */
  readonly keep: readonly string[]
  /** Existing nodes of which nobody said what to do. */
  readonly conflicts: readonly string[]
  /** Nodes of the server itself. */
  readonly reserved: readonly string[]
  /** Parents that are neither in the export nor there; they are created empty. */
  readonly parents: readonly string[]
}

/** Compares nodes, whose paths are those at which they are to be, with the tree. Keeps no data and changes nothing. */
export async function planImport(
  zk: ZooKeeper,
  nodes: readonly ExportedNodeLine[],
  dataOf: (node: ExportedNodeLine) => Promise<Uint8Array | null>,
  existing: 'refuse' | 'skip' | 'replace',
  us: Identities,
): Promise<ImportPlan> {
  const ours = nodes.filter(({ path }) => !isReserved(path)).toSorted((a, b) => compare(a.path, b.path))
  const plan = {
    create: [] as ExportedNodeLine[],
    replace: [] as ExportedNodeLine[],
    restore: [] as ExportedNodeLine[],
    keep: [] as string[],
    conflicts: [] as string[],
    reserved: nodes.filter(({ path }) => isReserved(path)).map(({ path }) => path),
    parents: [] as string[],
  }
  const look = async (node: ExportedNodeLine) => ({ node, found: await compareNode(zk, node, dataOf, us) })
  for await (const { node, found } of mapConcurrent(ours, look)) {
    if (found === 'missing') plan.create.push(node)
    else if (found === 'same') plan.keep.push(node.path)
    else if (found === 'left open') plan.restore.push(node)
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

const TEMPORARY_PERMS = Perms.CREATE | Perms.DELETE | Perms.READ | Perms.ADMIN

/**
 * What lets this client, by its address and nobody else, create children below a node, delete them again if it is
 * interrupted, and set the node's own list afterwards.
 */
export const temporaryAcl = ({ addresses }: Identities): ACL[] =>
  addresses.map((address) => ({ perms: TEMPORARY_PERMS, id: { scheme: 'ip', id: address } }))

/**
 * How a node of the tree compares with the one that is to be there. It is left open when it is what an import makes of it
 * on the way, which was killed before it could close the node.
 */
async function compareNode(
  zk: ZooKeeper,
  node: ExportedNodeLine,
  dataOf: (node: ExportedNodeLine) => Promise<Uint8Array | null>,
  us: Identities,
): Promise<'missing' | 'same' | 'left open' | 'other'> {
  let found: { data: Uint8Array | null; acl: ACL[] }
  try {
    const [{ data }, { acl }] = await Promise.all([zk.getData(node.path), zk.getACL(node.path)])
    found = { data, acl }
  } catch (error) {
    if (hasCode(error, ErrorCode.NONODE)) return 'missing'
    // Nobody can tell what is there.
    if (hasCode(error, ErrorCode.NOAUTH)) return 'other'
    throw error
  }
  const isSame = aclEquals(node.acl, found.acl)
  const isOpen = us.addresses.length > 0 && aclEquals([...node.acl, ...temporaryAcl(us)], found.acl)
  if (!isSame && !isOpen) return 'other'
  if (!isSameData(await dataOf(node), found.data)) return 'other'
  return isSame ? 'same' : 'left open'
}

const isSameData = (a: Uint8Array | null, b: Uint8Array | null): boolean =>
  a === null || b === null ? a === b : Buffer.compare(a, b) === 0

const compare = (a: string, b: string): number => (a < b ? -1 : a > b ? 1 : 0)
