import {
  applyReconfig,
  ConfigurationError,
  parseConfiguration,
  printConfiguration,
  ReconfigurationError,
  type EnsembleConfiguration,
} from '@zabra/server/settings'
import { InvalidArgumentError } from 'commander'
import type { CommandModule, Context } from '../context.ts'
import { ExitCode, Failure, UsageError } from '../exit-codes.ts'
import { note, print, printJson } from '../io.ts'
import type { Client } from '@zabra/client'
import { printTable } from '../text/table.ts'

interface Flags {
  readonly dryRun?: boolean
}

/** `zabra member`: the members of an ensemble, by its configuration. */
export const member: CommandModule = (program, context) => {
  const command = program
    .command('member')
    .description('list, add and remove the members of an ensemble (reconfigEnabled=true)')
    .addHelpText('after', HELP)
  const dryRun = ['-n, --dry-run', 'print the configuration and the quorum that would follow'] as const

  command
    .command('list')
    .description('print the members')
    .action(() => list(context))
  command
    .command('add')
    .description('add a member, or change the addresses or the role of one')
    .argument('<member>', 'such as 4=zk4:2888:3888:observer;2181', memberLine)
    .option(...dryRun)
    .action((line: string, flags: Flags) => change(context, { joining: line }, flags))
  command
    .command('promote')
    .description('make an observer a voter')
    .argument('<id>', 'its id', memberId)
    .option(...dryRun)
    .action((id: number, flags: Flags) => promote(context, id, flags))
  command
    .command('remove')
    .description('remove a member')
    .argument('<id>', 'its id', memberId)
    .option(...dryRun)
    .action((id: number, flags: Flags) => change(context, { leaving: String(id) }, flags))
}

const HELP = `
Add a member as an observer, wait until it is in step (zabra cluster status), then promote it: the
ensemble never depends on a voter that has no data. Changes need the permission write on
/zookeeper/config, which only a superuser has by default: give --auth digest:super:password.`

/** What to do about refusals of a server, and their exit codes. */
const ADVICE: Readonly<Record<string, readonly [advice: string, exitCode: ExitCode]>> = {
  NEW_CONFIG_NO_QUORUM: [
    'The voters that would be are no quorum yet: some do not run, or lack data. Wait until zabra cluster status shows them with the zxid of the others, then run this again. Observers do not count: the second member of an ensemble of one is added as a voter.',
    ExitCode.refused,
  ],
  NO_AUTH: [
    'No permission: a change of the members needs WRITE on /zookeeper/config, which only a superuser has by default. Give --auth digest:super:password.',
    ExitCode.noPermission,
  ],
}

interface Change {
  readonly joining?: string
  readonly leaving?: string
}

async function list({ io, options, session }: Context): Promise<void> {
  const { members, version } = await session(read)
  if (options().json)
    return printJson(io, {
      version: `0x${version.toString(16)}`,
      members: [...members.values()].map(({ id, role, addresses, client }) => ({
        id,
        role,
        addresses,
        client,
      })),
    })
  const rows = [...members.values()].map(({ id, role, addresses, client }) => [
    String(id),
    role,
    addresses.map(({ host, quorumPort, electionPort }) => `${host}:${quorumPort}:${electionPort}`).join('|'),
    client === undefined ? '-' : `${client.host}:${client.port}`,
  ])
  printTable(io, ['id', 'role', 'quorum and election', 'clients'], rows)
}

async function promote(context: Context, id: number, flags: Flags): Promise<void> {
  const { members } = await context.session(read)
  const found = members.get(id)
  if (found === undefined)
    throw new Failure(`There is no member ${id}. zabra member list shows them.`, ExitCode.noNode)
  const voter = { version: 0, members: new Map([[id, { ...found, role: 'participant' as const }]]) }
  const [line] = printConfiguration(voter).split('\n')
  await change(context, { joining: line!.replace(/^server\./, '') }, flags)
}

async function change(context: Context, wanted: Change, { dryRun }: Flags): Promise<void> {
  const { io, options, session } = context
  await session(async (zk) => {
    const before = await read(zk)
    const next = applied(before, wanted)
    if (dryRun) {
      const voters = [...next.members.values()].filter(({ role }) => role === 'participant').length
      const quorum = Math.floor(voters / 2) + 1
      if (options().json) return printJson(io, { members: [...next.members.keys()], voters, quorum })
      return print(
        io,
        ...printConfiguration(next)
          .split('\n')
          .filter((line) => !line.startsWith('version=')),
        `${voters} voters, of which ${quorum} are a quorum: ${voters - quorum} may fail`,
      )
    }
    // With the version, a change that another operator makes meanwhile is not overwritten.
    const { joining, leaving } = wanted
    const request = {
      joining: joining === undefined ? undefined : `server.${joining}`,
      leaving,
      version: BigInt(before.version),
    }
    // Retried, a refusal for want of a quorum would end as a timeout.
    await zk.reconfig(request, { retry: false }).catch((error: unknown) => {
      const [advice, exitCode] = ADVICE[(error as { code?: string }).code ?? ''] ?? []
      throw advice === undefined ? error : new Failure(advice, exitCode!, { cause: error })
    })
    if (options().json) printJson(io, { members: [...next.members.keys()] })
    else print(io, `the members are ${[...next.members.keys()].join(', ')} now`)
    const voters = [...next.members.values()].filter(({ role }) => role === 'participant').length
    if (voters % 2 === 0)
      note(io, `${voters} voters survive no more failures than ${voters - 1}: an odd number is better`)
  })
}

/** Returns the configuration that follows from a change. Throws a `UsageError` that says why there is none. */
function applied(before: EnsembleConfiguration, { joining, leaving }: Change): EnsembleConfiguration {
  const request = {
    joiningServers: joining === undefined ? null : `server.${joining}`,
    leavingServers: leaving ?? null,
    newMembers: null,
  }
  try {
    return applyReconfig(before, request, { version: before.version, minVoters: 1 })
  } catch (error) {
    if (error instanceof ReconfigurationError || error instanceof ConfigurationError)
      throw new UsageError(error.message)
    throw error
  }
}

async function read(zk: Client): Promise<EnsembleConfiguration> {
  const { data } = await zk.getConfig()
  const text = new TextDecoder().decode(data)
  if (/^server\./m.test(text)) return parseConfiguration(text)
  throw new Failure(
    'The server is a standalone one, or does not show its members: it has no configuration of an ensemble.',
    ExitCode.refused,
  )
}

function memberLine(text: string): string {
  const line = text.replace(/^server\./, '')
  if (/^\d{1,3}=[^=,\s]+:\d+:\d+[^=,\s]*$/.test(line)) return line
  throw new InvalidArgumentError('Expected a member such as 4=zk4:2888:3888:observer;2181.')
}

function memberId(text: string): number {
  const id = Number(text)
  if (/^\d{1,3}$/.test(text) && id <= 255) return id
  throw new InvalidArgumentError('Expected the id of a member, a number from 0 to 255.')
}
