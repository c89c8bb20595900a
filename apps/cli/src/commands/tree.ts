import { integer } from '../arguments.ts'
import { UnreadableNodes, type CommandModule } from '../context.ts'
import { print, printJson } from '../io.ts'
import { safeLine } from '../text/bytes.ts'
import { painter } from '../text/style.ts'

/** `zabra tree`: draws a subtree. */
export const tree: CommandModule = (program, { io, options, session }) => {
  program
    .command('tree')
    .description('draw a node and its descendants')
    .argument('[path]', 'the node', '/')
    .option('-d, --depth <levels>', 'levels below it (default: all)', integer(0))
    .action(async (path: string, { depth }: { depth?: number }) => {
      const unreadable = new UnreadableNodes(io)
      const { json } = options()
      await session(async (zk) => {
        const lines: boolean[] = []
        const paint = painter(io, io.stdout)
        for await (const node of zk.walk(path, {
          stats: true,
          signal: io.signal,
          onUnreadable: unreadable.add,
          maxDepth: depth,
        })) {
          const isEphemeral = (node.stat?.ephemeralOwner ?? 0n) !== 0n
          if (json) {
            printJson(io, { path: node.path, bytes: node.stat?.dataLength, ephemeral: isEphemeral })
            continue
          }
          lines.length = node.depth
          lines[node.depth] = node.isLast
          const name = node.depth === 0 ? node.path : node.path.slice(node.path.lastIndexOf('/') + 1)
          const stem = lines.slice(1, -1).map((last) => (last ? '    ' : '│   '))
          const branch = node.depth === 0 ? '' : node.isLast ? '└── ' : '├── '
          print(
            io,
            `${paint('faint', stem.join('') + branch)}${safeLine(name)}${isEphemeral ? paint('warning', '  (ephemeral)') : ''}`,
          )
        }
      })
      unreadable.failIfAny()
    })
}
