import { integer } from '../arguments.ts'
import type { CommandModule } from '../context.ts'
import { UsageError } from '../exit-codes.ts'
import { printJson } from '../io.ts'
import { progress } from '../progress.ts'
import { isReserved } from '../session/paths.ts'

/** `zabra deleteall`: deletes a subtree. */
export const deleteall: CommandModule = (program, { io, options, session }) => {
  program
    .command('delete-all')
    .alias('deleteall')
    .description('delete a node and its descendants')
    .argument('<path>', 'the node')
    .option('-b, --batch <nodes>', 'nodes per transaction', integer(1), 500)
    .action(async (path: string, { batch }: { batch: number }) => {
      if (path === '/' || isReserved(path))
        throw new UsageError(
          `${path} is needed by the server and cannot be deleted. Name a node below /, such as one that zabra ls shows.`,
        )
      const deleted = await session(async (zk) => {
        const bar = progress(io, 'Deleting', 'nodes', 1)
        try {
          return await zk.delete(path, {
            recursive: true,
            signal: io.signal,
            batchSize: batch,
            onUnreadable: () => {},
            onFound: (nodes) => bar.setTotal(nodes),
            onDeleted: (nodes) => bar.update(nodes),
          })
        } finally {
          bar.stop()
        }
      })
      if (options().json) printJson(io, { deleted })
    })
}
