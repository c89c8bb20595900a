import { ErrorCode } from '@zabra/protocol'
import type { CommandModule } from '../context.ts'
import { print, printJson } from '../io.ts'
import { RequestError } from '../session/request-error.ts'
import { statJson, statLines } from '../text/stat.ts'

/** `zabra stat`: prints the stat of a node. */
export const stat: CommandModule = (program, { io, options, session }) => {
  program
    .command('stat')
    .description('print versions, times, sizes and owner of a node')
    .argument('<path>', 'the node')
    .action(async (path: string) => {
      const found = await session((zk) => zk.exists(path))
      if (found === undefined) throw new RequestError(ErrorCode.NONODE, path)
      if (options().json) printJson(io, { path, ...statJson(found) })
      else print(io, ...statLines(found))
    })
}
