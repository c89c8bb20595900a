import type { CommandModule } from '../context.ts'
import { ExitCode, Failure, toExit, UsageError } from '../exit-codes.ts'
import { note, printJson, type Io } from '../io.ts'
import { fourLetterWord, type ServerAddress } from '@zabra/client'
import { resolveServers, formatServer } from '../session/address.ts'
import type { ClientTransport } from '../session/transport.ts'
import { isNotServing, isNotWhitelisted } from '../session/four-letter-word.ts'
import type { Style } from '../text/style.ts'
import { printTable } from '../text/table.ts'

/** State of a member; fields that it does not report are undefined. */
interface Member {
  readonly server: string
  readonly isDown: boolean
  /** Whether it serves reads but refuses writes. */
  readonly refusesWrites: boolean
  readonly health: string
  readonly mode?: string | undefined
  readonly zxid?: string | undefined
  readonly connections?: string | undefined
  readonly outstanding?: string | undefined
  readonly latency?: string | undefined
  readonly nodes?: string | undefined
  readonly version?: string | undefined
  /** Four-letter words that are not on the whitelist of the member. */
  readonly refused: readonly string[]
}

/** Maximum wait for a reply of a member, in milliseconds. */
const MAX_TIMEOUT_MS = 5000

/** `zabra status`: prints the state of all members of an ensemble in a table. */
export const status: CommandModule = (program, { io, options }) => {
  program
    .command('status')
    .description('show mode, last transaction, connections, latency and health of members')
    .argument('[host:port...]', 'the members (default: those of --server)')
    .action(async (hosts: string[]) => {
      const { server, timeoutMs, json, clientTransport } = options()
      const named = (hosts.length > 0 ? hosts : [server]).map((text) => clientTransport.withSchemes(text))
      await clientTransport.loadCertificates(named.join(','))
      // Accept members separated by blanks, and pasted connect strings.
      const lists = await Promise.all(named.map((text) => resolveServers(text, timeoutMs, io.signal)))
      const servers = lists.flatMap((list) => list.servers)
      const web = servers.find(({ scheme }) => scheme.startsWith('ws'))
      if (web !== undefined)
        throw new UsageError(
          `Expected members over TCP or TLS, got ${formatServer(web)}: four-letter words do not work over WebSockets. Name another port.`,
        )
      const replyTimeoutMs = Math.min(timeoutMs, MAX_TIMEOUT_MS)
      const members = await Promise.all(
        servers.map((at) => queryMember(io, clientTransport, at, replyTimeoutMs)),
      )
      io.signal.throwIfAborted()
      if (json) for (const member of members) printJson(io, jsonOf(member))
      else printTable(io, head, members.map(row), styleOfCell)
      for (const { server, refused } of members) {
        if (refused.length === 0) continue
        const pronoun = refused.length === 1 ? 'it' : 'them'
        note(
          io,
          `${server}: ${refused.join(' and ')} not on the whitelist. Add ${pronoun} to 4lw.commands.whitelist there to see more`,
        )
      }
      failIfUnhealthy(members)
    })
}

function failIfUnhealthy(members: readonly Member[]): void {
  const down = members.filter(({ isDown }) => isDown)
  if (down.length > 0)
    throw new Failure(
      `${down.length} of ${members.length} ${members.length === 1 ? 'member is' : 'members are'} not serving: ${down.map(({ server }) => server).join(', ')}.`,
      ExitCode.unhealthy,
    )
  const full = members.filter(({ refusesWrites }) => refusesWrites)
  if (full.length > 0)
    throw new Failure(
      `${full.length} of ${members.length} ${members.length === 1 ? 'member refuses' : 'members refuse'} writes: ${full.map(({ server }) => server).join(', ')}. Free space on the disk of its transaction log.`,
      ExitCode.unhealthy,
    )
  const leaders = members.filter(({ mode }) => mode === 'leader')
  const followers = members.filter(({ mode }) => mode === 'follower')
  if (leaders.length > 1)
    throw new Failure(
      `${leaders.length} members claim to be the leader: ${leaders.map(({ server }) => server).join(', ')}. Either they belong to different ensembles, or an election is running: try again.`,
      ExitCode.unhealthy,
    )
  if (members.length > 1 && followers.length === members.length)
    throw new Failure('None of these members is the leader. Name all members to see it.', ExitCode.unhealthy)
}

async function queryMember(
  io: Io,
  clientTransport: ClientTransport,
  at: ServerAddress,
  timeoutMs: number,
): Promise<Member> {
  const server = formatServer(at)
  const options = { transport: clientTransport.transport, timeoutMs, signal: io.signal }
  try {
    const [srvr, mntr] = await Promise.all([
      fourLetterWord(at, 'srvr', options),
      fourLetterWord(at, 'mntr', options),
    ])
    if (srvr === '' && mntr === '') return down(server, noReply(at))
    const member = parseMember(server, srvr, mntr)
    if (!member.refusesWrites) return member
    const conf = await fourLetterWord(at, 'conf', options)
    const disk = /^dataLogDir=(.+)$/m.exec(conf)?.[1]
    return disk === undefined ? member : { ...member, health: `refuses writes: the disk of ${disk} is full` }
  } catch (error) {
    return down(server, toExit(error).line)
  }
}

const down = (server: string, reason: string): Member => ({
  server,
  isDown: true,
  refusesWrites: false,
  health: `down: ${reason}`,
  refused: [],
})

const noReply = ({ scheme }: ServerAddress): string =>
  scheme === 'tls'
    ? 'it closed the connection without a reply; it may not accept the certificate of this client: name another with --cert'
    : 'it closed the connection without a reply; it may not be a ZooKeeper server'

function parseMember(server: string, srvr: string, mntr: string): Member {
  const refused = [...(isNotWhitelisted(srvr) ? ['srvr'] : []), ...(isNotWhitelisted(mntr) ? ['mntr'] : [])]
  if (isNotServing(srvr) || isNotServing(mntr))
    return {
      server,
      isDown: true,
      refusesWrites: false,
      health: 'not serving: no quorum, or it is starting',
      refused,
    }
  const srvrFields = isNotWhitelisted(srvr) ? new Map<string, string>() : fields(srvr, /^([^:]+): (.*)$/gm)
  const mntrFields = isNotWhitelisted(mntr) ? new Map<string, string>() : fields(mntr, /^zk_(\w+)\t(.*)$/gm)
  const mode = srvrFields.get('Mode') ?? mntrFields.get('server_state')
  // Other services answer, too, as with a head of HTTP.
  if (mode === undefined && refused.length < 2)
    return {
      server,
      isDown: true,
      refusesWrites: false,
      health: 'unknown reply: not a ZooKeeper server',
      refused,
    }
  const [, average, most] = srvrFields.get('Latency min/avg/max')?.split('/') ?? []
  const latency = [average ?? mntrFields.get('avg_latency'), most ?? mntrFields.get('max_latency')]
  return {
    server,
    isDown: false,
    refusesWrites: mntrFields.get('log_writable') === '0',
    health: describeHealth(mode, mntrFields, refused),
    mode,
    zxid: srvrFields.get('Zxid') ?? hexadecimal(mntrFields.get('last_zxid')),
    connections: srvrFields.get('Connections') ?? mntrFields.get('num_alive_connections'),
    outstanding: srvrFields.get('Outstanding') ?? mntrFields.get('outstanding_requests'),
    latency: latency[0] === undefined ? undefined : `${latency[0]}/${latency[1]}`,
    nodes: srvrFields.get('Node count') ?? mntrFields.get('znode_count'),
    version: (srvrFields.get('Zookeeper version') ?? mntrFields.get('version'))?.replace(/,.*/, ''),
    refused,
  }
}

function describeHealth(
  mode: string | undefined,
  mntrFields: ReadonlyMap<string, string>,
  refused: readonly string[],
): string {
  if (mode === undefined) return refused.length > 0 ? 'unknown: no word is whitelisted' : 'unknown'
  if (mntrFields.get('log_writable') === '0') return 'refuses writes: the disk of its transaction log is full'
  if (mode === 'read-only') return 'read-only: cut off from the quorum'
  const size = Number(mntrFields.get('quorum_size'))
  const synced = Number(mntrFields.get('synced_followers'))
  if (mode === 'leader' && size > 0 && synced + 1 < size)
    return `ok, but ${size - synced - 1} of ${size} voters not synced`
  return 'ok'
}

/** Returns a zxid as `srvr` shows it. Older servers show it in hexadecimal in `mntr` too. */
const hexadecimal = (zxid: string | undefined): string | undefined =>
  zxid === undefined || !/^\d+$/.test(zxid) ? zxid : `0x${BigInt(zxid).toString(16)}`

const fields = (text: string, line: RegExp): Map<string, string> =>
  new Map([...text.matchAll(line)].map((match) => [match[1]!, match[2]!.trim()]))

/** Returns a member for JSON output: figures as numbers, the zxid in hexadecimal. */
function jsonOf({ latency, connections, outstanding, nodes, ...member }: Member): object {
  const [averageLatencyMs, maxLatencyMs] = latency?.split('/').map(numberOf) ?? []
  return {
    ...member,
    connections: numberOf(connections),
    outstanding: numberOf(outstanding),
    averageLatencyMs,
    maxLatencyMs,
    nodes: numberOf(nodes),
  }
}

const numberOf = (text: string | undefined): number | undefined =>
  text === undefined || !Number.isFinite(Number(text)) ? undefined : Number(text)

const head = ['server', 'mode', 'zxid', 'connections', 'queued', 'avg/max ms', 'nodes', 'version', 'health']

/** Returns the style of a cell: the health is good, bad, or something between. */
function styleOfCell(cells: readonly string[], column: number): Style | undefined {
  if (head[column] !== 'health') return undefined
  const health = cells[column]!
  if (health === 'ok') return 'good'
  return health.startsWith('ok') || health.startsWith('unknown') || health.startsWith('read-only')
    ? 'warning'
    : 'bad'
}

const row = (member: Member): string[] =>
  [
    member.server,
    member.mode,
    member.zxid,
    member.connections,
    member.outstanding,
    member.latency,
    member.nodes,
    member.version,
    member.health,
  ].map((cell) => cell ?? '-')
