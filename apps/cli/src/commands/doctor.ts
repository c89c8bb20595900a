import { loadSettings, type Environment, type LoadedSettings } from '@zabra/server/settings'
import { silentLogger } from '@zabra/runtime'
import { readDatabase } from '@zabra/server/files'
import { existsSync, readFileSync } from 'node:fs'
import { lookup } from 'node:dns/promises'
import { connect } from 'node:net'
import { join, resolve } from 'node:path'
import type { CommandModule, Context } from '../context.ts'
import { checkBackups } from '../doctor/check-backups.ts'
import { checkConfiguration } from '../doctor/check-configuration.ts'
import { checkData } from '../doctor/check-data.ts'
import { checkMachine } from '../doctor/check-machine.ts'
import {
  checkAccessLists,
  checkMigration,
  migrationSteps,
  startVariables,
} from '../doctor/check-migration.ts'
import { checkNetwork, type NetworkTools } from '../doctor/check-network.ts'
import { checkRunning, type ClusterAnswer, type SelfAnswer } from '../doctor/check-running.ts'
import { finding, type Finding } from '../doctor/finding.ts'
import { Failure, UsageError } from '../exit-codes.ts'
import { print, printJson } from '../io.ts'
import { openAdmin, withAdminOption, type AdminFlags } from '../session/admin-options.ts'
import { openStore, withStoreOptions, type StoreFlags } from '../session/backup-store.ts'
import { safeLine } from '../text/bytes.ts'
import { painter } from '../text/style.ts'

interface Flags extends StoreFlags, AdminFlags {
  readonly config?: string
  readonly migrate?: string
  readonly javaOptions?: string
  readonly data?: string
  readonly logs?: string
}

const CONNECT_TIMEOUT_MS = 3000

/** `zabra doctor`: what is wrong with a configuration, a machine, data, a running server, or backups. */
export const doctor: CommandModule = (program, context) => {
  withStoreOptions(
    withAdminOption(
      program
        .command('doctor')
        .description('look for problems of a configuration, data, a running server, backups and this machine')
        .option('--config <zoo.cfg>', 'check a configuration, and the names and ports of its members')
        .option(
          '--migrate <zoo.cfg>',
          'check what differs when Zabra takes the place of Apache ZooKeeper: its configuration, Java options, stores and data',
        )
        .option(
          '--java-options <options>',
          'with --migrate: the options of the Java server (else those of java.env, zookeeper-env.sh and environment beside the file)',
        )
        .option('--data <folder>', 'check a data folder (dataDir)')
        .option('--logs <folder>', 'with --data: the folder of the logs (dataLogDir), if it is another one'),
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
Give what there is to check: --config, --migrate, --data, --admin, --target; this machine is always checked.
Exits with 0 without findings or with information alone, 1 with warnings, 2 with errors. docs/doctor.md explains each finding.`

async function* examine(context: Context, flags: Flags): AsyncGenerator<Finding> {
  const { io } = context
  const { disk, compression, system } = io.platform
  const read = (path: string): string | undefined => readIfExists(path)
  yield* checkMachine({
    maxOpenFiles: system.fileDescriptors().max,
    hugePages: read('/sys/kernel/mm/transparent_hugepage/enabled'),
    swaps: read('/proc/swaps'),
    backlog: read('/proc/sys/net/core/somaxconn'),
  })
  if (flags.config !== undefined) {
    const loaded = loadConfiguration(flags.config)
    yield* checkConfiguration(flags.config, loaded)
    const { settings } = loaded
    if (settings?.ensemble !== undefined)
      yield* checkNetwork(flags.config, settings.ensemble, settings.serverId, network)
  }
  if (flags.migrate !== undefined) yield* examineMigration(context, flags.migrate, flags)
  else if (flags.javaOptions !== undefined)
    throw new UsageError('--java-options belongs to --migrate: give it too, or leave --java-options out.')
  if (flags.data !== undefined)
    yield* checkData(resolve(flags.data), resolve(flags.logs ?? flags.data), {
      disk,
      compression,
      mounts: read('/proc/mounts'),
    })
  else if (flags.logs !== undefined)
    throw new UsageError('--logs belongs to --data: give it too, or leave --logs out.')
  if (flags.admin !== undefined || io.environment['ZABRA_ADMIN']) {
    const admin = openAdmin(context, flags)
    const self = await admin.json<SelfAnswer>('GET', '/api/v1/self')
    yield* checkRunning(admin.url.host, self, await admin.json<ClusterAnswer>('GET', '/api/v1/cluster'))
  }
  if (flags.target !== undefined || io.environment['ZABRA_BACKUP_TARGET'])
    yield* checkBackups(await openStore(io, flags), Date.now())
}

const network: NetworkTools = {
  resolve: async (host) => (await lookup(host, { all: true })).map(({ address }) => address),
  connect: (host, port) =>
    new Promise((opened, failed) => {
      const socket = connect({ host, port, timeout: CONNECT_TIMEOUT_MS })
      socket.once('connect', () => (socket.destroy(), opened()))
      socket.once('timeout', () => socket.destroy(new Error(`no answer within ${CONNECT_TIMEOUT_MS} ms`)))
      socket.once('error', failed)
    }),
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
      isReadable &&= found.severity !== 'error'
      yield found
    }
    if (!isReadable) return
    const [dataDir, dataLogDir] = folders
    const database = await readDatabase(disk, { dataDir, dataLogDir }, compression, silentLogger)
    yield* checkAccessLists(database.nodes())
  } else
    yield finding('data-elsewhere', folders[0], 'no data is there', 'Run this on the machine of the server.')
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

function loadConfiguration(name: string, environment: Environment = {}): LoadedSettings {
  const text = readIfExists(name)
  if (text === undefined)
    throw new UsageError(`Cannot read ${name} (ENOENT). Check the path and its permissions.`)
  return loadSettings({
    file: { name, text },
    environment,
    files: { read: readIfExists, resolve: (path) => resolve(path) },
  })
}

/** Returns the text of a file; undefined when there is none, or this user may not read it. */
function readIfExists(path: string): string | undefined {
  try {
    return readFileSync(path, 'utf8')
  } catch {
    return undefined
  }
}
