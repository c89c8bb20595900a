import { readDataArg, integer } from '../arguments.ts'
import type { CommandModule } from '../context.ts'
import { UsageError } from '../exit-codes.ts'
import { print, printJson } from '../io.ts'
import { statJson, statLines } from '../text/stat.ts'

/** `zabra set`: sets the data of a node. */
export const set: CommandModule = (program, { io, options, session }) => {
  program
    .command('set')
    .description('set the data of a node')
    .argument('<path>', 'the node')
    .argument('[data]', 'the data as text')
    .option('-f, --file <file>', 'read the data from a file, - for standard input')
    .option('-v, --version <number>', 'only if the data still has this version', integer(0))
    .option('-s, --stat', 'print the stat afterwards')
    .action(
      async (
        path: string,
        argument: string | undefined,
        flags: { file?: string; version?: number; stat?: boolean },
      ) => {
        const data = await readDataArg(io, argument, flags.file)
        if (data === undefined)
          throw new UsageError(
            'Expected data for the node, got none. Give it after the path ("" for empty data), or a file with --file.',
          )
        const stat = await session((zk) => zk.setData(path, data, { version: flags.version }))
        if (options().json) printJson(io, { path, stat: statJson(stat) })
        else if (flags.stat) print(io, ...statLines(stat))
      },
    )
}
