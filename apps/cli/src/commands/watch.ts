import { ErrorCode } from '@zabra/protocol'
import { integer } from '../arguments.ts'
import { runChild } from '../child.ts'
import type { CommandModule } from '../context.ts'
import { Failure, ExitCode, hasCode } from '../exit-codes.ts'
import { note, print, printJson } from '../io.ts'
import type { Client } from '@zabra/client'
import { serverOf } from '../session/address.ts'
import { dataOrNull } from '../session/node-data.ts'
import { untilClosed } from '../session/watch-events.ts'
import { dataFields, preview, safeLine } from '../text/bytes.ts'

interface Flags {
  readonly recursive?: boolean
  readonly count?: number
  readonly data?: boolean
  readonly exec?: string
}

/** `zabra watch`: prints changes as they happen, until it is stopped. */
export const watch: CommandModule = (program, { io, options, session }) => {
  program
    .command('watch')
    .description('print changes of a node as they happen, until Ctrl-C')
    .argument('<path>', 'the node, which need not exist yet')
    .option('-R, --recursive', 'print changes of its descendants too')
    .option('-n, --count <events>', 'exit after this many changes', integer(1))
    .option('-d, --data', 'print the data after each change too')
    .option('-x, --exec <command>', 'run this line of the system shell after each change, one at a time')
    .addHelpText('after', HELP)
    .action(async (path: string, flags: Flags) => {
      const { json } = options()
      await session(async (zk) => {
        const mode = flags.recursive ? 'persistentRecursive' : 'persistent'
        const watcher = await zk.watch(path, { mode })
        note(io, `watching ${path} on ${serverOf(zk, options().server)}`)
        let left = flags.count ?? Infinity
        for await (const event of untilClosed(watcher)) {
          const { order: _, ...fields } = event
          const time = new Date().toISOString()
          const changed = event.type === 'resync' ? path : event.path
          const data = flags.data || flags.exec !== undefined ? await dataOf(zk, changed) : undefined
          const shown = flags.data && data !== undefined
          if (json) printJson(io, { time, ...fields, ...(shown ? dataFields(data) : {}) })
          else if (event.type === 'resync')
            print(io, `${time} resync ${path}: changes may be missing (${event.reason})`)
          else
            print(
              io,
              `${time} ${event.type} ${safeLine(event.path)}${shown ? ` ${preview(data, Infinity)}` : ''}`,
            )
          if (flags.exec !== undefined) {
            const code = await runChild(io, [flags.exec], {
              shell: true,
              input: data ?? new Uint8Array(0),
              environment: { ZABRA_EVENT: event.type, ZABRA_PATH: changed },
            })
            if (code !== 0)
              note(io, `the command ended with ${code} after ${event.type} ${safeLine(changed)}`)
          }
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

const HELP = `
The command of --exec has the kind of the change in ZABRA_EVENT, the node in ZABRA_PATH and its data
on standard input. The data is read after the change: of changes in quick succession it may be that
of the last one, and it is empty for a deleted node.`

/** Reads the data of a node; undefined when it does not exist or this client may not read it. */
async function dataOf(zk: Client, path: string): Promise<Uint8Array | null | undefined> {
  try {
    return dataOrNull(await zk.getData(path))
  } catch (error) {
    if (hasCode(error, ErrorCode.NONODE) || hasCode(error, ErrorCode.NOAUTH)) return undefined
    throw error
  }
}
