import { setTimeout as sleep } from 'node:timers/promises'
import { duration, timeOption } from '../arguments.ts'
import type { CommandModule, Context } from '../context.ts'
import { ExitCode, Failure } from '../exit-codes.ts'
import { note, print, printJson } from '../io.ts'
import type { AdminClient } from '../session/admin-client.ts'
import { openAdmin, withAdminOption, type AdminFlags } from '../session/admin-options.ts'

/** Time between two requests for a permit, in milliseconds. */
const RETRY_MS = 1000
const MAX_MS = 3_600_000

interface Flags extends AdminFlags {
  readonly wait: number
  readonly for: number
  readonly over: number
  readonly end?: boolean
}

/** `zabra drain`: makes a server ready to be stopped, without taking the quorum away. */
export const drain: CommandModule = (program, context) => {
  withAdminOption(program.command('drain'))
    .description('wait until the leader lets a server stop, then move its clients to others')
    .addOption(timeOption('--wait <time>', 'how long to wait for the permit', duration(0, MAX_MS), '1m'))
    .addOption(timeOption('--for <time>', 'how long the stop may take', duration(1000, MAX_MS), '2m'))
    .addOption(
      timeOption(
        '--over <time>',
        'close the connections of clients over this time',
        duration(0, MAX_MS),
        '5s',
      ),
    )
    .option('--end', 'give the permit back, and accept sessions again')
    .action((flags: Flags) => (flags.end === true ? end(context, flags) : begin(context, flags)))
}

async function begin(context: Context, flags: Flags): Promise<void> {
  const { io, options } = context
  const admin = openAdmin(context, flags)
  const stopWithin = Math.ceil(flags.for / 1000)
  const id = await awaitLeave(context, admin, stopWithin, flags.wait)
  await admin.json('POST', '/api/v1/drain', { body: { seconds: flags.over / 1000 } })
  await sleep(flags.over, undefined, { signal: io.signal }).catch(() => io.signal.throwIfAborted())
  if (options().json) printJson(io, { id, seconds: stopWithin })
  else print(io, `server ${id} may be stopped within ${stopWithin} s`)
}

/** Asks until the leader gives a permit. Resolves to the id of the server; rejects with a `Failure` when it has not in time. */
async function awaitLeave(
  { io }: Context,
  admin: AdminClient,
  seconds: number,
  waitMs: number,
): Promise<number> {
  const until = Date.now() + waitMs
  for (let reason = ''; ;) {
    const { id, detail = '' } = await admin.json<Leave>('POST', '/api/v1/stop-permit', {
      body: { seconds },
      accepts: [200, 409, 503],
    })
    if (id !== undefined) return id
    if (detail !== reason) note(io, `waits: ${detail}`)
    reason = detail
    const left = until - Date.now()
    if (left <= 0)
      throw new Failure(
        `The leader has not let the server stop within ${waitMs} ms. ${detail}`,
        ExitCode.refused,
      )
    await sleep(Math.min(RETRY_MS, left), undefined, { signal: io.signal }).catch(() =>
      io.signal.throwIfAborted(),
    )
  }
}

/** The permit of the leader, with the id of the server, or why there is none. */
interface Leave {
  readonly id?: number
  readonly detail?: string
}

async function end(context: Context, flags: Flags): Promise<void> {
  const admin = openAdmin(context, flags)
  await admin.json('DELETE', '/api/v1/drain')
  await admin.json('DELETE', '/api/v1/stop-permit')
  if (context.options().json) printJson(context.io, { draining: false })
  else print(context.io, 'the server accepts sessions again')
}
