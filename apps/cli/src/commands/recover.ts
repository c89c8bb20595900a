import { formatZxid } from '@zabra/protocol'
import { renumber, VERSION_FOLDER } from '@zabra/server/files'
import { silentLogger } from '@zabra/runtime'
import { join } from 'node:path'
import type { CommandModule } from '../context.ts'
import { UsageError } from '../exit-codes.ts'
import { withFolderLock } from '../files/find-files.ts'
import { print, printJson } from '../io.ts'

interface Flags {
  readonly renumber?: boolean
  readonly logFolder?: string
}

/** `zabra recover`: brings back an ensemble that cannot elect a leader any more. */
export const recover: CommandModule = (program, { io, options }) => {
  program
    .command('recover')
    .description('change the data of a stopped server, so that its ensemble can elect a leader again')
    .argument('<folder>', 'the data folder (dataDir)')
    .option('--renumber', 'number the epochs from 1 again, for an ensemble that has used the last one')
    .option('--log-folder <folder>', 'the folder of the logs (dataLogDir), where that is another one')
    .action(async (dataDir: string, { renumber: isRenumbering, logFolder = dataDir }: Flags) => {
      if (isRenumbering !== true)
        throw new UsageError(
          'Expected what to do, got nothing. Give --renumber to number the epochs from 1 again.',
        )
      const { disk, compression } = io.platform
      const found = await withFolderLock(io, join(dataDir, VERSION_FOLDER, 'snapshot'), () =>
        renumber({ disk, compression, logger: silentLogger, dataDir, dataLogDir: logFolder }),
      )
      const [from, to] = [`0x${formatZxid(found.from)}`, `0x${formatZxid(found.to)}`]
      if (options().json) return printJson(io, { from, to, snapshot: found.snapshot })
      print(
        io,
        `The last transaction was ${from} and is ${to}. ${found.snapshot} holds everything; the former files are in ${VERSION_FOLDER}/set-aside.`,
        `Now replace ${VERSION_FOLDER} on every other member by this one, also zoo.cfg.dynamic.* beside it, and start all members.`,
        'Restart clients that have stayed connected: they have seen later transactions, and servers refuse them.',
      )
    })
}
