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

/** `zabra find`: prints paths that match by name, data or owner. */
export const find: CommandModule = (program, { io, options, session }) => {
  program
    .command('find')
    .description('print the paths from a node down that match all options')
    .argument('[path]', 'root of the search', '/')
    .option(
      '-g, --glob <pattern>',
      'match the name, or the path if the pattern has a /: "*-lock", "/app/**/config"',
    )
    .option('-r, --regexp <expression>', 'match the path with a regular expression')
    .option('-d, --data <expression>', 'match the data with a regular expression')
    .option('-e, --ephemeral', 'match only ephemeral nodes')
    .action(async (path: string, flags: Flags) => {
      const matchesNode = nodeFilter(flags)
      const dataPattern = flags.data === undefined ? undefined : parseRegExp('--data', flags.data)
      const { json } = options()
      const unreadable = new UnreadableNodes(io)
      await session(async (zk) => {
        const match = async (node: Visit): Promise<string | undefined> => {
          if (!matchesNode(node)) return undefined
          if (dataPattern === undefined) return node.path
          try {
            const { data, isNull } = await zk.getData(node.path)
            return !isNull && dataPattern.test(safeData(data)) ? node.path : undefined
          } catch (error) {
            if (hasCode(error, ErrorCode.NOAUTH)) unreadable.add(node.path)
            else if (!hasCode(error, ErrorCode.NONODE)) throw error
            return undefined
          }
        }
        const nodes = zk.walk(path, { stats: true, signal: io.signal, onUnreadable: unreadable.add })
        for await (const found of mapConcurrent(nodes, match)) {
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
  const pathPattern = regexp === undefined ? undefined : parseRegExp('--regexp', regexp)
  return ({ path, stat }) =>
    (matches === undefined || matches(path)) &&
    (pathPattern === undefined || pathPattern.test(path)) &&
    (!ephemeral || (stat?.ephemeralOwner ?? 0n) !== 0n)
}

function parseRegExp(option: string, text: string): RegExp {
  try {
    return new RegExp(text, 'u')
  } catch (error) {
    throw new UsageError(
      `Expected a regular expression after ${option}, got "${text}" (${(error as Error).message}). Put a \\ before characters to match literally.`,
    )
  }
}
