import { UnreadableNodes, type CommandModule } from '../context.ts'
import { printJson } from '../io.ts'
import { printTable } from '../text/table.ts'

/** `zabra ephemerals`: lists ephemeral nodes with their sessions. */
export const ephemerals: CommandModule = (program, { io, options, session }) => {
  program
    .command('ephemerals')
    .description('list ephemeral nodes with the sessions that own them')
    .argument('[path]', 'root of the search', '/')
    .action(async (path: string) => {
      const unreadable = new UnreadableNodes(io)
      const { json } = options()
      const rows: string[][] = []
      await session(async (zk) => {
        for await (const node of zk.walk(path, {
          stats: true,
          signal: io.signal,
          onUnreadable: unreadable.add,
        })) {
          if (node.stat === undefined || node.stat.ephemeralOwner === 0n) continue
          const owner = `0x${BigInt.asUintN(64, node.stat.ephemeralOwner).toString(16)}`
          const since = new Date(node.stat.ctime).toISOString()
          if (json) printJson(io, { owner, since, path: node.path })
          else rows.push([owner, since, node.path])
        }
      })
      if (rows.length > 0) printTable(io, ['session', 'since', 'path'], rows)
      unreadable.failIfAny()
    })
}
