import { fourLetterWord, type ServerAddress } from '@zabra/client'
import type { CommandModule, Context } from '../context.ts'
import { ExitCode, Failure, toExit, UsageError } from '../exit-codes.ts'
import { print, printJson } from '../io.ts'
import { formatServer, resolveServers } from './address.ts'
import { isNotServing, isNotWhitelisted } from './four-letter-word.ts'
import { hex } from '../text/hex.ts'

/** The digests of the tree of a server by the transactions after which they were taken. */
interface Digests {
  readonly server: string
  readonly byZxid: ReadonlyMap<number, string>
}

/** `zabra cluster compare`: compares the trees of servers after the same transaction. */
export const compareDigests: CommandModule = (command, context) => {
  command
    .command('compare')
    .description(
      'compare the trees of servers after the same transaction, by their digests, while clients write',
    )
    .argument('<host:port...>', 'the client ports of two or more servers, also of Apache ZooKeeper')
    .addHelpText('after', HELP)
    .action((hosts: string[]) => run(context, hosts))
}

const HELP = `
Servers record a digest of their tree each 128 transactions; the four-letter word hash returns them, and
4lw.commands.whitelist has to allow it. Exits with 11 when digests differ. A digest covers paths, data and
stats, not access lists: zabra diff compares those too, and names the nodes.`

async function run({ io, options }: Context, hosts: readonly string[]): Promise<void> {
  const { clientTransport, timeoutMs, json } = options()
  const named = hosts.map((text) => clientTransport.withSchemes(text))
  await clientTransport.loadCertificates(named.join(','))
  const lists = await Promise.all(named.map((text) => resolveServers(text, timeoutMs, io.signal)))
  const servers = lists.flatMap((list) => list.servers)
  if (servers.length < 2) throw new UsageError('Expected two or more servers, got one. Name the others too.')
  const ask = (at: ServerAddress): Promise<string> =>
    fourLetterWord(at, 'hash', { transport: clientTransport.transport, timeoutMs, signal: io.signal }).catch(
      (cause: unknown) => {
        io.signal.throwIfAborted()
        const { line } = toExit(cause)
        throw new Failure(`${line}. Check that it runs, or compare the others.`, ExitCode.connection, {
          cause,
        })
      },
    )
  const answers = await Promise.all(servers.map(async (at) => digestsIn(formatServer(at), await ask(at))))
  const [first, ...others] = answers as [Digests, ...Digests[]]
  const common = [...first.byZxid.keys()].filter((zxid) => others.every(({ byZxid }) => byZxid.has(zxid)))
  const newest = common.reduce((a, b) => Math.max(a, b), -1)
  if (newest < 0)
    throw new Failure(
      'The servers have no digest of the same transaction: each notes one in 128 transactions since its start. Try again after some hundred writes, or use zabra diff.',
      ExitCode.refused,
    )
  const isEqualAt = (zxid: number): boolean =>
    others.every(({ byZxid }) => byZxid.get(zxid) === first.byZxid.get(zxid))
  const isEqual = isEqualAt(newest)
  const differsAt = isEqual ? undefined : Math.min(...common.filter((zxid) => !isEqualAt(zxid)))
  const digests = answers.map(({ server, byZxid }) => ({ server, digest: byZxid.get(newest)! }))
  if (json)
    printJson(io, {
      zxid: hex(newest),
      equal: isEqual,
      differsFrom: differsAt === undefined ? null : hex(differsAt),
      digests,
    })
  else if (isEqual) print(io, `the trees are equal after ${hex(newest)}: ${digests[0]!.digest}`)
  else
    print(
      io,
      `the trees differ after ${hex(newest)}, and did after ${hex(differsAt!)}:`,
      ...digests.map(({ server, digest }) => `  ${server} ${digest}`),
    )
  if (!isEqual) throw new Failure('', ExitCode.differ)
}

function digestsIn(server: string, text: string): Digests {
  if (isNotWhitelisted(text))
    throw new Failure(
      `${server} does not allow the word hash. Add it to 4lw.commands.whitelist there, or use zabra diff.`,
      ExitCode.refused,
    )
  if (isNotServing(text)) throw new Failure(`${server} is not serving.`, ExitCode.unhealthy)
  const byZxid = new Map<number, string>()
  for (const [, zxid, digest] of text.matchAll(/^([\da-f]{1,14}): (-?\d{1,20})$/gm))
    byZxid.set(Number.parseInt(zxid!, 16), digest!)
  // Another service may have answered, such as an HTTP server.
  if (byZxid.size === 0 && text.trim() !== '')
    throw new Failure(
      `Expected digests of a ZooKeeper server from ${server}, got another reply. Name its client port.`,
      ExitCode.refused,
    )
  return { server, byZxid }
}
