import { formatPerms, Perms } from '@zabra/protocol'
import { formatSessionId } from '../../../connections/log-context.ts'
import type { SessionId } from '../../../core/types.ts'
import { LIMITS_NAME, STATS_NAME, type Tree } from '../../../core/tree/index.ts'
import { quotaAt } from '../quota-at.ts'

/** Nodes, sessions or quotas that are visited in one step: some ten microseconds, also before the code is compiled. */
const PER_STEP = 25
/** Examples of each kind that are listed. */
const MAX_EXAMPLES = 10
/** Sessions whose ephemeral nodes are measured: those with most of them. */
const MAX_SESSIONS = 3
/** From this share of a limit on it is reported. */
const NEAR = 0.8
/** The last number of a sequential node, after which names repeat their order from below zero. */
const MAX_SEQUENCE = 2 ** 31 - 1
/** Characters of a path that are reported. */
const MAX_PATH = 300

/** Names of nodes whose data are likely secrets. */
const SECRET_NAME =
  /passw(?:or)?d|passphrase|secret|credential|api[-_.]?key|private[-_.]?key|access[-_.]?key|(?:^|[-_.])tokens?$|\.(?:pem|key|p12|jks)$/i

/** How many there are, and the first of them. */
export interface Examples<T> {
  readonly count: number
  readonly first: readonly T[]
}

/** What is unwise in a tree: the answer of `GET /api/v1/findings`. It names nodes, and none of their data. */
export interface TreeFindings {
  readonly nodes: number
  readonly largestNode: { readonly path: string; readonly bytes: number }
  readonly mostChildren: { readonly path: string; readonly children: number }
  /** Nodes whose counter of sequential children has passed 80 % of its range. */
  readonly sequences: Examples<{ readonly path: string; readonly counter: number }>
  /** Limits of quotas that are used to 80 % or more. */
  readonly quotas: Examples<{
    readonly path: string
    readonly what: 'nodes' | 'bytes'
    readonly limit: number
    readonly use: number
  }>
  /** Nodes with data that are named like secrets, which anyone may read or change. */
  readonly openSecrets: Examples<{ readonly path: string; readonly anyone: 'reads' | 'changes' }>
  /** What anyone may do with the root: letters of `cdrwa`. */
  readonly rootPermissions: string
  /** The sessions with most ephemeral nodes, and the bytes of the paths that end with each. */
  readonly ephemerals: readonly {
    readonly session: string
    readonly nodes: number
    readonly bytes: number
  }[]
}

/** Looks at a tree, in steps that yield empty strings. It changes meanwhile, so figures of different parts may be of different moments. */
export function* treeFindings(tree: Tree): Generator<string, TreeFindings> {
  const walked = yield* walk(tree)
  return {
    nodes: tree.nodeCount,
    ...walked,
    quotas: yield* quotasOf(tree),
    rootPermissions: formatPerms(anyonesPermissions(tree, tree.find('/'))),
    ephemerals: yield* ephemeralsOf(tree),
  }
}

function* walk(
  tree: Tree,
): Generator<string, Pick<TreeFindings, 'largestNode' | 'mostChildren' | 'sequences' | 'openSecrets'>> {
  const { store } = tree
  const [largestNode, mostChildren] = [
    { path: '/', bytes: 0 },
    { path: '/', children: 0 },
  ]
  const sequences = new Collected<ExampleOf<'sequences'>>()
  const openSecrets = new Collected<ExampleOf<'openSecrets'>>()
  const visit = (node: number): void => {
    const columns = store.columns(node)
    const slot = store.slot(node)
    const bytes = columns.length[slot]!
    const children = columns.childCount[slot]!
    const counter = columns.cversion[slot]!
    if (bytes > largestNode.bytes) Object.assign(largestNode, { path: shown(tree, node), bytes })
    if (children > mostChildren.children) Object.assign(mostChildren, { path: shown(tree, node), children })
    // Beyond the range it is below zero.
    if (counter < 0 || counter > NEAR * MAX_SEQUENCE)
      sequences.add(() => ({ path: shown(tree, node), counter }))
    if (bytes <= 0) return
    const path = tree.pathOf(node)
    if (!SECRET_NAME.test(path.slice(path.lastIndexOf('/') + 1))) return
    const permissions = anyonesPermissions(tree, node)
    if ((permissions & (Perms.READ | Perms.WRITE)) === 0) return
    const anyone = (permissions & Perms.READ) === 0 ? 'changes' : 'reads'
    openSecrets.add(() => ({ path: shown(tree, node), anyone }))
  }
  const cursor = tree.scan()
  try {
    while (cursor.next(PER_STEP, visit)) yield ''
  } finally {
    cursor.close()
  }
  return { largestNode, mostChildren, sequences, openSecrets }
}

function* quotasOf(tree: Tree): Generator<string, TreeFindings['quotas']> {
  const found = new Collected<ExampleOf<'quotas'>>()
  let seen = 0
  for (const subject of tree.quotas.subjects()) {
    if (++seen % PER_STEP === 0) yield ''
    const limits = quotaAt(tree, subject, LIMITS_NAME)
    const used = quotaAt(tree, subject, STATS_NAME)
    if (limits === undefined || used === undefined) continue
    const [nodes, bytes] = [
      least(limits.count, limits.countHardLimit),
      least(limits.bytes, limits.byteHardLimit),
    ]
    const path = subject.slice(0, MAX_PATH)
    if (used.count >= NEAR * nodes) found.add(() => ({ path, what: 'nodes', limit: nodes, use: used.count }))
    if (used.bytes >= NEAR * bytes) found.add(() => ({ path, what: 'bytes', limit: bytes, use: used.bytes }))
  }
  return found
}

/** Returns the lower of two limits, of which -1 is none. */
const least = (soft: number, hard: number): number =>
  Math.min(...[soft, hard].map((limit) => (limit < 0 ? Infinity : limit)))

function* ephemeralsOf({ owners, store }: Tree): Generator<string, TreeFindings['ephemerals']> {
  let most: { readonly session: SessionId; readonly nodes: number }[] = []
  let left = owners.sessionCount
  for (const session of owners.sessions()) {
    // Sessions that begin meanwhile would go on without end.
    if (left-- === 0) break
    if (left % PER_STEP === 0) yield ''
    const nodes = owners.ofSession(session).size
    if (most.length === MAX_SESSIONS && nodes <= most.at(-1)!.nodes) continue
    most = [...most, { session, nodes }].toSorted((a, b) => b.nodes - a.nodes).slice(0, MAX_SESSIONS)
  }
  const found: TreeFindings['ephemerals'][number][] = []
  for (const { session, nodes } of most) {
    let [bytes, counted] = [0, 0]
    for (const node of owners.ofSession(session)) {
      if (counted++ === nodes) break
      if (counted % PER_STEP === 0) yield ''
      // A path in a transaction has its length before it.
      bytes += 4 + (store.pathAt(node)?.length ?? 0)
    }
    found.push({ session: formatSessionId(session), nodes, bytes })
  }
  return found
}

type ExampleOf<K extends 'sequences' | 'quotas' | 'openSecrets'> = TreeFindings[K]['first'][number]

class Collected<T> implements Examples<T> {
  count = 0
  readonly first: T[] = []

  add(example: () => T): void {
    if (this.count++ < MAX_EXAMPLES) this.first.push(example())
  }
}

function anyonesPermissions(tree: Tree, node: number): number {
  let permissions = 0
  for (const { perms, id } of tree.aclOf(node))
    if (id.scheme === 'world' && id.id === 'anyone') permissions |= perms
  return permissions
}

const shown = (tree: Tree, node: number): string => tree.pathOf(node).slice(0, MAX_PATH)
