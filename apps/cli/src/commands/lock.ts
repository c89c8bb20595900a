import { hostname } from 'node:os'
import { duration, nodePath } from '../arguments.ts'
import { exitAs, graceMsOf, runChild } from '../child.ts'
import type { CommandModule } from '../context.ts'
import { ExitCode, Failure } from '../exit-codes.ts'
import { note } from '../io.ts'

/** `zabra lock`: runs a command while holding a lock. */
export const lock: CommandModule = (program, { io, session }) => {
  program
    .command('lock')
    .description('run a command while holding a lock that one client holds at a time')
    .argument('<path>', 'the lock; the node and its parents are created', nodePath)
    .argument('<command...>', 'the command, after --')
    .option(
      '-w, --wait <time>',
      'give up after this time, such as 30s; 0 does not wait (default: wait without end)',
      duration(0),
    )
    .addHelpText('after', HELP)
    .action(async (path: string, command: string[], { wait }: { wait?: number }) => {
      const { Mutex } = await import('@zabra/recipes')
      const code = await session(
        async (zk) => {
          const graceMs = graceMsOf(zk)
          const mutex = new Mutex(zk, path, {
            data: new TextEncoder().encode(`${hostname()} ${process.pid}`),
            errorPolicy: { lease: { marginMs: graceMs } },
          })
          const held =
            (await mutex.tryAcquire({ signal: io.signal })) ?? (wait === 0 ? undefined : await waitFor())
          if (held === undefined)
            throw new Failure(
              `${path} is held by another client, and the command did not run.`,
              ExitCode.notAcquired,
            )
          async function waitFor() {
            note(io, `waiting for ${path}`)
            const timeout = wait === undefined ? undefined : AbortSignal.timeout(wait)
            try {
              return await mutex.acquire({
                signal: timeout === undefined ? io.signal : AbortSignal.any([io.signal, timeout]),
              })
            } catch (error) {
              if (timeout?.aborted && !io.signal.aborted) return undefined
              throw error
            }
          }
          try {
            const code = await runChild(io, command, {
              environment: { ZABRA_LOCK_TOKEN: String(held.token), ZABRA_LOCK_PATH: held.path },
              stop: held.signal,
              graceMs,
            })
            if (held.signal.aborted)
              throw new Failure(
                `The lock ${path} was lost while the command ran, so the command was ended: ${(held.signal.reason as Error).message}`,
                ExitCode.lost,
              )
            return code
          } finally {
            await held.release()
          }
        },
        { handlesAbort: true },
      )
      exitAs(code)
    })
}

const HELP = `
The exit code is that of the command. The command has two more variables:
  ZABRA_LOCK_TOKEN  the fencing token: it grows with every grant; what the command
                    changes should refuse a lower one than it has seen
  ZABRA_LOCK_PATH   the node of this holder
Signals are forwarded to it. When the lock is lost, the command gets SIGTERM, and SIGKILL
before another client can hold the lock.`
