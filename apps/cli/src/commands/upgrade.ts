import type { CommandModule } from '../context.ts'
import { ExitCode, Failure } from '../exit-codes.ts'
import { note, print, printJson } from '../io.ts'
import { openAdmin, withAdminOption, type AdminFlags } from '../session/admin-options.ts'
import { planUpgrade, type UpgradedCluster } from '../session/upgrade-plan.ts'
import { safeLine } from '../text/bytes.ts'
import { printTable } from '../text/table.ts'

const STEPS = [
  'For each, in this order:',
  '1. zabra drain --admin URL --over 5s, which waits for the permit to stop',
  '2. stop it, install the release, start it',
  '3. wait until its /readyz answers 200',
  'zabra cluster roll does that for all of them.',
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
          state,
          softwareVersion?.split(',')[0] ?? '-',
        ])
        printTable(io, ['id', 'votes', 'state', 'version'], rows)
        print(io, '', ...STEPS)
        for (const text of notes) note(io, safeLine(text))
      }
      if (problems.length > 0)
        throw new Failure(`Not now: ${problems.map(safeLine).join('; ')}.`, ExitCode.unhealthy)
    })
}
