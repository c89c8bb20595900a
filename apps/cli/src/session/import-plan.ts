import { aclEquals, ErrorCode, parentOf, Perms, type ACL } from '@zabra/protocol'
import { isCode } from '../exit-codes.ts'
import type { ExportedNode } from './export-format.ts'
import { isReserved, mapAhead } from './walk.ts'
import type { WriteOp, ZooKeeper } from './zookeeper.ts'

/** What an import would do. */
export interface Plan {
  readonly create: readonly ExportedNode[]
  /** Existing nodes whose data or access list differ. */
  readonly replace: readonly ExportedNode[]
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
): Promise<Plan> {
  const ours = nodes.filter(({ path }) => !isReserved(path)).toSorted((a, b) => compare(a.path, b.path))
  const plan = {
    create: [] as ExportedNode[],
    replace: [] as ExportedNode[],
    keep: [] as string[],
    conflicts: [] as string[],
    reserved: nodes.filter(({ path }) => isReserved(path)).map(({ path }) => path),
    parents: [] as string[],
  }
  const look = async (node: ExportedNode) => ({ node, found: await content(zk, node.path) })
  for await (const { node, found } of mapAhead(ours, look)) {
    if (found === undefined) plan.create.push(node)
    else if (found !== 'unreadable' && same(node, found)) plan.keep.push(node.path)
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

/** Nodes in one transaction, and the bytes at which it is closed earlier; a server takes about a megabyte. */
const BATCH = 100
const BATCH_BYTES = 400_000

/** Carries a plan out, parents first. `done` hears how many nodes are there. */
export async function carryOut(
  zk: ZooKeeper,
  plan: Plan,
  signal: AbortSignal,
  done: (nodes: number) => void,
): Promise<void> {
  for (const path of plan.parents) {
    try {
      await zk.create(path, null)
    } catch (error) {
      if (!isCode(error, ErrorCode.NODEEXISTS)) throw error
    }
  }
  const inner = new Set(plan.create.map(({ path }) => parentOf(path)))
  const later = plan.create.filter(({ path, acl }) => inner.has(path) && !letsEverybodyCreate(acl))
  const opening = later.length === 0 ? [] : await openingFor(zk)
  const closed = new Set(later)
  const ops: WriteOp[] = []
  for (const node of plan.create) {
    const acl = closed.has(node) ? [...node.acl, ...opening] : node.acl
    ops.push({ op: 'create', path: node.path, data: node.data, acl })
  }
  for (const { path, data } of plan.replace) ops.push({ op: 'setData', path, data })
  let count = 0
  for (const batch of batches(ops)) {
    signal.throwIfAborted()
    await zk.multi(batch)
    done((count += batch.length))
  }
  // Lists of nodes that got children come last, the deepest first, as they may forbid what is still to do.
  for (const { path, acl } of [...later, ...plan.replace].toReversed()) await zk.setACL(path, acl)
}

/** Lets this client, by its address, create children below a node and set its own list afterwards; nobody else. */
async function openingFor(zk: ZooKeeper): Promise<ACL[]> {
  const addresses = (await zk.whoAmI()).filter(({ scheme }) => scheme === 'ip')
  return addresses.map(({ user }) => ({ perms: Perms.CREATE | Perms.ADMIN, id: { scheme: 'ip', id: user } }))
}

const letsEverybodyCreate = (acl: readonly ACL[]): boolean =>
  acl.some(({ perms, id }) => id.scheme === 'world' && (perms & Perms.CREATE) !== 0)

function* batches(ops: readonly WriteOp[]): Generator<WriteOp[]> {
  let batch: WriteOp[] = []
  let bytes = 0
  for (const op of ops) {
    const size = op.path.length + (('data' in op && op.data?.length) || 0) + 100
    if (batch.length > 0 && (batch.length >= BATCH || bytes + size > BATCH_BYTES)) {
      yield batch
      batch = []
      bytes = 0
    }
    batch.push(op)
    bytes += size
  }
  if (batch.length > 0) yield batch
}

async function content(
  zk: ZooKeeper,
  path: string,
): Promise<{ data: Uint8Array | null; acl: ACL[] } | 'unreadable' | undefined> {
  try {
    const [{ data }, { acl }] = await Promise.all([zk.getData(path), zk.getACL(path)])
    return { data, acl }
  } catch (error) {
    if (isCode(error, ErrorCode.NONODE)) return undefined
    if (isCode(error, ErrorCode.NOAUTH)) return 'unreadable'
    throw error
  }
}

function same(node: ExportedNode, found: { data: Uint8Array | null; acl: ACL[] }): boolean {
  const [a, b] = [node.data, found.data]
  const equal = a === null || b === null ? a === b : Buffer.compare(a, b) === 0
  return equal && aclEquals(node.acl, found.acl)
}

const compare = (a: string, b: string): number => (a < b ? -1 : a > b ? 1 : 0)
