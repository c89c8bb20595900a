import { sessionId } from '../arguments.ts'
import type { CommandModule, Context } from '../context.ts'
import { note, print, printJson } from '../io.ts'
import { openAdmin, withAdminOption, type AdminFlags } from '../session/admin-options.ts'
import { printTable } from '../text/table.ts'

interface ListedSession {
  readonly id: string
  readonly timeoutMs: number
  readonly local: boolean
  readonly address: string | null
  readonly ephemerals: number
  readonly watchedPaths: number
  readonly lastOperation: string | null
}

interface Page {
  readonly sessions: readonly ListedSession[]
  readonly next: string | null
}

const PAGE = 1000

/** `zabra session`: the sessions of a server. */
export const session: CommandModule = (program, context) => {
  const { io, options } = context
  const command = program.command('session').description('list and end the sessions of a server')
  withAdminOption(command.command('list'))
    .description('print the sessions that a server knows; one that leads knows all')
    .action((flags: AdminFlags) => list(context, flags, () => true))
  withAdminOption(command.command('kill'))
    .description('end a session: close its connection, and delete its ephemeral nodes')
    .argument('<id>', 'as zabra session list prints it, such as 0x1000018f5ff0000', sessionId)
    .action(async (id: string, flags: AdminFlags) => {
      await openAdmin(context, flags).request('DELETE', `/api/v1/sessions/${id}`)
      if (options().json) printJson(io, { session: id })
      else print(io, `session ${id} ends`)
    })
}

/** `zabra connection`: the connections of clients to a server. */
export const connection: CommandModule = (program, context) => {
  const { io, options } = context
  const command = program.command('connection').description('list and close the connections of a server')
  withAdminOption(command.command('list'))
    .description('print the sessions that are connected to a server')
    .action((flags: AdminFlags) => list(context, flags, ({ address }) => address !== null))
  withAdminOption(command.command('close'))
    .description('close the connection of a session, which its client may resume')
    .argument('<id>', 'the session, as zabra connection list prints it', sessionId)
    .action(async (id: string, flags: AdminFlags) => {
      await openAdmin(context, flags).request('DELETE', `/api/v1/connections/${id}`)
      if (options().json) printJson(io, { session: id })
      else print(io, `the connection of session ${id} is closed`)
    })
}

async function list(
  context: Context,
  flags: AdminFlags,
  isShown: (session: ListedSession) => boolean,
): Promise<void> {
  const { io, options } = context
  const admin = openAdmin(context, flags)
  const { json } = options()
  const rows: string[][] = []
  for (let after: string | null = ''; after !== null;) {
    const page: Page = await admin.json<Page>(
      'GET',
      `/api/v1/sessions?limit=${PAGE}${after === '' ? '' : `&after=${after}`}`,
    )
    for (const one of page.sessions.filter(isShown))
      if (json) printJson(io, one)
      else
        rows.push([
          one.id,
          one.address ?? '-',
          String(one.timeoutMs),
          String(one.ephemerals),
          String(one.watchedPaths),
          one.lastOperation ?? '-',
        ])
    after = page.next
  }
  if (!json && rows.length === 0) note(io, 'there are none on this server')
  else if (!json) printTable(io, ['session', 'client', 'timeout ms', 'ephemerals', 'watches', 'last'], rows)
}
