import { integer } from '../arguments.ts'
import { UnreadableNodes, type CommandModule } from '../context.ts'
import { UsageError } from '../exit-codes.ts'
import { printJson } from '../io.ts'
import { counted, progress } from '../progress.ts'
import { mapConcurrent } from '@zabra/client'
import { parseAcl } from '../text/acl.ts'

/** `zabra setAcl`: sets the access list of a node, or with `-R` of a subtree. */
export const setAcl: CommandModule = (program, { io, options, session }) => {
  program
    .command('set-acl')
    .alias('setAcl')
    .description('set the access list of a node')
    .argument('<path>', 'the node')
    .argument('<acl>', 'scheme:id:perms,… with perms of the letters c, d, r, w and a')
    .option('-v, --version <number>', 'only if the access list still has this version', integer(0))
    .option('-R, --recursive', 'set it on all descendants too')
    .action(async (path: string, list: string, flags: { version?: number; recursive?: boolean }) => {
      if (flags.recursive && flags.version !== undefined)
        throw new UsageError('A version belongs to one node: leave out --version or --recursive.')
      const acl = parseAcl(list)
      const unreadable = new UnreadableNodes(io)
      const changed = await session(async (zk) => {
        if (!flags.recursive) {
          await zk.setACL(path, acl, { version: flags.version })
          return 1
        }
        // Collect all paths first: the new access list may forbid reading the children.
        const paths: string[] = []
        for await (const found of zk.walk(path, { signal: io.signal, onUnreadable: unreadable.add }))
          paths.push(found)
        const bar = progress(io, 'Changing', 'nodes', paths.length)
        try {
          for await (const _ of counted(
            mapConcurrent(paths, (path) => zk.setACL(path, acl)),
            bar,
          ));
        } finally {
          bar.stop()
        }
        return paths.length
      })
      if (options().json) printJson(io, { changed })
      unreadable.failIfAny()
    })
}
