import { formatPerms } from '@zabra/protocol'
import type { CommandModule } from '../context.ts'
import { print, printJson } from '../io.ts'
import { formatEntry } from '../text/acl.ts'
import { safeLine } from '../text/bytes.ts'
import { statJson, statLines } from '../text/stat.ts'

/** `zabra getAcl`: prints the access list of a node. */
export const getAcl: CommandModule = (program, { io, options, session }) => {
  program
    .command('get-acl')
    .alias('getAcl')
    .description('print the access list of a node, one entry per line, in the format of setAcl')
    .argument('<path>', 'the node')
    .option('-s, --stat', 'print the stat too')
    .action(async (path: string, flags: { stat?: boolean }) => {
      const { acl, stat } = await session((zk) => zk.getACL(path))
      if (options().json) {
        const entries = acl.map(({ scheme, id, perms }) => ({ scheme, id, perms: formatPerms(perms) }))
        printJson(io, { path, acl: entries, ...(flags.stat ? { stat: statJson(stat) } : {}) })
        return
      }
      print(io, ...acl.map((entry) => safeLine(formatEntry(entry))))
      if (flags.stat) print(io, ...statLines(stat))
    })
}
