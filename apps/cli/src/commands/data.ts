import { dataFoldersOf, initializeData, purge } from '@zabra/server/files'
import { resolve } from 'node:path'
import { integer } from '../arguments.ts'
import type { CommandModule } from '../context.ts'
import { requireDataFolder, withDataLocks } from '../files/find-files.ts'
import { print, printJson } from '../io.ts'

const MIN_SNAPSHOTS = 3

/** `zabra initialize`: makes the folders of a server without data, as zkServer-initialize.sh does. */
export const initialize: CommandModule = (program, { io, options }) => {
  program
    .command('initialize')
    .description('make the data folder of a server that has no data yet')
    .argument('<folder>', 'dataDir')
    .option('--id <n>', 'write this id of the server to myid', integer(0, 255))
    .option('--logs <folder>', 'dataLogDir, if it is another one')
    .action(async (folder: string, { id, logs = folder }: { id?: number; logs?: string }) => {
      const [dataDir, dataLogDir] = [resolve(folder), resolve(logs)]
      const { disk } = io.platform
      await disk.makeFolder(dataDir)
      await disk.makeFolder(dataLogDir)
      await withDataLocks(io, { dataDir, dataLogDir }, () =>
        initializeData(disk, { dataDir, dataLogDir }, id),
      )
      if (options().json) printJson(io, { dataDir, dataLogDir, id: id ?? null })
      else
        print(io, `${dataDir}: ready for a server without data${id === undefined ? '' : `, with id ${id}`}`)
    })
}

/** `zabra purge`: removes old files, as zkCleanup.sh does. */
export const purgeFiles: CommandModule = (program, { io, options }) => {
  program
    .command('purge')
    .description('remove the snapshots and logs that recovery from the newest snapshots does not need')
    .argument('<folder>', 'dataDir of a server that does not run; a running one has autopurge.purgeInterval')
    .requiredOption(
      '-n, --keep <count>',
      `snapshots to keep, at least ${MIN_SNAPSHOTS}`,
      integer(MIN_SNAPSHOTS),
    )
    .option('--logs <folder>', 'dataLogDir, if it is another one')
    .action(async (folder: string, { keep, logs = folder }: { keep: number; logs?: string }) => {
      const { disk, compression } = io.platform
      const advice = 'Name dataDir, and dataLogDir with --logs.'
      const dataDir = await requireDataFolder(disk, folder, advice)
      const dataLogDir = await requireDataFolder(disk, logs, advice)
      const location = { dataDir, dataLogDir }
      const removed = await withDataLocks(io, location, () =>
        purge(disk, dataFoldersOf(location), keep, { compression }),
      )
      for (const name of removed) {
        if (options().json) printJson(io, { removed: name })
        else print(io, `removed ${name}`)
      }
      if (!options().json) print(io, `${removed.length} files removed`)
    })
}
