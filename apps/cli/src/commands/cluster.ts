import type { CommandModule } from '../context.ts'
import { ExitCode, Failure } from '../exit-codes.ts'
import { note, print, printJson } from '../io.ts'
import { openAdmin, withAdminOption, type AdminFlags } from '../session/admin-options.ts'
import { safeLine } from '../text/bytes.ts'
import { printTable } from '../text/table.ts'

interface Cluster {
  readonly leader: number | null
  /** Absent in answers of older servers. */
  readonly clusterId?: string | null
  readonly failuresLeft: number | null
  readonly members: readonly {
    readonly id: number
    readonly state: string
    readonly participant: boolean
    readonly zxid: string | null
    readonly connections: number | null
    readonly ageMs: number | null
    readonly problem: string | null
  }[]
}

/** `zabra cluster`: the ensemble as one of its members sees it. */
export const cluster: CommandModule = (program, context) => {
  const { io, options } = context
  const command = program.command('cluster').description('show an ensemble by one of its members')
  withAdminOption(command.command('status'))
    .description('print the state of all members, and the age of what is known of each')
    .action(async (flags: AdminFlags) => {
      const found = await openAdmin(context, flags).json<Cluster>('GET', '/api/v1/cluster')
      if (options().json) printJson(io, found)
      else {
        const rows = found.members.map(({ id, state, participant, zxid, connections, ageMs, problem }) => [
          String(id),
          participant ? 'voter' : 'observer',
          safeLine(state),
          zxid ?? '-',
          connections === null ? '-' : String(connections),
          ageMs === null ? 'never' : ageMs < 1000 ? 'now' : `${Math.floor(ageMs / 1000)} s`,
          safeLine(problem ?? ''),
        ])
        printTable(
          io,
          ['id', 'votes', 'state', 'zxid', 'connections', 'known', 'problem'],
          rows,
          (_, column) => (column === 6 ? 'bad' : undefined),
        )
      }
      const { failuresLeft, clusterId } = found
      note(io, `ensemble ${safeLine(clusterId ?? 'without an id')}`)
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

/** `zabra transfer`: makes the leader hand leadership over. */
export const transfer: CommandModule = (program, context) => {
  const { io, options } = context
  withAdminOption(program.command('transfer'))
    .description('make the leader hand leadership over to a member that is in step')
    .action(async (flags: AdminFlags) => {
      const { from } = await openAdmin(context, flags).json<{ from: number }>(
        'POST',
        '/api/v1/leader/transfer',
      )
      if (options().json) printJson(io, { from })
      else print(io, `server ${from} hands leadership over; zabra cluster status shows the next leader`)
    })
}
