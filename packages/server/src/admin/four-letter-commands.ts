import type { CommandExecutor } from '../connections/client-service.ts'
import { formatSessionId } from '../connections/log-context.ts'
import type { Command } from '../connections/protocol-detector.ts'
import type { MemberConf } from '../connections/role-metrics.ts'
import { operationOf } from '../core/operations/index.ts'
import { FULL_VERSION } from '../version.ts'
import type { CommandState } from './admin-target.ts'
import { dump } from './dump.ts'
import { decimal, decimalDigest, hexLong } from './format.ts'
import { monitorMetrics } from './mntr.ts'
import { directorySizes, resetConnectionStats, resetStats } from './server-actions.ts'
import type { ConnectionReport, DirectoryReport, ServerReport } from './server-report.ts'
import { presentIn, SlicedAnswers } from './sliced-answers.ts'
import { watchesByPath, watchesBySession, watchSummary } from './watch-commands.ts'

/** Makes the answer to a command; a generator yields it in pieces. */
type Handler = (
  connection: ConnectionReport,
  argument: Uint8Array,
) => string | Promise<string> | Generator<string>

/** The bytes that telnet sends when it is interrupted. The connection is closed without an answer. */
const TELNET_INTERRUPT = '\xff\xf4\xff\xfd'
const NO_LEADERSHIP = 'This server is standalone: it has no leadership to hand over.'
/** The commands that change something, which the audit log records. */
const CHANGING: ReadonlySet<string> = new Set(['crst', 'rqld', 'srst', 'stmk', 'ydld'])

/** The commands that hand over leadership. */
const LEADERSHIP: ReadonlySet<string> = new Set(['rqld', 'ydld'])

/** Executes the four-letter commands. The answers have the bytes of Apache ZooKeeper. */
export class FourLetterCommands implements CommandExecutor {
  readonly #server: ServerReport
  readonly #directories: DirectoryReport
  readonly #handlers: ReadonlyMap<string, Handler>
  readonly #allowed: ReadonlySet<string>
  readonly #state: CommandState
  readonly #answers: SlicedAnswers

  /** `startedAt`: when the server started, on the monotonic clock. */
  constructor(server: ServerReport, directories: DirectoryReport, startedAt: number, state: CommandState) {
    this.#server = server
    this.#state = state
    this.#answers = new SlicedAnswers(server.platform.clock)
    this.#directories = directories
    this.#handlers = new Map<string, Handler>([
      ['conf', () => this.#conf()],
      ['cons', (connection) => this.#cons(connection)],
      ['crst', () => this.#crst()],
      ['dirs', () => this.#dirs()],
      ['dump', () => dump(server)],
      ['envi', () => this.#envi()],
      ['gtmk', () => String(this.#state.traceMask)],
      ['hash', () => this.#hash()],
      ['isro', () => (server.isReadOnly ? 'ro' : 'rw')],
      ['mntr', () => this.#mntr(startedAt)],
      ['rqld', () => `${server.role.member?.requestLeadership() ?? NO_LEADERSHIP}\n`],
      ['ruok', () => 'imok'],
      ['srst', () => this.#srst()],
      ['srvr', () => `${this.#version()}${this.#srvr()}`],
      ['stat', (connection) => this.#stat(connection)],
      ['stmk', (_, mask) => this.#stmk(mask)],
      ['wchc', () => watchesBySession(server)],
      ['wchp', () => watchesByPath(server)],
      ['wchs', () => watchSummary(server)],
      ['ydld', () => `${server.role.member?.yieldLeadership() ?? NO_LEADERSHIP}\n`],
      [TELNET_INTERRUPT, () => ''],
    ])
    const { fourLetterWords: allowed } = server.settings
    this.#allowed = new Set([...(allowed.includes('*') ? this.#handlers.keys() : allowed), TELNET_INTERRUPT])
  }

  commandIn(bytes: Uint8Array): Command | undefined {
    const name = String.fromCharCode(...bytes.subarray(0, 4))
    return this.#handlers.has(name) ? { name, argumentBytes: name === 'stmk' ? 8 : 0 } : undefined
  }

  execute(name: string, argument: Uint8Array, connection: ConnectionReport): string | AsyncGenerator<string> {
    if (CHANGING.has(name)) this.#recordCommand(name, connection)
    if (!this.#allowed.has(name)) return `${name} is not executed because it is not in the whitelist.\n`
    const handler = this.#handlers.get(name)!
    // The role may end with such a command, and the connection with the role.
    if (LEADERSHIP.has(name)) return handler(connection, argument) as string
    return this.#answer(() => handler(connection, argument))
  }

  /** Yields a long answer over several turns of the event loop, each part from the state of its turn. */
  async *#answer(handler: () => ReturnType<Handler>): AsyncGenerator<string> {
    const answer = await this.#answers.run(handler)
    if (typeof answer === 'string') yield answer
    else yield* this.#answers.chunksOf(answer)
  }

  #recordCommand(operation: string, { host: ip, origin }: ConnectionReport): void {
    const result = this.#allowed.has(operation) ? 'success' : 'failure'
    this.#server.audit?.record({ category: 'admin', operation, result, ip, origin, via: 'word' })
  }

  #version(): string {
    const version = `Zookeeper version: ${FULL_VERSION}\n`
    return this.#server.isReadOnly ? `${version}READ-ONLY mode; serving only read-only clients\n` : version
  }

  #srvr(): string {
    const { stats, connections, pipeline, tree, role } = this.#server
    const { latency } = stats
    const lines = [
      `Latency min/avg/max: ${Math.floor(latency.min)}/${decimal(latency.mean)}/${Math.floor(latency.max)}`,
      `Received: ${stats.received}`,
      `Sent: ${stats.sent}`,
      `Connections: ${connections.size}`,
      `Outstanding: ${pipeline.outstanding}`,
      `Zxid: ${hexLong(tree.lastZxid)}`,
      `Mode: ${role.mode}`,
      // Apache ZooKeeper counts the root twice, under its two names.
      `Node count: ${tree.nodeCount + 1}`,
    ]
    const leader = role.member?.leader
    if (leader !== undefined) {
      const { lastProposalSize, minProposalSize, maxProposalSize } = leader
      lines.push(`Proposal sizes last/min/max: ${lastProposalSize}/${minProposalSize}/${maxProposalSize}`)
    }
    return lines.map((line) => `${line}\n`).join('')
  }

  #mntr(startedAt: number): string {
    return monitorMetrics(this.#server, startedAt)
      .map(([key, value]) => `zk_${key}\t${value}\n`)
      .join('')
  }

  #hash(): string {
    const { digests } = this.#server.pipeline
    return digests.map(({ zxid, digest }) => `${zxid.toString(16)}: ${decimalDigest(digest)}\n`).join('')
  }

  *#stat(own: ConnectionReport): Generator<string> {
    yield `${this.#version()}Clients:\n`
    for (const connection of presentIn(this.#server.connections)) yield `${briefLine(connection, own)})\n`
    yield `\n${this.#srvr()}`
  }

  *#cons(own: ConnectionReport): Generator<string> {
    const { clock } = this.#server.platform
    for (const connection of presentIn(this.#server.connections))
      yield `${fullLine(connection, own, clock.monotonic())})\n`
    yield '\n'
  }

  async #conf(): Promise<string> {
    const { settings, role, portStatus } = this.#server
    const sizes = await directorySizes(this.#server.platform.disk, this.#directories)
    const lines = [
      `clientPort=${portStatus.portOf('clientPort')}`,
      `secureClientPort=${portStatus.portOf('secureClientPort')}`,
      `dataDir=${this.#directories.snapshots}`,
      `dataDirSize=${sizes.snapshots}`,
      `dataLogDir=${this.#directories.logs}`,
      `dataLogSize=${sizes.logs}`,
      `tickTime=${settings.tickTimeMs}`,
      `maxClientCnxns=${settings.maxClientCnxns}`,
      `minSessionTimeout=${settings.minSessionTimeoutMs}`,
      `maxSessionTimeout=${settings.maxSessionTimeoutMs}`,
      `clientPortListenBacklog=${settings.clientPortListenBacklog}`,
      // Apache ZooKeeper shows 0 for a standalone server, whatever server id its session ids have.
      `serverId=${role.member?.conf.serverId ?? 0}`,
    ]
    const text = lines.map((line) => `${line}\n`).join('')
    return role.member === undefined ? text : text + memberConf(role.member.conf)
  }

  async #dirs(): Promise<string> {
    const { snapshots, logs } = await directorySizes(this.#server.platform.disk, this.#directories)
    return `datadir_size: ${snapshots}\nlogdir_size: ${logs}\n`
  }

  #envi(): string {
    const { system } = this.#server.platform
    const entries = [['zookeeper.version', FULL_VERSION] as const, ...system.environment()]
    return `Environment:\n${entries.map(([name, value]) => `${name}=${value}\n`).join('')}`
  }

  async #crst(): Promise<string> {
    await resetConnectionStats(this.#server)
    return 'Connection stats reset.\n'
  }

  #srst(): string {
    resetStats(this.#server)
    return 'Server stats reset.\n'
  }

  #stmk(mask: Uint8Array): string {
    this.#state.traceMask = new DataView(mask.buffer, mask.byteOffset, 8).getBigInt64(0)
    return String(this.#state.traceMask)
  }
}

/** Returns the lines of `conf` that only a member of an ensemble has. A read-only server shows no membership. */
function memberConf(conf: MemberConf): string {
  const lines = [
    `initLimit=${conf.initLimit}`,
    `syncLimit=${conf.syncLimit}`,
    `electionAlg=${conf.electionAlg}`,
    `electionPort=${conf.electionPort}`,
    `quorumPort=${conf.quorumPort}`,
    `peerType=${conf.isObserver ? 1 : 0}`,
  ]
  const text = lines.map((line) => `${line}\n`).join('')
  return conf.membership === undefined ? text : `${text}membership: \n${conf.membership}`
}

/** The number in brackets is the interest set of Apache ZooKeeper's selector: 0 for the connection of the command, 1 for others. */
function briefLine(connection: ConnectionReport, own: ConnectionReport): string {
  const { host, port, requests, replyWriter } = connection
  const { received, sent } = replyWriter.stats
  return ` /${host}:${port}[${connection === own ? 0 : 1}](queued=${requests.length},recved=${received},sent=${sent}`
}

function fullLine(connection: ConnectionReport, own: ConnectionReport, now: number): string {
  const { session, sessionId, establishedAt } = connection
  const { stats } = connection.replyWriter
  if (session === undefined) return briefLine(connection, own)
  const operation = stats.lastOperation === undefined ? 'NA' : operationOf(stats.lastOperation).name
  const fields = [
    briefLine(connection, own),
    `sid=${formatSessionId(sessionId)}`,
    `lop=${operation}`,
    `est=${establishedAt}`,
    `to=${session.timeout}`,
    `lcxid=${hexLong(stats.lastXid)}`,
    `lzxid=${hexLong(stats.lastZxid)}`,
    `lresp=${Math.floor(stats.lastResponseAt || now)}`,
    `llat=${Math.floor(stats.lastLatency)}`,
    `minlat=${Math.floor(stats.minLatency)}`,
    `avglat=${Math.floor(stats.meanLatency)}`,
    `maxlat=${Math.floor(stats.maxLatency)}`,
  ]
  return fields.join(',')
}
