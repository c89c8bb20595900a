import { hostname } from 'node:os'
import { nodePath } from '../arguments.ts'
import { exitAs, graceMsOf, runChild } from '../child.ts'
import type { CommandModule } from '../context.ts'
import { note } from '../io.ts'

/** `zabra elect`: runs a command while this client is the leader. */
export const elect: CommandModule = (program, { io, session }) => {
  program
    .command('elect')
    .description('take part in an election, and run a command while leading')
    .argument('<path>', 'the election; the node and its parents are created', nodePath)
    .argument('<command...>', 'the command, after --')
    .option('--id <name>', 'the name of this participant (default: host and process)')
    .addHelpText('after', HELP)
    .action(async (path: string, command: string[], { id }: { id?: string }) => {
      const { LeaderElection } = await import('@zabra/recipes')
      const code = await session(
        async (zk) => {
          const graceMs = graceMsOf(zk)
          const election = new LeaderElection(zk, path, {
            id: id ?? `${hostname()} ${process.pid}`,
            errorPolicy: { lease: { marginMs: graceMs } },
          })
          // While a command runs, only its end resigns: another participant must not lead before that.
          const waiting = new AbortController()
          let isLeading = false
          io.signal.addEventListener('abort', () => {
            if (!isLeading) waiting.abort()
          })
          if (io.signal.aborted) waiting.abort()
          note(io, `waiting for the leadership of ${path}`)
          for await (const leadership of election.leadership({ signal: waiting.signal })) {
            isLeading = true
            note(io, `leading ${path}`)
            try {
              const code = await runChild(io, command, {
                environment: {
                  ZABRA_LEADER_TOKEN: String(leadership.token),
                  ZABRA_LEADER_PATH: leadership.path,
                },
                stop: leadership.signal,
                graceMs,
              })
              if (!leadership.signal.aborted || io.signal.aborted) return code
            } finally {
              await leadership.release()
              isLeading = false
            }
            note(io, `the leadership of ${path} was lost, so the command was ended; waiting for the next one`)
          }
          throw io.signal.reason as Error
        },
        { handlesAbort: true },
      )
      exitAs(code)
    })
}

const HELP = `
Ends with the exit code of the command when the command ends, and resigns. When the leadership
is lost, the command gets SIGTERM, then SIGKILL before another participant can lead, and starts
again with the next leadership. Ends with 8 when the session has expired.
The command has ZABRA_LEADER_TOKEN, a fencing token that grows with every leadership, and
ZABRA_LEADER_PATH, the node of this participant. Signals are forwarded to it.`
