import { integer } from '../arguments.ts'
import type { CommandModule } from '../context.ts'
import { UsageError } from '../exit-codes.ts'

/** `zabra delete`: deletes nodes without children. */
export const remove: CommandModule = (program, { session }) => {
  program
    .command('delete')
    .alias('rm')
    .description('delete nodes that have no children')
    .argument('<path...>', 'the nodes, in this order')
    .option('-v, --version <number>', 'only if the data still has this version', integer(0))
    .option('--missing-ok', 'ignore nodes that do not exist')
    .action(async (paths: string[], flags: { version?: number; missingOk?: boolean }) => {
      const needed = paths.find((path) =>
        ['/', '/zookeeper', '/zookeeper/quota', '/zookeeper/config'].includes(path),
      )
      if (needed !== undefined)
        throw new UsageError(`${needed} is needed by the server and cannot be deleted. Name nodes below it.`)
      await session(async (zk) => {
        for (const path of paths) await zk.delete(path, flags)
      })
    })
}
