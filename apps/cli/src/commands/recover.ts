import {
  abandonData,
  compareStates,
  forceMembers,
  logsIn,
  parseConfiguration,
  readMemberState,
  renumber,
  SET_ASIDE,
  snapshotsIn,
  verifierOf,
  VERSION_FOLDER,
  type DatabaseLocation,
  type EnsembleConfiguration,
  type MemberState,
} from '@zabra/server/files'
import { silentLogger, type Disk } from '@zabra/runtime'
import { InvalidArgumentError, Option } from 'commander'
import { join, resolve } from 'node:path'
import { readTextArg } from '../arguments.ts'
import type { CommandModule, Context } from '../context.ts'
import { ExitCode, Failure, UsageError } from '../exit-codes.ts'
import { requireDataFolder, withDataLocks } from '../files/find-files.ts'
import { valuesIn } from '../files/zoo-cfg.ts'
import { note, print, printJson } from '../io.ts'
import { askMembers, type MemberAnswer } from '../session/running-members.ts'
import { printTable } from '../text/table.ts'
import { hex } from '../text/hex.ts'

const ADVICE = 'Name the data folder (dataDir) of a member.'
const LOG_ADVICE = 'Name the folder of the logs (dataLogDir) with --logs.'

interface Flags {
  readonly renumber?: boolean
  readonly logs?: readonly string[]
}

/** `zabra recover`: brings back an ensemble that cannot elect a leader any more. */
export const recover: CommandModule = (program, context) => {
  const { io, options } = context
  // The command takes the option also where it stands behind a subcommand, so all of them read it here.
  const logFolders = (): readonly string[] | undefined => command.opts<Flags>().logs
  const command = program
    .command('recover')
    .description('change the data of a stopped server, so that its ensemble can elect a leader again')
    .argument('[folder]', 'the data folder (dataDir)')
    .option('--renumber', 'number the epochs from 1 again, for an ensemble that has used the last one')
    .addOption(
      new Option(
        '--logs <folder>',
        'the folder of the logs (dataLogDir), where that is another one; with plan for each data folder, in their order',
      ).argParser((folder: string, before: readonly string[] | undefined) => [...(before ?? []), folder]),
    )
    .action(async (folder: string | undefined, { renumber: isRenumbering }: Flags) => {
      if (isRenumbering !== true || folder === undefined)
        throw new UsageError(
          'Expected what to do, got nothing. Give plan or force after the loss of a quorum, or --renumber and a folder to number the epochs from 1 again.',
        )
      const { disk, compression } = io.platform
      const dataDir = await requireDataFolder(disk, folder, ADVICE)
      const dataLogDir = await logFolderOf(io, dataDir, logFolders()?.at(-1))
      const found = await withDataLocks(io, { dataDir, dataLogDir }, () =>
        renumber({ disk, compression, logger: silentLogger, dataDir, dataLogDir }),
      )
      const [from, to] = [hex(found.from), hex(found.to)]
      if (options().json) return printJson(io, { from, to, snapshot: found.snapshot })
      print(
        io,
        `The last transaction was ${from} and is ${to}. ${found.snapshot} holds everything; the former files are in ${VERSION_FOLDER}/set-aside.`,
        `Now replace ${VERSION_FOLDER} on every other member by this one, also zoo.cfg.dynamic.* beside it, and start all members.`,
        'Restart clients that have stayed connected: they have seen later transactions, and servers refuse them.',
      )
    })
  command
    .command('plan')
    .description('compare the data of stopped members, and name the one with which to go on')
    .argument('<folders...>', 'the data folder (dataDir) of each member that is left, or a copy of it')
    .addHelpText('after', PLAN_HELP)
    .action((folders: string[]) => plan(context, folders, logFolders()))

  command
    .command('force')
    .description(
      'make a stopped member, whose ensemble has lost its quorum for good, go on without the others',
    )
    .argument('<folder>', 'the data folder (dataDir) that zabra recover plan names')
    .requiredOption('--members <ids>', 'the ids of the members that go on, such as 4 or 4,5', memberIds)
    .option(
      '--config <zoo.cfg>',
      'the zoo.cfg of the member: the addresses of the members, and the folder of its logs (dataLogDir)',
    )
    .option('--although-a-quorum-answers', 'do it although other members run that are a quorum')
    .option('--yes', 'do it; it is explained only otherwise')
    .addHelpText('after', FORCE_HELP)
    .action((folder: string, flags: ForceFlags) => force(context, folder, flags, logFolders()?.at(-1)))

  command
    .command('adopt')
    .description('empty a stopped member, so that it may join an ensemble that was recovered without it')
    .argument('<folder>', 'the data folder (dataDir) of the former member')
    .option(
      '--config <zoo.cfg>',
      'the zoo.cfg of the member, which names the folder of its logs (dataLogDir)',
    )
    .option('--yes', 'do it; it is explained only otherwise')
    .addHelpText('after', LOG_FOLDER_HELP)
    .action((folder: string, flags: AdoptFlags) => adopt(context, folder, flags, logFolders()?.at(-1)))
}

async function plan(
  { io, options }: Context,
  folders: readonly string[],
  logFolders?: readonly string[],
): Promise<void> {
  if (logFolders !== undefined && logFolders.length !== folders.length)
    throw new UsageError(
      `Expected --logs ${folders.length} times, once for each data folder, got it ${logFolders.length} times. Name a folder that holds both twice.`,
    )
  const states: MemberState[] = []
  const { disk } = io.platform
  for (const [i, folder] of folders.entries()) {
    const dataDir = await requireDataFolder(disk, folder, ADVICE)
    const named = logFolders?.[i]
    const dataLogDir = named === undefined ? dataDir : await requireDataFolder(disk, named, LOG_ADVICE)
    states.push(await readMemberState({ dataDir, dataLogDir }, toolsOf(io)))
    if (logFolders === undefined && (await lacksLogs(io, dataDir)))
      note(
        io,
        `${dataDir} has no logs: where its dataLogDir is another folder, name that with --logs; the history may be later than it seems`,
      )
  }
  const best = states.toSorted(compareStates).at(-1)!
  const members = states.map(({ configuration }) => configuration?.members.size ?? 0)
  const voters = Math.max(...members)
  const hasQuorum = voters > 0 && states.length > voters / 2
  if (options().json)
    return printJson(io, {
      members: states.map((state) => ({
        folder: state.dataDir,
        lastZxid: hex(state.lastZxid),
        acceptedEpoch: state.acceptedEpoch ?? null,
        currentEpoch: state.currentEpoch ?? null,
        nodes: state.nodes,
      })),
      take: best.dataDir,
      hasQuorum,
    })
  const rows = states.map(({ dataDir, lastZxid, currentEpoch, acceptedEpoch, nodes }) => [
    dataDir,
    hex(lastZxid),
    String(currentEpoch ?? '-'),
    String(acceptedEpoch ?? '-'),
    String(nodes),
  ])
  printTable(io, ['folder', 'last zxid', 'current epoch', 'accepted epoch', 'nodes'], rows)
  print(
    io,
    '',
    `Go on with ${best.dataDir}: its history is the latest of these.`,
    hasQuorum
      ? `${states.length} of ${voters} members are a quorum: start them, and they elect a leader. No transaction is lost.`
      : `These are no quorum${voters === 0 ? '' : ` of ${voters} members`}: transactions that only the lost members had are lost, also acknowledged ones, if the lost members were the quorum that had them.`,
  )
}

interface ForceFlags {
  readonly members: readonly number[]
  readonly config?: string
  readonly althoughAQuorumAnswers?: boolean
  readonly yes?: boolean
}

/**
 * Time for the answers of the other members, in milliseconds. Long, since a member that answers later counts as one that does not run:
 * the machine of either may be busy.
 */
const ANSWER_MS = 10_000
/** The client port of members whose client address is not known. */
const CLIENT_PORT = 2181

/** The options of `zabra recover` are not in the help of its subcommands. */
const LOG_FOLDER_HELP = `
--logs <folder> names the folder of the logs (dataLogDir), where that is another one and --config
does not name it.`

const PLAN_HELP = `
--logs <folder> names the folder of the logs (dataLogDir) of a member, where that is another one: give
it once for each data folder, in their order.`

const FORCE_HELP = `
It asks the other members first, on their client, quorum and election ports. It refuses while one of them
has a leader, and while those that run could be a quorum: start the member that is stopped instead.

A lost member that comes back stops once it reaches a member of the recovered ensemble; until then lost
members that are a quorum of the former ensemble could serve clients beside it. Before a lost machine
comes back, run zabra recover adopt on its data folder; then add it as a new member.
${LOG_FOLDER_HELP}`

interface AdoptFlags {
  readonly config?: string
  readonly yes?: boolean
}

async function adopt(
  { io, options }: Context,
  folder: string,
  { config, yes }: AdoptFlags,
  logFolder: string | undefined,
): Promise<void> {
  const tools = toolsOf(io)
  if (await isNew(io, folder))
    return print(io, `${folder} has no data: add the member to the recovered ensemble, and start it.`)
  const dataDir = await requireDataFolder(tools.disk, folder, ADVICE)
  const configured = config === undefined ? undefined : foldersIn(valuesIn(readTextArg(config)))
  const dataLogDir = await logFolderOf(io, dataDir, logFolder, configured)
  if (yes !== true) {
    const { lastZxid, nodes } = await readMemberState({ dataDir, dataLogDir }, tools)
    return print(
      io,
      `${dataDir} has ${nodes} nodes up to ${hex(lastZxid)}. With --yes it is empty, and the member receives everything from the leader that it finds.`,
      `The former files are kept in ${VERSION_FOLDER}/set-aside. Writes that only this member has are not in the ensemble.`,
    )
  }
  const abandoned = await withDataLocks(io, { dataDir, dataLogDir }, () =>
    abandonData({ dataDir, dataLogDir }, tools),
  )
  if (options().json) return printJson(io, abandoned)
  print(io, `The member is empty; its former files are in ${abandoned.folder}.`)
  note(io, 'let its zoo.cfg name the members of the recovered ensemble, add it there, and start it')
}

async function force(
  context: Context,
  folder: string,
  flags: ForceFlags,
  logFolder: string | undefined,
): Promise<void> {
  const { io } = context
  const dataDir = await requireDataFolder(io.platform.disk, folder, ADVICE)
  const known = readConfiguration(flags.config)
  const location = { dataDir, dataLogDir: await logFolderOf(io, dataDir, logFolder, known.folders) }
  // Before the others are asked: while this server runs, its own ports answer.
  await withDataLocks(io, location, () => forceLocked(context, location, flags, known))
}

/** Makes a member go on without the others, or explains it. No server runs on its folders. */
async function forceLocked(
  { io, options }: Context,
  location: DatabaseLocation,
  flags: ForceFlags,
  { configuration: known, clientPort = CLIENT_PORT }: KnownConfiguration,
): Promise<void> {
  const { members, yes } = flags
  const { json } = options()
  const tools = toolsOf(io)
  const { dataDir } = location
  const { lastZxid, nodes, configuration = known } = await readMemberState(location, tools)
  const former = known ?? configuration
  if (former === undefined)
    throw new UsageError(
      `Expected the members of the ensemble in the data, got none in ${dataDir}. Name the zoo.cfg of this member with --config: the others are asked first.`,
    )
  const stranger = members.find((id) => !former.members.has(id))
  if (stranger !== undefined)
    throw new UsageError(
      `Expected the ids of members, got ${stranger}. Name some of ${[...former.members.keys()].join(', ')} with --members.`,
    )
  const self = await ownId(io, dataDir)
  const others = [...former.members.keys()].filter((id) => id !== self)
  const asked = { clientPort, timeoutMs: ANSWER_MS, signal: io.signal }
  const answers = await askMembers(former, others, asked)
  if (!json)
    for (const { id, state, detail } of answers) print(io, `server ${id}: ${SENTENCES[state]} (${detail})`)
  if (flags.althoughAQuorumAnswers !== true) rejectQuorum(former, answers)
  if (yes !== true) {
    print(
      io,
      `${dataDir} has ${nodes} nodes up to ${hex(lastZxid)}. With --yes it goes on with the members ${members.join(', ')} alone.`,
      'This cannot be undone: later transactions of other members are lost, and they need zabra recover adopt before they start again.',
    )
    return
  }
  const forced = await forceMembers(location, members, { ...tools, random: io.platform.random, known })
  const lines = [...forced.configuration.members.keys()]
  if (json)
    return printJson(io, {
      answers,
      from: hex(forced.from),
      to: hex(forced.to),
      epoch: forced.epoch,
      snapshot: forced.snapshot,
      members: lines,
    })
  print(
    io,
    `The ensemble has the members ${lines.join(', ')} now, from ${hex(forced.to)} on; ${forced.snapshot} holds everything up to ${hex(forced.from)}.`,
    members.length === 1
      ? 'Start this member.'
      : `Copy ${VERSION_FOLDER} and zoo.cfg.dynamic.* to the other members that go on, then start all of them.`,
  )
  note(io, 'run zabra recover adopt on the data folder of every other former member before it starts again')
}

const toolsOf = ({ platform: { disk, compression } }: Context['io']) => ({
  disk,
  compression,
  logger: silentLogger,
})

const SENTENCES: Readonly<Record<MemberAnswer['state'], string>> = {
  serves: 'it serves, so a quorum is there',
  waits: 'it runs and does not serve',
  runs: 'it runs, and may serve',
  silent: 'it does not run, or cannot be reached',
}

/** Throws a `Failure` while other members have a leader, or may have one: what they serve would go on beside the forced member. */
function rejectQuorum(former: EnsembleConfiguration, answers: readonly MemberAnswer[]): void {
  const serving = answers.filter(({ state }) => state === 'serves')
  // Those that wait may be electing a leader at this moment, most of all if this member has just been stopped and led them.
  const running = answers.filter(({ state }) => state !== 'silent')
  if (serving.length === 0 && !verifierOf(former).isQuorum(new Set(running.map(({ id }) => id)))) return
  const named = (serving.length > 0 ? serving : running).map(({ id, detail }) => `server ${id} (${detail})`)
  const found = serving.length > 0 ? 'members have a leader' : 'members that run are a quorum'
  throw new Failure(
    `The quorum is not lost: ${found}: ${named.join(', ')}. A member that is forced beside them has other data, and clients write to both. Start this member as it is; if it cannot join, run zabra recover adopt on its folder and start it. To give the others up, stop them and run this again; --although-a-quorum-answers forces it while they run.`,
    ExitCode.refused,
  )
}

/** Returns whether a folder is that of a member which has never run: it is there, with `myid` at most. */
async function isNew({ platform: { disk } }: Context['io'], dataDir: string): Promise<boolean> {
  if (!(await disk.exists(dataDir))) return false
  return (await disk.list(dataDir)).every((name) => name === 'myid')
}

/** The folders of a zoo.cfg whose logs are in another one than the snapshots. */
interface SplitFolders {
  readonly dataDir: string | undefined
  readonly dataLogDir: string
}

/**
 * Returns the folder of the logs: the one that is named, else that of the zoo.cfg of this data folder, else the folder of the snapshots.
 * Rejects with a `UsageError` where they may be elsewhere: all that followed the last snapshot would be lost without a word, or stay
 * behind where a server reads it.
 */
async function logFolderOf(
  io: Context['io'],
  dataDir: string,
  named: string | undefined,
  configured?: SplitFolders,
): Promise<string> {
  const { disk } = io.platform
  if (named !== undefined) return requireDataFolder(disk, named, LOG_ADVICE)
  if (configured !== undefined) {
    // The folder may be a copy from another machine: what has the same name here is of another server then.
    const { dataLogDir } = configured
    const isOwn = resolve(configured.dataDir ?? '') === resolve(dataDir)
    const isThere = isOwn && (await disk.exists(join(dataLogDir, VERSION_FOLDER)))
    if (isThere && !(await lacksLogs(io, dataDir, dataLogDir))) return dataLogDir
    throw noLogs(dataDir, 'the logs of this folder here', `, which its zoo.cfg says is ${dataLogDir}`)
  }
  if (await lacksLogs(io, dataDir)) throw noLogs(dataDir, `logs in ${dataDir}`)
  return dataDir
}

const noLogs = (dataDir: string, expected: string, where = ''): UsageError =>
  new UsageError(
    `Expected ${expected}, got none. Name the folder of the logs (dataLogDir${where}) with --logs: what followed the last snapshot is there. Where there are no logs, as in a folder that was restored, give --logs ${dataDir}.`,
  )

/** Files that are there until a command has set all others aside. */
const UNFINISHED: ReadonlySet<string> = new Set(['distrusted', 'replacement'])

/**
 * Returns whether a data folder has or had snapshots, and the folder of its logs no log. Logs that were set aside count while a command that
 * does so is not finished, and where it has left one snapshot at most: with more of them a server went on, and its log is elsewhere.
 */
async function lacksLogs(
  { platform: { disk } }: Context['io'],
  dataDir: string,
  dataLogDir = dataDir,
): Promise<boolean> {
  const data = await namesIn(disk, dataDir)
  const { names, former } = dataLogDir === dataDir ? data : await namesIn(disk, dataLogDir)
  const snapshots = snapshotsIn(data.names)
  const isUnfinished = data.names.some((name) => UNFINISHED.has(name))
  const logs = logsIn(snapshots.length > 1 && !isUnfinished ? names : [...names, ...former])
  return logs.length === 0 && (snapshots.length > 0 || snapshotsIn(data.former).length > 0)
}

/** Resolves to the names of the files in `version-2` of a folder, and of those that were set aside there. */
async function namesIn(
  disk: Disk,
  dataDir: string,
): Promise<{ readonly names: readonly string[]; readonly former: readonly string[] }> {
  const folder = join(dataDir, VERSION_FOLDER)
  const names = (await disk.exists(folder)) ? await disk.list(folder) : []
  const aside = names.includes(SET_ASIDE) ? await disk.list(join(folder, SET_ASIDE)) : []
  return { names, former: aside.map((name) => name.replace(/^\d+\./, '')) }
}

/** Returns the id in `myid`, whose member is stopped; undefined without one. */
async function ownId({ platform: { disk } }: Context['io'], dataDir: string): Promise<number | undefined> {
  const file = join(dataDir, 'myid')
  if (!(await disk.exists(file))) return undefined
  const text = new TextDecoder().decode(await disk.readFile(file)).trim()
  return /^\d{1,3}$/.test(text) ? Number(text) : undefined
}

interface KnownConfiguration {
  readonly configuration?: EnsembleConfiguration
  readonly clientPort?: number
  readonly folders?: SplitFolders
}

/** Returns the folders of a zoo.cfg; undefined where it names none for the logs, or the same. */
function foldersIn(values: ReadonlyMap<string, string>): SplitFolders | undefined {
  const [dataDir, dataLogDir] = [values.get('dataDir'), values.get('dataLogDir')]
  if (dataLogDir === undefined || resolve(dataLogDir) === resolve(dataDir ?? '')) return undefined
  return { dataDir, dataLogDir }
}

/** Reads members, client port and folders of a zoo.cfg, or the members of a dynamic configuration file. */
function readConfiguration(file: string | undefined): KnownConfiguration {
  if (file === undefined) return {}
  const values = valuesIn(readTextArg(file))
  const lines = [...values]
    .filter(([key]) => /^(?:server|group|weight)\.\d+$/.test(key))
    .map((pair) => pair.join('='))
  if (lines.length === 0)
    throw new UsageError(
      `${file}: Expected lines server.N=…, got none. Name the file with the members (dynamicConfigFile).`,
    )
  const port = /^\d{1,5}$/.exec(values.get('clientPort') ?? '')?.[0]
  const folders = foldersIn(values)
  return {
    configuration: parseConfiguration(lines.join('\n')),
    ...(port === undefined ? {} : { clientPort: Number(port) }),
    ...(folders === undefined ? {} : { folders }),
  }
}

function memberIds(text: string): readonly number[] {
  const ids = text.split(',').map((part) => Number(part.trim()))
  if (ids.length > 0 && ids.every((id) => Number.isInteger(id) && id >= 0 && id <= 255)) return ids
  throw new InvalidArgumentError('Expected ids of members, such as 4 or 4,5.')
}
