import { Option } from 'commander'
import type { CommandModule, Context } from '../context.ts'
import { ExitCode, Failure } from '../exit-codes.ts'
import { note, pause, print, printJson } from '../io.ts'
import { NO_LIMIT, type AdminClient } from '../session/admin-client.ts'
import { openAdmin, withAdminOption, type AdminFlags } from '../session/admin-options.ts'
import { serverEvents } from '../session/event-stream.ts'
import { safeLine } from '../text/bytes.ts'
import { painter, type Paint } from '../text/style.ts'

interface Flags extends AdminFlags {
  readonly follow?: boolean
  readonly level: string
  readonly type?: readonly string[]
}

/** Time without a byte after which a stream counts as lost: servers send something each 15 s. */
const SILENT_MS = 45_000
/** Time before the first attempt to connect again, in milliseconds; twice as long before each further one, up to `MAX_WAIT_MS`. */
const WAIT_MS = 1000
const MAX_WAIT_MS = 15_000

/** `zabra events`: what has happened on a server, and what happens. */
export const events: CommandModule = (program, context) => {
  withAdminOption(program.command('events'))
    .description('print what has happened on a server: roles, elections, refusals, backups, changes')
    .option('-f, --follow', 'go on with what happens, until Ctrl-C')
    .addOption(
      new Option('--level <level>', 'the least important level')
        .choices(['error', 'warn', 'info'])
        .default('info'),
    )
    .option('--type <ids...>', 'only these ids or parts of the log, such as election backup.failed')
    .addHelpText('after', HELP)
    .action((flags: Flags) => follow(context, flags))
}

const HELP = `
A server keeps its last 512 events. The ids are those of its log:
https://github.com/zabra/zabra/blob/main/docs/log-events.md
With --follow the command connects again where it was after the connection was lost, and says what was
missed.`

async function follow(context: Context, flags: Flags): Promise<void> {
  const { io } = context
  const admin = openAdmin(context, flags)
  const place: { last: string | undefined } = { last: undefined }
  let waitMs = WAIT_MS
  let isConnected = false
  for (let hasBegun = false; ; hasBegun = true) {
    try {
      await read(context, admin, flags, place, () => {
        if (hasBegun && !isConnected) note(io, `connected to ${admin.url.host} again`)
        isConnected = true
        waitMs = WAIT_MS
      })
      if (flags.follow !== true) return
      if (isConnected) note(io, `${admin.url.host} has ended the stream; connecting again`)
    } catch (error) {
      io.signal.throwIfAborted()
      // The first attempt says what is wrong; later ones wait for a server that starts.
      const mayPass = error instanceof Failure && error.exitCode !== ExitCode.noPermission
      if (!mayPass || flags.follow !== true || (!isConnected && !hasBegun)) throw error
      if (isConnected) note(io, `${error.message} Connecting again.`)
    }
    isConnected = false
    await pause(io, waitMs)
    waitMs = Math.min(MAX_WAIT_MS, 2 * waitMs)
  }
}

/** Prints a stream to its end. */
async function read(
  { io, options }: Context,
  admin: AdminClient,
  { follow = false, level, type = [] }: Flags,
  place: { last: string | undefined },
  onConnected: () => void,
): Promise<void> {
  const { json } = options()
  const paint = painter(io, io.stdout)
  const query = new URLSearchParams({
    follow: String(follow),
    level,
    ...(type.length === 0 ? {} : { types: type.join(',') }),
    ...(place.last === undefined ? {} : { after: place.last }),
  })
  const { chunks } = await admin.request('GET', `/api/v1/events?${query.toString()}`, {
    silentMs: SILENT_MS,
    limit: NO_LIMIT,
  })
  onConnected()
  for await (const { data } of serverEvents(chunks, (id) => (place.last = id))) {
    const line = parsed(data)
    if (json) printJson(io, line)
    else print(io, shown(line, paint))
  }
}

type Line = Readonly<Record<string, unknown>>

function parsed(data: string): Line {
  try {
    const line: unknown = JSON.parse(data)
    if (typeof line === 'object' && line !== null) return line as Line
  } catch {
    // The error below says what is expected.
  }
  throw new Failure(
    'The stream of the server is not understood. Check that --admin names the HTTP port of a Zabra server.',
    ExitCode.refused,
  )
}

/** Formats an event as a line: time, level, id, sentence, and the fields. */
function shown({ time, level, id, msg, ...fields }: Line, paint: Paint): string {
  const named = Object.entries(fields).filter(([name]) => name !== 'part')
  const rest = named.map(([name, value]) => `${name}=${textOf(value)}`)
  const [when, rank, event, sentence] = [time, level, id, msg].map(String) as [string, string, string, string]
  const style = rank === 'error' ? 'bad' : rank === 'warn' ? 'warning' : undefined
  const marked = rank.toUpperCase().padEnd(5)
  return [
    safeLine(when),
    style === undefined ? safeLine(marked) : paint(style, safeLine(marked)),
    safeLine(event),
    safeLine(sentence),
    ...(rest.length === 0 ? [] : [paint('faint', safeLine(rest.join(' ')))]),
  ].join(' ')
}

const textOf = (value: unknown): string =>
  typeof value === 'string' && /^[^\s"=]+$/.test(value) ? value : JSON.stringify(value)
