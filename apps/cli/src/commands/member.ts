import { InvalidArgumentError } from 'commander'
import type { CommandModule, Context } from '../context.ts'
import { ExitCode, Failure } from '../exit-codes.ts'
import { note, print, printJson } from '../io.ts'
import type { AdminClient } from '../session/admin-client.ts'
import { openAdmin, withAdminOption, type AdminFlags } from '../session/admin-options.ts'
import { safeLine } from '../text/bytes.ts'
import { printTable } from '../text/table.ts'

interface Flags extends AdminFlags {
  readonly dryRun?: boolean
}

interface Members {
  readonly version: string
  readonly members: readonly {
    readonly id: number
    readonly role: string
    readonly addresses: readonly {
      readonly host: string
      readonly quorumPort: number
      readonly electionPort: number
    }[]
    readonly client: { readonly host: string; readonly port: number } | null
    /** The text with which it is added. */
    readonly member: string
  }[]
  readonly voters: readonly number[]
  /** How many voters are a quorum; null where that depends on which. */
  readonly quorum: number | null
}

const PATH = '/api/v1/members'

/** `zabra member`: the members of an ensemble, by its configuration. */
export const member: CommandModule = (program, context) => {
  const command = program
    .command('member')
    .description('list, add and remove the members of an ensemble (reconfigEnabled=true)')
    .addHelpText('after', HELP)
  const dryRun = ['-n, --dry-run', 'print the configuration and the quorum that would follow'] as const

  withAdminOption(command.command('list'))
    .description('print the members')
    .action((flags: AdminFlags) => list(context, flags))
  withAdminOption(command.command('add'))
    .description('add a member, or change the addresses or the role of one')
    .argument('<member>', 'such as 4=zk4:2888:3888:observer;2181', memberLine)
    .option(...dryRun)
    .action((line: string, flags: Flags) =>
      change(context, flags, (admin, isDryRun) =>
        admin.json('POST', PATH, { body: { member: line, dryRun: isDryRun } }),
      ),
    )
  withAdminOption(command.command('promote'))
    .description('make an observer a voter')
    .argument('<id>', 'its id', memberId)
    .option(...dryRun)
    .action((id: number, flags: Flags) =>
      change(context, flags, (admin, isDryRun) => promote(admin, id, isDryRun)),
    )
  withAdminOption(command.command('remove'))
    .description('remove a member')
    .argument('<id>', 'its id', memberId)
    .option(...dryRun)
    .action((id: number, flags: Flags) =>
      change(context, flags, (admin, isDryRun) => admin.json('DELETE', `${PATH}/${id}?dryRun=${isDryRun}`)),
    )
}

const HELP = `
Add a member as an observer, wait until it is in step (zabra cluster status), then promote it: the
ensemble never depends on a voter that has no data. --admin names any member; changes need the role
admin there. Where all members run Apache ZooKeeper, zabra shell has reconfig.`

async function list(context: Context, flags: AdminFlags): Promise<void> {
  const { io, options } = context
  const found = await openAdmin(context, flags).json<Members>('GET', PATH)
  if (options().json) return printJson(io, found)
  const rows = found.members.map(({ id, role, addresses, client }) => [
    String(id),
    role,
    addresses.map(({ host, quorumPort, electionPort }) => `${host}:${quorumPort}:${electionPort}`).join('|'),
    client === null ? '-' : `${client.host}:${client.port}`,
  ])
  printTable(io, ['id', 'role', 'quorum and election', 'clients'], rows)
}

async function promote(admin: AdminClient, id: number, dryRun: boolean): Promise<Members> {
  const { version, members } = await admin.json<Members>('GET', PATH)
  const found = members.find((one) => one.id === id)
  if (found === undefined)
    throw new Failure(`There is no member ${id}. zabra member list shows them.`, ExitCode.noNode)
  if (found.role !== 'observer') throw new Failure(`Member ${id} is a voter already.`, ExitCode.refused)
  const voter = found.member.replace(/:observer(?=;|$)/, ':participant')
  // With the version, a change that another operator makes meanwhile is not overwritten.
  return admin.json('POST', PATH, { body: { member: voter, version, dryRun } })
}

async function change(
  context: Context,
  flags: Flags,
  send: (admin: AdminClient, dryRun: boolean) => Promise<Members>,
): Promise<void> {
  const { io, options } = context
  const isDryRun = flags.dryRun === true
  const found = await send(openAdmin(context, flags), isDryRun)
  const { members, voters, quorum } = found
  if (options().json) printJson(io, found)
  else if (isDryRun)
    print(
      io,
      ...members.map((one) => `server.${safeLine(one.member)}`),
      quorum === null
        ? `${voters.length} voters, of which groups and weights say what is a quorum`
        : `${voters.length} voters, of which ${quorum} are a quorum: ${voters.length - quorum} may fail`,
    )
  else print(io, safeLine(`the members are ${members.map(({ id }) => id).join(', ')} now`))
  if (!isDryRun && quorum !== null && voters.length % 2 === 0)
    note(
      io,
      `${voters.length} voters survive no more failures than ${voters.length - 1}: an odd number is better`,
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
