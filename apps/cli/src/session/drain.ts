import type { Command } from 'commander'
import { duration, timeOption } from '../arguments.ts'
import type { Context } from '../context.ts'
import { ExitCode, Failure, UsageError } from '../exit-codes.ts'
import { note, pause } from '../io.ts'
import type { AdminClient } from './admin-client.ts'

/** Time between two requests for a permit, in milliseconds. */
const RETRY_MS = 1000
const MAX_MS = 3_600_000

/** Times of a drain, in milliseconds. The permit lasts for `over` and `for` together. */
export interface DrainTimes {
  /** How long to wait for the permit. */
  readonly wait: number
  /** How long the stop may take. */
  readonly for: number
  /** The time over which connections of clients are closed. */
  readonly over: number
}

/** Adds the options of `DrainTimes` to a command. */
export const withDrainOptions = (command: Command): Command =>
  command
    .addOption(timeOption('--wait <time>', 'how long to wait for the permit', duration(0, MAX_MS), '1m'))
    .addOption(
      timeOption(
        '--for <time>',
        'how long the stop may take once the connections are closed',
        duration(1000, MAX_MS),
        '2m',
      ),
    )
    .addOption(
      timeOption(
        '--over <time>',
        'close the connections of clients over this time',
        duration(0, MAX_MS),
        '5s',
      ),
    )

/** Waits for the permit to stop a server, and moves its clients to others. Resolves to the id of the server. */
export async function drainServer(context: Context, admin: AdminClient, times: DrainTimes): Promise<number> {
  const { io } = context
  const permitMs = times.over + times.for
  if (permitMs > MAX_MS)
    throw new UsageError(
      'Expected --over and --for to be an hour together at most, the longest time of a permit to stop, got more.',
    )
  const id = await awaitPermit(context, admin, Math.ceil(permitMs / 1000), times.wait)
  await admin.json('POST', '/api/v1/drain', { body: { seconds: times.over / 1000 } })
  await pause(io, times.over)
  return id
}

/** Lets a server accept sessions again, and gives its permit to stop back. */
export async function undrainServer(admin: AdminClient): Promise<void> {
  await admin.json('DELETE', '/api/v1/drain')
  await admin.json('DELETE', '/api/v1/stop-permit')
}

/** Asks until the leader gives a permit. Resolves to the id of the server; rejects with a `Failure` when it has not in time. */
async function awaitPermit(
  { io }: Context,
  admin: AdminClient,
  seconds: number,
  waitMs: number,
): Promise<number> {
  const until = performance.now() + waitMs
  for (let reason = ''; ;) {
    const { id, detail = '' } = await admin.json<Permit>('POST', '/api/v1/stop-permit', {
      body: { seconds },
      accepts: [200, 409, 503],
    })
    if (id !== undefined) return id
    if (detail !== reason) note(io, `waits: ${detail}`)
    reason = detail
    const left = until - performance.now()
    if (left <= 0)
      throw new Failure(
        `The leader has not let the server stop within ${waitMs} ms. ${detail}`,
        ExitCode.refused,
      )
    await pause(io, Math.min(RETRY_MS, left))
  }
}

/** The permit of the leader, with the id of the server, or why there is none. */
interface Permit {
  readonly id?: number
  readonly detail?: string
}
