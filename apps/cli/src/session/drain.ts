import type { Command } from 'commander'
import { duration, timeOption } from '../arguments.ts'
import type { Context } from '../context.ts'
import { ExitCode, Failure, UsageError } from '../exit-codes.ts'
import { note, pause } from '../io.ts'
import type { AdminClient } from './admin-client.ts'
import { openAdmin, type AdminFlags } from './admin-options.ts'
import { safeLine } from '../text/bytes.ts'

/** Time between two requests for a permit, in milliseconds. */
const RETRY_MS = 1000
const MAX_MS = 3_600_000
/** Time for giving a permit back, in milliseconds, and between two attempts. */
const GIVE_BACK_MS = 5000
const GIVE_BACK_RETRY_MS = 500

/** Times of a drain, in milliseconds. The permit and the drain last for `over` and `for` together. */
export interface DrainTimes {
  /** How long to wait for the permit. */
  readonly wait: number
  /** How long the stop may take. */
  readonly for: number
  /** The time over which connections of clients are closed. */
  readonly over: number
}

/** A server that is to stop, with its HTTP port. */
export interface StoppingServer extends AdminFlags {
  readonly id: number
}

/** Adds the options of `DrainTimes` to a command. */
export const withDrainOptions = (command: Command): Command =>
  command
    .addOption(timeOption('--wait <time>', 'how long to wait for the permit', duration(0, MAX_MS), '1m'))
    .addOption(
      timeOption(
        '--for <time>',
        'how long the stop may take once the connections are closed; then permit and drain end',
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

/** Throws a `UsageError` for times that are longer together than a permit can be. */
export function checkDrainTimes(times: DrainTimes): void {
  if (times.over + times.for > MAX_MS)
    throw new UsageError(
      'Expected --over and --for to be an hour together at most, the longest time of a permit to stop, got more.',
    )
}

/**
 * Waits for the permit to stop a server, moves its clients to others, and runs `work`, for which the permit is renewed. Where that fails or
 * the program is to end, the permit is given back, or else a note says that the server may hold it. Both end with their time where the
 * program is killed.
 */
export async function withPermit(
  context: Context,
  server: StoppingServer,
  times: DrainTimes,
  work: () => Promise<void>,
): Promise<void> {
  const seconds = Math.ceil((times.over + times.for) / 1000)
  const admin = openAdmin(context, server)
  const orGiveBack = async <T>(
    step: Promise<T>,
    mayBeHeld: (error: unknown) => boolean = () => true,
  ): Promise<T> => {
    try {
      return await step
    } catch (error) {
      if (mayBeHeld(error)) await giveBack(context, server, seconds)
      throw error
    }
  }
  // The leader may have granted a request that was not answered.
  const ask = (): Promise<Permit> =>
    orGiveBack(
      admin.json('POST', '/api/v1/stop-permit', { body: { seconds }, accepts: [200, 409, 503] }),
      (error) => !isAnswer(error),
    )
  await awaitPermit(context, times.wait, ask)
  const stop = async (): Promise<void> => {
    await admin.json('POST', '/api/v1/drain', { body: { seconds: times.over / 1000, for: seconds } })
    await pause(context.io, times.over)
    await whileRenewed(context, server, times.for, work)
  }
  await orGiveBack(stop())
}

/** Runs `work`, and renews the permit and the drain meanwhile, for `forMs` each time. */
async function whileRenewed(
  context: Context,
  server: StoppingServer,
  forMs: number,
  work: () => Promise<void>,
): Promise<void> {
  const done = new AbortController()
  const io = { ...context.io, signal: AbortSignal.any([context.io.signal, done.signal]) }
  // It rejects where the signal ends it, and for no other reason.
  const renewed = renew({ ...context, io }, server, forMs).catch(() => {})
  try {
    await work()
  } finally {
    done.abort()
    await renewed
  }
}

/** Renews the permit and the drain of a server until it is restarted. Writes a note where the leader refuses. */
async function renew(context: Context, server: StoppingServer, forMs: number): Promise<void> {
  const { io } = context
  const admin = openAdmin(context, server)
  const seconds = Math.ceil(forMs / 1000)
  const begun = performance.now()
  for (let reason = ''; ;) {
    await pause(io, forMs / 2)
    try {
      // The next process needs no permit.
      if (isRestarted(await admin.json<Uptime>('GET', '/api/v1/self'), begun)) return
      const { id, detail = '' } = await admin.json<Permit>('POST', '/api/v1/stop-permit', {
        body: { seconds },
        accepts: [200, 409, 503],
      })
      if (id !== undefined) await admin.json('POST', '/api/v1/drain', { body: { seconds: 0, for: seconds } })
      else if (detail !== reason)
        note(io, safeLine(`server ${server.id}: its permit to stop is not renewed: ${(reason = detail)}`))
    } catch {
      // It has stopped, or starts: `work` waits for it.
      io.signal.throwIfAborted()
    }
  }
}

/** What tells a process of a server from the one before. */
export interface Uptime {
  readonly uptimeMs: number
}

/** Whether a server has started since a time of `performance.now`. */
export const isRestarted = ({ uptimeMs }: Uptime, since: number): boolean =>
  uptimeMs <= performance.now() - since

/** Lets a server accept sessions again, and gives its permit to stop back. */
export async function undrainServer(admin: AdminClient): Promise<void> {
  await admin.json('DELETE', '/api/v1/drain')
  await admin.json('DELETE', '/api/v1/stop-permit')
}

/** Gives the permit of a server back, also after Ctrl-C. Writes a note where it cannot. */
async function giveBack(context: Context, server: StoppingServer, seconds: number): Promise<void> {
  const signal = AbortSignal.timeout(GIVE_BACK_MS)
  const io = { ...context.io, signal }
  const admin = openAdmin({ ...context, io }, server)
  const name = safeLine(`server ${server.id}`)
  note(io, `${name}: gives its permit to stop back`)
  let reason = ''
  while (!signal.aborted)
    try {
      return await undrainServer(admin)
    } catch (error) {
      if (!signal.aborted) reason = error instanceof Error ? error.message : String(error)
      if (isAnswer(error)) break
      await pause(io, GIVE_BACK_RETRY_MS).catch(() => {})
    }
  note(
    io,
    `${name} has not given it back: unless it has stopped, it may hold the permit and refuse sessions for up to ${seconds} s, or until zabra drain --end --admin ${admin.url.origin}. ${reason || `There was no answer within ${GIVE_BACK_MS} ms.`}`,
  )
}

/** Whether a request failed with an answer of the server. */
const isAnswer = (error: unknown): boolean =>
  error instanceof Failure && error.exitCode !== ExitCode.connection

/** Asks until the leader gives a permit. Rejects with a `Failure` when it has not in time. */
async function awaitPermit({ io }: Context, waitMs: number, ask: () => Promise<Permit>): Promise<void> {
  const until = performance.now() + waitMs
  for (let reason = ''; ;) {
    const { id, detail = '' } = await ask()
    if (id !== undefined) return
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
