import type { CommandModule } from '../context.ts'
import { ExitCode, Failure } from '../exit-codes.ts'
import { note, print, printJson } from '../io.ts'
import { openAdmin, withAdminOption, type AdminFlags } from '../session/admin-options.ts'
import { safeLine } from '../text/bytes.ts'
import { printTable } from '../text/table.ts'

/** What `GET /api/v1/cluster` says that an upgrade depends on. */
export interface UpgradedCluster {
  readonly leader: number | null
  readonly failuresLeft: number | null
  readonly features?: {
    readonly release: number
    readonly finalized: number
    readonly proposed: number | null
  }
  readonly members: readonly UpgradedMember[]
}

interface UpgradedMember {
  readonly id: number
  readonly state: string
  readonly participant: boolean
  readonly softwareVersion: string | null
  readonly problem: string | null
}

/** The order in which members are replaced, and what is in the way of beginning. */
export interface UpgradePlan {
  /** Observers, then followers, the leader last. */
  readonly order: readonly UpgradedMember[]
  readonly problems: readonly string[]
  readonly notes: readonly string[]
}

/** Plans the replacement of all members of an ensemble by those of another release. */
export function planUpgrade({ leader, failuresLeft, features, members }: UpgradedCluster): UpgradePlan {
  const rank = ({ id, participant }: UpgradedMember): number => {
    if (id === leader) return 2
    return participant ? 1 : 0
  }
  const order = members.toSorted((a, b) => rank(a) - rank(b) || a.id - b.id)
  const problems = order
    .filter(({ problem }) => problem !== null)
    .map(({ id, problem }) => `server ${id}: ${problem}`)
  const voters = members.filter(({ participant }) => participant).length
  if (leader === null && members.length > 1) problems.push('the ensemble has no leader')
  if (voters > 2 && failuresLeft !== null && failuresLeft < 1)
    problems.push('the next voter that stops takes the quorum with it: start those that are down')
  if (features !== undefined && features.proposed !== null)
    problems.push(`feature level ${features.proposed} waits for members to store it: start them`)
  const notes: string[] = []
  if (voters < 3) notes.push('an ensemble of fewer than three voters serves no clients while one restarts')
  const versions = new Set(members.flatMap(({ softwareVersion }) => softwareVersion?.split(',')[0] ?? []))
  if (versions.size > 1)
    notes.push(`members run ${[...versions].join(' and ')}: go on with those of the earlier release`)
  if (features !== undefined && features.release > features.finalized)
    notes.push(
      `feature level ${features.release} of the running release is not finalized: do that with zabra cluster finalize before the next upgrade`,
    )
  return { order, problems, notes }
}

const STEPS = [
  'For each, in this order:',
  '1. zabra drain --admin URL --over 5s, which waits for the permit to stop',
  '2. stop it, install the release, start it',
  '3. wait until its /readyz answers 200',
  'Until zabra cluster finalize, each member can go back to the earlier release on its folder.',
]

/** `zabra upgrade plan`: in which order members are replaced by those of another release, and what is in the way. */
export const upgrade: CommandModule = (program, context) => {
  const { io, options } = context
  const command = program.command('upgrade').description('plan the upgrade of an ensemble')
  withAdminOption(command.command('plan'))
    .description('print the order in which the members are replaced, and what is in the way of it')
    .action(async (flags: AdminFlags) => {
      const found = await openAdmin(context, flags).json<UpgradedCluster>('GET', '/api/v1/cluster')
      const { order, problems, notes } = planUpgrade(found)
      if (options().json) printJson(io, { order: order.map(({ id }) => id), problems, notes })
      else {
        const rows = order.map(({ id, participant, state, softwareVersion }) => [
          String(id),
          participant ? 'voter' : 'observer',
          safeLine(state),
          safeLine(softwareVersion?.split(',')[0] ?? '-'),
        ])
        printTable(io, ['id', 'votes', 'state', 'version'], rows)
        print(io, '', ...STEPS)
        for (const text of notes) note(io, safeLine(text))
      }
      if (problems.length > 0)
        throw new Failure(`Not now: ${problems.map(safeLine).join('; ')}.`, ExitCode.unhealthy)
    })
}
