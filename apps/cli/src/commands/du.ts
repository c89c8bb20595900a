import { integer } from '../arguments.ts'
import { UnreadableNodes, type CommandModule } from '../context.ts'
import { printJson } from '../io.ts'
import { printTable } from '../text/table.ts'

interface SubtreeUsage {
  readonly path: string
  nodes: number
  bytes: number
}

/** `zabra du`: prints the number of nodes and bytes of subtrees. */
export const du: CommandModule = (program, { io, options, session }) => {
  program
    .command('du')
    .description('count nodes and bytes of data by subtree, the largest first')
    .argument('[path]', 'the node', '/')
    .option('-d, --depth <levels>', 'subtrees down to this level', integer(0), 1)
    .action(async (path: string, { depth }: { depth: number }) => {
      const unreadable = new UnreadableNodes(io)
      const found: SubtreeUsage[] = []
      await session(async (zk) => {
        const open: SubtreeUsage[] = []
        for await (const node of zk.walk(path, {
          stats: true,
          signal: io.signal,
          onUnreadable: unreadable.add,
        })) {
          if (node.depth <= depth) {
            open.length = node.depth
            const use = { path: node.path, nodes: 0, bytes: 0 }
            open.push(use)
            found.push(use)
          }
          for (const use of open) {
            use.nodes++
            use.bytes += node.stat?.dataLength ?? 0
          }
        }
      })
      const sorted = found.toSorted((a, b) => b.bytes - a.bytes || b.nodes - a.nodes)
      if (options().json) for (const use of sorted) printJson(io, use)
      else {
        const rows = sorted.map(({ bytes, nodes, path }) => [String(bytes), String(nodes), path])
        printTable(io, ['bytes', 'nodes', 'path'], rows)
      }
      unreadable.failIfAny()
    })
}
