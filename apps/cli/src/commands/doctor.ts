import { silentLogger } from '@zabra/runtime'
import { readDatabase } from '@zabra/server/files'
import type { Environment } from '@zabra/server/settings'
import { existsSync, readFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { integer, readTextArg } from '../arguments.ts'
import type { CommandModule, Context } from '../context.ts'
import { checkBackups } from '../doctor/check-backups.ts'
import { checkConfiguration } from '../doctor/check-configuration.ts'
import { checkData } from '../doctor/check-data.ts'
import { checkDowngrade } from '../doctor/check-downgrade.ts'
import { checkMachine } from '../doctor/check-machine.ts'
import {
  checkAccessLists,
  checkMigration,
  migrationSteps,
  startVariables,
} from '../doctor/check-migration.ts'
import { examineConfigurations, examineData, loadConfiguration } from '../doctor/examine.ts'
import { examineServers } from '../doctor/examine-servers.ts'
import { finding, type Finding } from '../doctor/finding.ts'
import { readIfExists, readMachineFacts } from '../doctor/machine-facts.ts'
import { Failure, UsageError } from '../exit-codes.ts'
import { print, printJson } from '../io.ts'
import { openAdmins, withAdminOption, type AdminFlags } from '../session/admin-options.ts'
import { openStore, withStoreOptions, type StoreFlags } from '../session/backup-store.ts'
import { safeLine } from '../text/bytes.ts'
import { painter } from '../text/style.ts'

interface Flags extends StoreFlags, AdminFlags {
  readonly config?: readonly string[]
  readonly migrate?: string
  readonly javaOptions?: string
  readonly data?: string
  readonly downgrade?: string
  readonly logs?: string
  readonly syncSeconds?: number
}

const MAX_SYNC_SECONDS = 60
/** Findings with which the nodes of a data folder cannot be read. */
const UNREADABLE: ReadonlySet<string> = new Set(['no-data', 'snapshot', 'log', 'level-file', 'mixed-folders'])

/** `zabra doctor`: what is wrong with a configuration, a machine, data, a running server, or backups. */
export const doctor: CommandModule = (program, context) => {
  withStoreOptions(
    withAdminOption(
      program
        .command('doctor')
        .description('look for problems of a configuration, data, a running server, backups and this machine')
        .option(
          '--config <zoo.cfg...>',
          'check a configuration, its TLS files, and the names and ports of its members; further files are those of the other members, which must agree with it',
        )
        .option(
          '--migrate <zoo.cfg>',
          'check what differs when Zabra takes the place of Apache ZooKeeper: its configuration, Java options, stores and data',
        )
        .option(
          '--java-options <options>',
          'with --migrate: the options of the Java server (else those of java.env, zookeeper-env.sh and environment beside the file)',
        )
        .option(
          '--downgrade <folder>',
          'check what keeps Apache ZooKeeper or an earlier release from this data folder (dataDir), with its zoo.cfg in --config, which is not checked otherwise then',
        )
        .option('--data <folder>', 'check a data folder (dataDir)')
        .option(
          '--logs <folder>',
          'with --data and --downgrade: the folder of the logs (dataLogDir), if it is another one',
        )
        .option(
          '--sync-seconds <seconds>',
          'with --data: how long to measure the disk, by writing a file of 16 MiB and removing it; 0 is not at all (5 by default, and 0 while a server runs on the folder)',
          integer(0, MAX_SYNC_SECONDS),
        ),
    ),
  )
    .addHelpText('after', HELP)
    .action(async (flags: Flags) => {
      const { io, options } = context
      const findings: Finding[] = []
      const paint = painter(io, io.stdout)
      for await (const found of examine(context, flags)) {
        io.signal.throwIfAborted()
        findings.push(found)
        if (options().json) printJson(io, found)
        else
          print(
            io,
            `${paint(STYLES[found.severity], found.severity)} ${found.id}: ${safeLine(found.where)}: ${safeLine(found.evidence)}`,
            `  ${safeLine(found.remedy)} (${found.page})`,
          )
      }
      const problems = findings.filter(({ severity }) => severity !== 'info')
      if (problems.length === 0 && !options().json) print(io, 'no problem was found')
      if (flags.migrate !== undefined) {
        const variables = startVariablesOf(flags)
        const { settings } = loadConfiguration(flags.migrate, variables)
        const steps = migrationSteps(flags.migrate, settings, variables)
        if (options().json) printJson(io, { steps })
        else print(io, '', 'What to do:', ...steps.map((step, index) => `${index + 1}. ${safeLine(step)}`))
      }
      const isError = findings.some(({ severity }) => severity === 'error')
      if (problems.length > 0) throw new Failure('', isError ? EXIT_ERRORS : EXIT_WARNINGS)
    })
}

const STYLES = { info: 'faint', warning: 'warning', error: 'bad' } as const
const EXIT_WARNINGS = 1
const EXIT_ERRORS = 2

const HELP = `
Give what there is to check: --config, --migrate, --data, --downgrade, --admin, --target; this machine is always checked.
--admin takes the HTTP ports of several servers, separated by commas, and compares them.
Exits with 0 without findings or with information alone, 1 with warnings, 2 with errors.
https://github.com/zabra/zabra/blob/main/docs/doctor.md explains each finding.`

async function* examine(context: Context, flags: Flags): AsyncGenerator<Finding> {
  const { io } = context
  const { config, migrate, data, downgrade, logs, admin, target, syncSeconds } = flags
  if (migrate === undefined && flags.javaOptions !== undefined)
    throw new UsageError('--java-options belongs to --migrate: give it too, or leave --java-options out.')
  if (data === undefined && downgrade === undefined && logs !== undefined)
    throw new UsageError('--logs belongs to --data or --downgrade: give it too, or leave --logs out.')
  if (data === undefined && syncSeconds !== undefined)
    throw new UsageError('--sync-seconds belongs to --data: give it too, or leave --sync-seconds out.')
  yield* checkMachine(readMachineFacts(io.platform.system))
  if (config !== undefined && downgrade === undefined) yield* examineConfigurations(io.platform, config)
  if (migrate !== undefined) yield* examineMigration(context, migrate, flags)
  if (data !== undefined) yield* examineData(io, data, logs ?? data, syncSeconds)
  if (downgrade !== undefined) yield* examineDowngrade(context, downgrade, flags)
  if (admin !== undefined || io.environment['ZABRA_ADMIN']) yield* examineServers(openAdmins(context, flags))
  if (target !== undefined || io.environment['ZABRA_BACKUP_TARGET'])
    yield* checkBackups(await openStore(io, flags), Date.now())
}

async function* examineMigration({ io }: Context, file: string, flags: Flags): AsyncGenerator<Finding> {
  const { disk, compression } = io.platform
  const variables = startVariablesOf(flags)
  const loaded = loadConfiguration(file, variables)
  yield* checkConfiguration(file, loaded)
  yield* checkMigration(file, loaded, variables, firstBytesOf)
  const { settings } = loaded
  if (settings === undefined || flags.data !== undefined) return
  const tools = { disk, compression, mounts: readIfExists('/proc/mounts') }
  const folders = [resolve(settings.dataDir), resolve(settings.dataLogDir)] as const
  if (existsSync(join(folders[0], 'version-2'))) {
    let isReadable = true
    for await (const found of checkData(...folders, tools)) {
      isReadable &&= !UNREADABLE.has(found.id)
      yield found
    }
    if (!isReadable) return
    const [dataDir, dataLogDir] = folders
    const database = await readDatabase(disk, { dataDir, dataLogDir }, compression, silentLogger)
    yield* checkAccessLists(database.nodes())
  } else
    yield finding('data-elsewhere', folders[0], 'no data is there', 'Run this on the machine of the server.')
}

async function* examineDowngrade(
  { io }: Context,
  folder: string,
  { logs, config: [file] = [] }: Flags,
): AsyncGenerator<Finding> {
  const { disk, compression } = io.platform
  const config = file === undefined ? undefined : { file, text: readTextArg(file) }
  yield* checkDowngrade(resolve(folder), resolve(logs ?? folder), { disk, compression, config })
}

const startVariablesOf = ({ migrate = '', javaOptions }: Flags): Environment =>
  startVariables(migrate, javaOptions, readIfExists)

function firstBytesOf(path: string): Uint8Array | undefined {
  try {
    return readFileSync(path).subarray(0, 4)
  } catch {
    return undefined
  }
}
