import { loadBackup, nodesOf } from '@zabra/server/backup'
import type { SnapshotNode } from '@zabra/server/files'
import type { Context } from '../context.ts'
import { ExitCode, Failure, UsageError } from '../exit-codes.ts'
import { kindOf, readFiles } from '../files/read-nodes.ts'
import { note } from '../io.ts'
import { fromStoredAcl } from '../text/acl.ts'
import {
  findMoment,
  loadingPause,
  openStore,
  timeArgument,
  zxidArgument,
  type StoreFlags,
} from './backup-store.ts'
import type { ExportedNode } from './export-format.ts'
import { openSession } from './open.ts'
import { isReserved } from './paths.ts'
import { parseSubtree, readSubtree } from './subtree.ts'
import { comparePaths } from './tree-diff.ts'
import { hex } from '../text/hex.ts'

/** Reads a subtree for a comparison, in the order of a walk, without ephemeral nodes and with paths below its root. */
export interface ComparedTree {
  nodes(): AsyncIterable<ExportedNode>
  close(): Promise<void>
}

/** Where a subtree is: on a server, in a backup, or in a data folder. */
export type TreeName =
  | { readonly kind: 'server'; readonly text: string }
  | { readonly kind: 'backup'; readonly moment: string | undefined; readonly path: string }
  | { readonly kind: 'data'; readonly folder: string; readonly path: string }

/** Parses `/app`, `host:port/app`, `backup:/app`, `backup@TIME:/app`, `backup@ZXID:/app` or `data:FOLDER:/app`. */
export function parseTreeName(text: string): TreeName {
  const [, moment, inBackup] = /^backup(?:@([\w:.+-]+))?:(\/.*)$/.exec(text) ?? []
  if (inBackup !== undefined) return { kind: 'backup', moment, path: inBackup }
  const [, folder, inFolder] = /^data:(.+?):(\/.*)$/.exec(text) ?? []
  if (inFolder !== undefined) return { kind: 'data', folder: folder!, path: inFolder }
  if (/^(?:backup|data)[:@]/.test(text) && !/^\w+:\d+\//.test(text))
    throw new UsageError(
      `Expected backup:/app, backup@TIME:/app, backup@ZXID:/app or data:FOLDER:/app, got "${text}".`,
    )
  parseSubtree(text)
  return { kind: 'server', text }
}

/** Opens a subtree. `unreadable` is called for each node of a server that the client may not read. */
export async function openTree(
  context: Context,
  name: TreeName,
  flags: StoreFlags,
  unreadable: (path: string) => void,
): Promise<ComparedTree> {
  const { io } = context
  if (name.kind === 'server') return openServer(context, name.text, unreadable)
  if (isReserved(name.path))
    throw new UsageError(`${name.path} belongs to the server and is not compared. Name another subtree.`)
  const nodes =
    name.kind === 'data' ? await readFiles(io, name.folder) : await readBackup(context, name.moment, flags)
  const where = name.kind === 'data' ? name.folder : 'the backup at that moment'
  const found = subtreeOf(nodes, name.path, where)
  return { nodes: () => found, close: async () => {} }
}

async function openServer(
  { io, options }: Context,
  text: string,
  unreadable: (path: string) => void,
): Promise<ComparedTree> {
  const settings = options()
  const { server = settings.server, path } = parseSubtree(text)
  const zk = await openSession({ ...settings, server }, io.signal, (line) => note(io, line))
  return { nodes: () => readSubtree(zk, path, io.signal, unreadable), close: () => zk.close() }
}

async function readBackup(
  { io }: Context,
  moment: string | undefined,
  flags: StoreFlags,
): Promise<Iterable<SnapshotNode>> {
  const store = await openStore(io, flags)
  const { chain, upTo } = await findMoment(store, moment === undefined ? {} : momentOf(moment))
  note(io, `reading the backup up to ${hex(upTo)}`)
  const { compression } = io.platform
  const { tree } = await loadBackup(store, chain, upTo, { compression, pause: loadingPause(io) })
  return nodesOf(tree)
}

const momentOf = (text: string): { readonly at?: number; readonly zxid?: number } =>
  /^\d{4}-\d\d-\d\d/.test(text) ? { at: timeArgument(text) } : { zxid: zxidArgument(text) }

/** Yields the nodes of a subtree in the order of a walk, but for ephemeral ones. */
async function* subtreeOf(
  nodes: Iterable<SnapshotNode>,
  root: string,
  where: string,
): AsyncGenerator<ExportedNode> {
  const found = [...nodes].filter(
    ({ path }) => !isReserved(path) && (root === '/' || path === root || path.startsWith(`${root}/`)),
  )
  if (found.length === 0) throw new Failure(`${root} is not in ${where}.`, ExitCode.noNode)
  found.sort((a, b) => comparePaths(a.path, b.path))
  for (const { path, data, acl, stat } of found)
    if (!kindOf(stat.owner).isEphemeral)
      yield {
        path: root === '/' ? path : path.slice(root.length) || '/',
        data,
        acl: fromStoredAcl(acl),
      }
}
