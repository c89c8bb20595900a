import { integer } from '../arguments.ts'
import { UnreadableNodes, type CommandModule } from '../context.ts'
import { UsageError } from '../exit-codes.ts'
import { printJson } from '../io.ts'
import { mapConcurrent } from '@zabra/client'
import { parseAcl } from '../text/acl.ts'

/** `zabra setAcl`: another access list for a node, or for all from a node down. */
export const setAcl: CommandModule = (program, { io, options, session }) => {
  program
    .command('setAcl')
    .description('set the access list of a node')
    .argument('<path>', 'the node')
    .argument('<acl>', 'scheme:id:perms,… with perms of the letters c, d, r, w and a')
    .option('-v, --version <number>', 'only if the access list still has this version', integer(0))
    .option('-R, --recursive', 'of every node below too')
    .action(async (path: string, list: string, asked: { version?: number; recursive?: boolean }) => {
      if (asked.recursive && asked.version !== undefined)
        throw new UsageError('A version belongs to one node: leave out --version or --recursive.')
      const acl = parseAcl(list)
      const unreadable = new UnreadableNodes(io)
      const changed = await session(async (zk) => {
        if (!asked.recursive) {
          await zk.setACL(path, acl, asked.version)
          return 1
        }
        // All are found first: a list that was just set may forbid to look below it.
        const paths: string[] = []
        for await (const node of zk.visit(path, { signal: io.signal, onUnreadable: unreadable.add }))
          paths.push(node.path)
        for await (const _ of mapConcurrent(paths, (path) => zk.setACL(path, acl)));
        return paths.length
      })
      if (options().json) printJson(io, { changed })
      unreadable.failIfAny()
    })
}
