import { childPath } from '@zabra/protocol'
import type { CommandModule } from '../context.ts'
import { UnreadableNodes } from '../context.ts'
import { print, printJson } from '../io.ts'
import { mapConcurrent, type Client, type Stat } from '@zabra/client'
import { safeLine } from '../text/bytes.ts'
import { statJson } from '../text/stat.ts'
import { printTable } from '../text/table.ts'

/** `zabra ls`: lists the children of a node, or with `-R` all its descendants. */
export const ls: CommandModule = (program, { io, options, session }) => {
  program
    .command('ls')
    .description('list the children of a node, one per line')
    .argument('[path]', 'the node', '/')
    .option('-R, --recursive', 'list the node and all descendants')
    .option('-s, --stat', 'with version, children, bytes, owner and time of change')
    .action(async (path: string, { recursive, stat }: { recursive?: boolean; stat?: boolean }) => {
      const { json } = options()
      const unreadable = new UnreadableNodes(io)
      await session(async (zk) => {
        const nodes = recursive
          ? zk.walk(path, { stats: true, signal: io.signal, onUnreadable: unreadable.add })
          : children(zk, path, stat === true)
        const rows: string[][] = []
        for await (const node of nodes) {
          const name = recursive ? node.path : node.path.slice(node.path.lastIndexOf('/') + 1)
          if (json) printJson(io, node.stat && stat ? { name, ...statJson(node.stat) } : name)
          else if (node.stat && stat) rows.push([...row(node.stat), name])
          else print(io, safeLine(name))
        }
        if (rows.length > 0)
          printTable(io, ['version', 'children', 'bytes', 'owner', 'changed', 'name'], rows)
      })
      unreadable.failIfAny()
    })
}

async function* children(
  zk: Client,
  path: string,
  stat: boolean,
): AsyncGenerator<{ path: string; stat?: Stat | undefined }> {
  const paths = (await zk.getChildren(path)).children.toSorted().map((name) => childPath(path, name))
  if (!stat) return yield* paths.map((path) => ({ path }))
  for await (const found of mapConcurrent(paths, async (path) => ({ path, stat: await zk.exists(path) })))
    if (found.stat !== undefined) yield { path: found.path, stat: found.stat }
}

const row = (stat: Stat): string[] => [
  String(stat.version),
  String(stat.numChildren),
  String(stat.dataLength),
  stat.ephemeralOwner === 0n ? '-' : `0x${BigInt.asUintN(64, stat.ephemeralOwner).toString(16)}`,
  new Date(stat.mtime).toISOString(),
]
