import { ErrorCode } from '@zabra/protocol'
import picomatch from 'picomatch'
import { UnreadableNodes, type CommandModule } from '../context.ts'
import { hasCode, UsageError } from '../exit-codes.ts'
import { print, printJson } from '../io.ts'
import { mapConcurrent } from '@zabra/client'
import type { Visit } from '@zabra/client'
import { safeData, safeLine } from '../text/bytes.ts'

interface Flags {
  readonly glob?: string
  readonly regexp?: string
  readonly data?: string
  readonly ephemeral?: boolean
}

/** `zabra find`: paths by their form, their data or their owner. */
export const find: CommandModule = (program, { io, options, session }) => {
  program
    .command('find')
    .description('print the paths below a node that fit all that is asked')
    .argument('[path]', 'where to begin', '/')
    .option(
      '-g, --glob <pattern>',
      'the name fits, or the whole path if the pattern holds a /: "*-lock", "/app/**/config"',
    )
    .option('-r, --regexp <expression>', 'a regular expression is found in the path')
    .option('-d, --data <expression>', 'a regular expression is found in the data')
    .option('-e, --ephemeral', 'belongs to a session')
    .action(async (path: string, asked: Flags) => {
      const fits = nodeFilter(asked)
      const wanted = asked.data === undefined ? undefined : parseRegExp('--data', asked.data)
      const { json } = options()
      const unreadable = new UnreadableNodes(io)
      await session(async (zk) => {
        const look = async (node: Visit): Promise<string | undefined> => {
          if (!fits(node)) return undefined
          if (wanted === undefined) return node.path
          try {
            const { data } = await zk.getData(node.path)
            return data !== null && wanted.test(safeData(data)) ? node.path : undefined
          } catch (error) {
            if (hasCode(error, ErrorCode.NOAUTH)) unreadable.add(node.path)
            else if (!hasCode(error, ErrorCode.NONODE)) throw error
            return undefined
          }
        }
        const nodes = zk.visit(path, { signal: io.signal, onUnreadable: unreadable.add })
        for await (const found of mapConcurrent(nodes, look)) {
          if (found === undefined) continue
          if (json) printJson(io, found)
          else print(io, safeLine(found))
        }
      })
      unreadable.failIfAny()
    })
}

function nodeFilter({ glob, regexp, ephemeral }: Flags): (node: Visit) => boolean {
  const matches =
    glob === undefined ? undefined : picomatch(glob, { basename: !glob.includes('/'), dot: true })
  const expected = regexp === undefined ? undefined : parseRegExp('--regexp', regexp)
  return ({ path, stat }) =>
    (matches === undefined || matches(path)) &&
    (expected === undefined || expected.test(path)) &&
    (!ephemeral || (stat?.ephemeralOwner ?? 0n) !== 0n)
}

function parseRegExp(option: string, text: string): RegExp {
  try {
    return new RegExp(text, 'u')
  } catch (error) {
    throw new UsageError(
      `Expected a regular expression after ${option}, got "${text}" (${(error as Error).message}). Put a \\ before characters that stand for themselves.`,
    )
  }
}
