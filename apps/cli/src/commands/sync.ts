import type { CommandModule } from '../context.ts'

/** `zabra sync`: waits until the server has caught up with its leader. */
export const sync: CommandModule = (program, { session }) => {
  program
    .command('sync')
    .description('wait until the server has caught up with its leader')
    .argument('[path]', 'any node', '/')
    .action(async (path: string) => {
      await session((zk) => zk.sync(path))
    })
}
