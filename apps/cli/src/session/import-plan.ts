import { ErrorCode, parentOf, Perms } from '@zabra/protocol'
import { hasCode } from '../exit-codes.ts'
import type { ExportedNodeLine } from './export-file.ts'
import type { Identities } from './identities.ts'
import { dataOrNull } from './node-data.ts'
import { isReserved } from './paths.ts'
import { mapConcurrent, type ACL, type Client } from '@zabra/client'
import { aclEquals } from '../text/acl.ts'

/** The changes that an import makes. */
export interface ImportPlan {
  readonly create: readonly ExportedNodeLine[]
  /** Existing nodes with other data or another access list, to be overwritten. */
  readonly replace: readonly ExportedNodeLine[]
  /** Nodes with the temporary access list of an import that was killed; only the final list has to be set. */
  readonly restore: readonly ExportedNodeLine[]
  /** Existing nodes that are as in the export. */
  readonly same: readonly ExportedNodeLine[]
  /** Existing nodes that are not changed. */
  readonly keep: readonly string[]
  /** Existing nodes that differ, when neither skip nor replace was requested. */
  readonly conflicts: readonly string[]
  /** Nodes in `/zookeeper`, which are left out. */
  readonly reserved: readonly string[]
  /** Missing parents that are not in the export; they are created empty. */
  readonly parents: readonly string[]
}

/** Compares nodes, by their target paths, with the tree on the server. Changes nothing and keeps no data in memory. */
export async function planImport(
  zk: Client,
  nodes: readonly ExportedNodeLine[],
  readData: (node: ExportedNodeLine) => Promise<Uint8Array | null>,
  existing: 'refuse' | 'skip' | 'replace',
  identities: Identities,
): Promise<ImportPlan> {
  const imported = nodes
    .filter(({ path }) => !isReserved(path))
    .toSorted((a, b) => comparePaths(a.path, b.path))
  const plan = {
    create: [] as ExportedNodeLine[],
    replace: [] as ExportedNodeLine[],
    restore: [] as ExportedNodeLine[],
    same: [] as ExportedNodeLine[],
    keep: [] as string[],
    conflicts: [] as string[],
    reserved: nodes.filter(({ path }) => isReserved(path)).map(({ path }) => path),
    parents: [] as string[],
  }
  const compare = async (node: ExportedNodeLine) => ({
    node,
    found: await compareNode(zk, node, readData, identities),
  })
  for await (const { node, found } of mapConcurrent(imported, compare)) {
    if (found === 'missing') plan.create.push(node)
    else if (found === 'same') {
      plan.same.push(node)
      plan.keep.push(node.path)
    } else if (found === 'temporary') plan.restore.push(node)
    else if (existing === 'replace') plan.replace.push(node)
    // The root always exists, so it is no conflict.
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
 * Returns the entries that an import adds to an access list temporarily: they let this client, by its address, create children,
 * delete them again on rollback, and set the final access list.
 */
export const temporaryAcl = ({ addresses }: Identities): ACL[] =>
  addresses.map((address) => ({ perms: TEMPORARY_PERMS, scheme: 'ip', id: address }))

/**
 * Compares a node on the server with the imported one. Resolves to `temporary` when only the access list differs, by the entries
 * of an import that was killed before it set the final list.
 */
async function compareNode(
  zk: Client,
  node: ExportedNodeLine,
  readData: (node: ExportedNodeLine) => Promise<Uint8Array | null>,
  identities: Identities,
): Promise<'missing' | 'same' | 'temporary' | 'different'> {
  let found: { data: Uint8Array | null; acl: ACL[] }
  try {
    const [read, { acl }] = await Promise.all([zk.getData(node.path), zk.getACL(node.path)])
    found = { data: dataOrNull(read), acl }
  } catch (error) {
    if (hasCode(error, ErrorCode.NONODE)) return 'missing'
    // Without read permission the node may differ.
    if (hasCode(error, ErrorCode.NOAUTH)) return 'different'
    throw error
  }
  const isSame = aclEquals(node.acl, found.acl)
  const isTemporary =
    identities.addresses.length > 0 && aclEquals([...node.acl, ...temporaryAcl(identities)], found.acl)
  if (!isSame && !isTemporary) return 'different'
  if (!isSameData(await readData(node), found.data)) return 'different'
  return isSame ? 'same' : 'temporary'
}

const isSameData = (a: Uint8Array | null, b: Uint8Array | null): boolean =>
  a === null || b === null ? a === b : Buffer.compare(a, b) === 0

const comparePaths = (a: string, b: string): number => (a < b ? -1 : a > b ? 1 : 0)
