import { Option } from 'commander'
import { setTimeout } from 'node:timers/promises'
import { duration, integer, timeOption } from '../arguments.ts'
import type { CommandModule } from '../context.ts'
import { print, printJson } from '../io.ts'
import type { AdminClient } from '../session/admin-client.ts'
import { openAdmin, withAdminOption, type AdminFlags } from '../session/admin-options.ts'
import { painter } from '../text/style.ts'
import { printTable } from '../text/table.ts'

interface Flags extends AdminFlags {
  readonly by: string
  readonly sort: string
  readonly limit: number
  readonly interval: number
  readonly once?: boolean
}

interface Usage {
  readonly operations: number
  readonly bytes: number
  readonly timeMs: number
}

interface Top extends Usage {
  readonly windowMs: number
  /** Absent in the answers of older servers. */
  readonly oneIn?: number
  readonly entries: readonly (Usage & { readonly key: string; readonly overcount: number })[]
}

/** Moves the cursor to the top left, and erases what is below. */
const REDRAW = '\u001B[H\u001B[J'

/** `zabra top`: what uses a server most, now. */
export const top: CommandModule = (program, context) => {
  const { io, options } = context
  withAdminOption(program.command('top'))
    .description('show the paths, sessions, addresses or identities that use a server most')
    .addOption(
      new Option('--by <kind>', 'what to show')
        .choices(['path', 'session', 'address', 'identity'])
        .default('path'),
    )
    .addOption(
      new Option('--sort <measure>', 'what counts')
        .choices(['operations', 'bytes', 'time'])
        .default('operations'),
    )
    .option('-n, --limit <rows>', 'rows to show', integer(1, 256), 20)
    .addOption(
      timeOption(
        '--interval <time>',
        'time between two readings, such as 5s',
        duration(100, 3_600_000),
        '2s',
      ),
    )
    .option('--once', 'print one reading and exit (default unless on a terminal or with --json)')
    .addHelpText('after', HELP)
    .action(async (flags: Flags) => {
      const { json } = options()
      const admin = openAdmin(context, flags)
      const isTerminal = io.stdout.isTTY === true
      const isOnce = flags.once === true || !(isTerminal || json)
      // The server begins to count with the first request.
      let found = await read(admin, flags)
      do {
        if (!isOnce || found.windowMs < flags.interval)
          await setTimeout(flags.interval, undefined, { signal: io.signal })
        found = await read(admin, flags)
        if (json) printJson(io, found)
        else {
          if (!isOnce) io.stdout.write(REDRAW)
          const seconds = (found.windowMs / 1000).toFixed(0)
          const { oneIn = 1 } = found
          const estimated = oneIn > 1 ? `, estimated from one in ${oneIn}` : ''
          print(
            io,
            painter(io, io.stdout)(
              'faint',
              `${admin.url.host}: ${found.operations} requests in ${seconds} s${estimated}, by ${flags.by}`,
            ),
          )
          printTable(io, [flags.by, 'per second', 'share', 'bytes per second', 'mean ms'], rows(found))
        }
      } while (!isOnce)
    })
}

const HELP = `
Shows the requests of the clients of one server in the last minute. The server counts them while
this command runs and for a minute afterwards. Names are exact; figures of rare keys are too low
where there are more than 256 keys at a time. Above 1,000 requests a second the server counts a
random sample, and the figures are estimates.`

const read = (admin: AdminClient, { by, sort, limit }: Flags): Promise<Top> =>
  admin.json<Top>('GET', `/api/v1/top?by=${by}&sort=${sort}&limit=${limit}`)

function rows({ windowMs, operations: all, entries }: Top): string[][] {
  const perSecond = (value: number): string => ((value * 1000) / Math.max(1, windowMs)).toFixed(1)
  return entries.map(({ key, operations, bytes, timeMs }) => [
    key,
    perSecond(operations),
    `${((100 * operations) / Math.max(1, all)).toFixed(1)} %`,
    perSecond(bytes),
    (timeMs / Math.max(1, operations)).toFixed(2),
  ])
}
