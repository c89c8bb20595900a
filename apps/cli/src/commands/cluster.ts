import { integer } from '../arguments.ts'
import type { CommandModule, Context } from '../context.ts'
import { ExitCode, Failure } from '../exit-codes.ts'
import { note, print, printJson } from '../io.ts'
import { openAdmin, withAdminOption, type AdminFlags } from '../session/admin-options.ts'
import { compareDigests } from '../session/compare-digests.ts'
import { roll } from '../session/roll.ts'
import { safeLine } from '../text/bytes.ts'
import { clusterTable, type ShownMember } from '../text/cluster-table.ts'
import { printTable } from '../text/table.ts'

interface Cluster {
  readonly leader: number | null
  /** Absent in answers of older servers. */
  readonly clusterId?: string | null
  /** Absent in answers of older servers. */
  readonly features?: {
    readonly release: number
    readonly finalized: number
    readonly proposed: number | null
  }
  readonly failuresLeft: number | null
  readonly members: readonly ShownMember[]
}

/** `zabra cluster`: the ensemble as one of its members sees it. */
export const cluster: CommandModule = (program, context) => {
  const { io, options } = context
  const command = program.command('cluster').description('show an ensemble by one of its members')
  withAdminOption(command.command('finalize'))
    .description('finalize a feature level: no member can go back to Apache ZooKeeper or an earlier release')
    .option('--level <n>', 'the level (else the highest one of all members)', integer(1, 65_535))
    .option('-n, --dry-run', 'explain it only, as without --yes')
    .option('--yes', 'do it; it is explained only otherwise')
    .addHelpText('after', FINALIZE_HELP)
    .action((flags: FinalizeFlags) => finalize(context, flags))
  roll(command, context)
  compareDigests(command, context)
  withAdminOption(command.command('status'))
    .description(
      'print of all members the state, lag, readiness, uptime, disk, days to the end of a certificate, and the age of what is known',
    )
    .action(async (flags: AdminFlags) => {
      const found = await openAdmin(context, flags).json<Cluster>('GET', '/api/v1/cluster')
      if (options().json) printJson(io, found)
      else {
        const { head, rows, style, notes } = clusterTable(found.members, Date.now())
        printTable(io, head, rows, style)
        for (const line of notes) note(io, line)
      }
      const { failuresLeft, clusterId, features } = found
      note(io, `ensemble ${safeLine(clusterId ?? 'without an id')}`)
      if (features !== undefined) note(io, describeFeatures(features))
      if (failuresLeft !== null && failuresLeft > 0)
        note(io, `${failuresLeft} more ${failuresLeft === 1 ? 'voter' : 'voters'} may fail`)
      const wrong = found.members.filter(({ problem }) => problem !== null)
      if (wrong.length > 0)
        throw new Failure(
          `${wrong.length} of ${found.members.length} members ${wrong.length === 1 ? 'is' : 'are'} not ready or not reached.`,
          ExitCode.unhealthy,
        )
    })
}

/** Says up to which level the ensemble may not go back. */
function describeFeatures({ release, finalized, proposed }: NonNullable<Cluster['features']>): string {
  if (proposed !== null) return `feature level ${proposed} is final once all members have stored it`
  if (finalized === 0)
    return `feature level ${release}, not finalized: members may go back to an earlier release or to Apache ZooKeeper`
  const later = release > finalized ? `; this release has level ${release}` : ''
  return `feature level ${finalized}, finalized${later}`
}

interface FinalizePlan {
  readonly level: number
  readonly finalized: number
  readonly members: readonly {
    readonly id: number
    readonly release: number | null
    readonly obstacle: string | null
  }[]
  readonly obstacles: readonly string[]
}

interface FinalizeFlags extends AdminFlags {
  readonly level?: number
  readonly yes?: boolean
  readonly dryRun?: boolean
}

const FINALIZE_PATH = '/api/v1/cluster/finalize'

const FINALIZE_HELP = `
--admin names the leader, which zabra cluster status shows. All members have to be connected and at the level.
It cannot be undone: a member that runs Apache ZooKeeper or an earlier release is refused afterwards.
https://github.com/zabra/zabra/blob/main/docs/upgrade.md has the steps of an upgrade.`

async function finalize(context: Context, flags: FinalizeFlags): Promise<void> {
  const { io, options } = context
  const admin = openAdmin(context, flags)
  const { level: wanted, yes } = flags
  if (yes !== true || flags.dryRun === true) {
    const query = wanted === undefined ? '' : `?level=${wanted}`
    const plan = await admin.json<FinalizePlan>('GET', `${FINALIZE_PATH}${query}`)
    if (options().json) printJson(io, plan)
    else explainPlan(context, plan)
    if (plan.obstacles.length > 0) throw new Failure('The level cannot be finalized now.', ExitCode.refused)
    return
  }
  const body = wanted === undefined ? {} : { level: wanted }
  const done = await admin.json<{ level: number; finalized: number; waitsFor?: number[] }>(
    'POST',
    FINALIZE_PATH,
    { body },
  )
  if (options().json) printJson(io, done)
  if (done.waitsFor !== undefined)
    throw new Failure(
      `Level ${done.level} is proposed. It is final once these members have stored it: ${done.waitsFor.join(', ')}. Start them if they are down; zabra cluster status shows when it is done.`,
      ExitCode.unhealthy,
    )
  if (!options().json) print(io, safeLine(`feature level ${done.finalized} is finalized`))
}

function explainPlan({ io }: Context, { level, finalized, members, obstacles }: FinalizePlan): void {
  printTable(
    io,
    ['id', 'level', 'obstacle'],
    members.map(({ id, release, obstacle }) => [
      String(id),
      release === null ? '-' : String(release),
      obstacle ?? '',
    ]),
    (_, column) => (column === 2 ? 'bad' : undefined),
  )
  if (finalized >= level)
    return print(io, '', `level ${finalized} is finalized already: nothing is to be done`)
  const lost = level === 1 ? 'Apache ZooKeeper' : `Apache ZooKeeper, or to a release below level ${level}`
  print(
    io,
    '',
    `would finalize feature level ${level} (now ${finalized}): no member can go back to ${lost}, not even with its folder of today, and none that runs one can join. There is no way back but a backup.`,
    ...(obstacles.length > 0 ? [] : ['--yes does it.']),
  )
}

interface TransferFlags extends AdminFlags {
  readonly to?: number
}

/** `zabra transfer`: makes the leader hand leadership over. */
export const transfer: CommandModule = (program, context) => {
  const { io, options } = context
  withAdminOption(program.command('transfer'))
    .description('make the leader hand leadership over to a member that is in step')
    .option('--to <id>', 'the member that is to lead (else the one that the others elect)', integer(0, 255))
    .addHelpText('after', TRANSFER_HELP)
    .action(async (flags: TransferFlags) => {
      const { to } = flags
      const done = await openAdmin(context, flags).json<{ from: number; leader: number }>(
        'POST',
        '/api/v1/leader/transfer',
        { body: to === undefined ? {} : { to } },
      )
      if (options().json) printJson(io, done)
      else if (done.from === done.leader) print(io, safeLine(`server ${done.leader} leads already`))
      else print(io, safeLine(`server ${done.leader} leads now, in place of server ${done.from}`))
    })
}

const TRANSFER_HELP = `
--admin names the leader, which zabra cluster status shows. Writes wait until another member leads. --to may
name a member that runs Apache ZooKeeper, but such a leader cannot hand over: restart it.`
