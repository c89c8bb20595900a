import { integer } from '../arguments.ts'
import type { CommandModule } from '../context.ts'
import { Failure, ExitCode } from '../exit-codes.ts'
import { note, print, printJson } from '../io.ts'
import { safeLine } from '../text/bytes.ts'

/** `zabra watch`: prints changes as they happen, until it is stopped. */
export const watch: CommandModule = (program, { io, options, session }) => {
  program
    .command('watch')
    .description('print changes of a node as they happen, until Ctrl-C')
    .argument('<path>', 'the node, which need not exist yet')
    .option('-R, --recursive', 'print changes of its descendants too')
    .option('-n, --count <events>', 'exit after this many changes', integer(1))
    .action(async (path: string, flags: { recursive?: boolean; count?: number }) => {
      const { json } = options()
      await session(async (zk) => {
        const { events } = await zk.watch(path, flags.recursive ? 'persistentRecursive' : 'persistent')
        note(io, `watching ${path} on ${zk.server}`)
        let left = flags.count ?? Infinity
        for await (const event of events) {
          const { order: _, ...fields } = event
          const time = new Date().toISOString()
          if (json) printJson(io, { time, ...fields })
          else if (event.type === 'resync')
            print(io, `${time} resync ${path}: changes may be missing (${event.reason})`)
          else print(io, `${time} ${event.type} ${safeLine(event.path)}`)
          if (--left <= 0) return
        }
        const reason = await zk.closed
        throw new Failure(
          `${(reason?.message ?? 'The session has ended').replace(/\.$/, '')}. Later changes are not shown.`,
          ExitCode.connection,
          { cause: reason },
        )
      })
    })
}
