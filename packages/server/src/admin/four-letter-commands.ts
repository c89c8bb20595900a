import type { ClientConnection } from '../connections/client-connection.ts'
import type { ClientService } from '../connections/client-service.ts'
import { formatSessionId } from '../connections/format-session-id.ts'
import { operationOf } from '../core/operations/index.ts'
import type { DataFolders } from '../persistence/index.ts'
import { FULL_VERSION } from '../version.ts'
import { dump } from './dump.ts'
import { decimal, decimalDigest, hexLong } from './format.ts'
import { watchesByPath, watchesBySession, watchSummary } from './watch-commands.ts'
import { monitorMetrics } from './mntr.ts'
import type { MemberConf } from '../connections/role-status.ts'

/** A word at the start of a connection. */
export interface FourLetterCommand {
  readonly name: string
  /** Bytes that follow it. */
  readonly argumentBytes: number
}

type Answer = (
  connection: ClientConnection,
  argument: Uint8Array,
) => string | Promise<string> | Generator<string>

/** What telnet sends when it is interrupted: the connection is closed and nothing is said. */
const TELNET_INTERRUPT = '\xff\xf4\xff\xfd'
const NO_LEADERSHIP = 'This server stands alone: there is no leadership to hand over.'
/** Pieces of a long answer, which are lines for the most part, that are made in one turn. */
const PIECES_IN_A_TURN = 200
/** Trace bits that the reference starts with. Ours are kept and shown, and trace nothing. */
const TRACE_MASK = 306n

/** The four-letter words, answered in the bytes of Apache ZooKeeper. */
export class FourLetterCommands {
  readonly #core: ClientService
  readonly #folders: DataFolders
  readonly #answers: ReadonlyMap<string, Answer>
  readonly #allowed: ReadonlySet<string>
  #traceMask = TRACE_MASK

  /** `startedAt` on the monotonic clock. */
  constructor(core: ClientService, folders: DataFolders, startedAt: number) {
    this.#core = core
    this.#folders = folders
    this.#answers = new Map<string, Answer>([
      ['conf', () => this.#conf()],
      ['cons', (asking) => this.#cons(asking)],
      ['crst', () => this.#crst()],
      ['dirs', () => this.#dirs()],
      ['dump', () => dump(core)],
      ['envi', () => this.#envi()],
      ['gtmk', () => String(this.#traceMask)],
      [
        'hash',
        () =>
          core.pipeline.digests
            .map(({ zxid, digest }) => `${zxid.toString(16)}: ${decimalDigest(digest)}\n`)
            .join(''),
      ],
      ['isro', () => (core.isReadOnly ? 'ro' : 'rw')],
      [
        'mntr',
        () =>
          monitorMetrics(core, startedAt)
            .map(([key, value]) => `zk_${key}\t${value}\n`)
            .join(''),
      ],
      ['rqld', () => `${core.role.member?.requestLeadership() ?? NO_LEADERSHIP}\n`],
      ['ruok', () => 'imok'],
      ['srst', () => this.#srst()],
      ['srvr', () => `${this.#version()}${this.#server()}`],
      ['stat', (asking) => this.#stat(asking)],
      ['stmk', (_, mask) => this.#stmk(mask)],
      ['wchc', () => watchesBySession(core)],
      ['wchp', () => watchesByPath(core)],
      ['wchs', () => watchSummary(core)],
      ['ydld', () => `${core.role.member?.yieldLeadership() ?? NO_LEADERSHIP}\n`],
      [TELNET_INTERRUPT, () => ''],
    ])
    const allowed = core.settings.fourLetterWords
    this.#allowed = new Set([...(allowed.includes('*') ? this.#answers.keys() : allowed), TELNET_INTERRUPT])
  }

  /** The word that a connection starts with, if it starts with one. */
  commandIn(bytes: Uint8Array): FourLetterCommand | undefined {
    const name = String.fromCharCode(...bytes.subarray(0, 4))
    return this.#answers.has(name) ? { name, argumentBytes: name === 'stmk' ? 8 : 0 } : undefined
  }

  /**
   * The text of a word's answer, in parts. A long one is made in several turns, of what is there in each. Rejects with a
   * `DiskError` when folders cannot be read.
   */
  async execute(name: string, argument: Uint8Array, asking: ClientConnection): Promise<readonly string[]> {
    if (!this.#allowed.has(name)) return [`${name} is not executed because it is not in the whitelist.\n`]
    const answer = this.#answers.get(name)!(asking, argument)
    if (typeof answer === 'string') return [answer]
    if (answer instanceof Promise) return [await answer]
    const parts: string[] = []
    let part: string[] = []
    for (const piece of answer) {
      if (part.push(piece) < PIECES_IN_A_TURN) continue
      parts.push(part.join(''))
      part = []
      await new Promise<void>((resolve) => this.#core.ports.clock.immediate(resolve))
    }
    return [...parts, part.join('')]
  }

  #version(): string {
    const version = `Zookeeper version: ${FULL_VERSION}\n`
    return this.#core.isReadOnly ? `${version}READ-ONLY mode; serving only read-only clients\n` : version
  }

  #server(): string {
    const { stats, connections, pipeline: writes, tree, role } = this.#core
    const { latency } = stats
    const lines = [
      `Latency min/avg/max: ${Math.floor(latency.min)}/${decimal(latency.mean)}/${Math.floor(latency.max)}`,
      `Received: ${stats.received}`,
      `Sent: ${stats.sent}`,
      `Connections: ${connections.size}`,
      `Outstanding: ${writes.outstanding}`,
      `Zxid: ${hexLong(tree.lastZxid)}`,
      `Mode: ${role.mode}`,
      // The reference counts the root twice, under its two names.
      `Node count: ${tree.nodeCount + 1}`,
    ]
    const leader = role.member?.leader
    if (leader !== undefined) {
      const { lastProposalSize, minProposalSize, maxProposalSize } = leader
      lines.push(`Proposal sizes last/min/max: ${lastProposalSize}/${minProposalSize}/${maxProposalSize}`)
    }
    return lines.map((line) => `${line}\n`).join('')
  }

  *#stat(asking: ClientConnection): Generator<string> {
    yield `${this.#version()}Clients:\n`
    for (const connection of this.#core.connections) yield `${brief(connection, asking)})\n`
    yield `\n${this.#server()}`
  }

  *#cons(asking: ClientConnection): Generator<string> {
    const { clock } = this.#core.ports
    for (const connection of this.#core.connections) yield `${full(connection, asking, clock.monotonic())})\n`
    yield '\n'
  }

  async #conf(): Promise<string> {
    const { settings, role } = this.#core
    const sizes = await this.#sizes()
    const lines = [
      `clientPort=${this.#core.portOf('clientPort')}`,
      `secureClientPort=${this.#core.portOf('secureClientPort')}`,
      `dataDir=${this.#folders.snapshots}`,
      `dataDirSize=${sizes.snapshots}`,
      `dataLogDir=${this.#folders.logs}`,
      `dataLogSize=${sizes.logs}`,
      `tickTime=${settings.tickTimeMs}`,
      `maxClientCnxns=${settings.maxClientCnxns}`,
      `minSessionTimeout=${settings.minSessionTimeoutMs}`,
      `maxSessionTimeout=${settings.maxSessionTimeoutMs}`,
      `clientPortListenBacklog=${settings.clientPortListenBacklog}`,
      // The reference shows 0 for a server that stands alone, whatever its ids are made of.
      `serverId=${role.member?.conf.serverId ?? 0}`,
    ]
    const text = lines.map((line) => `${line}\n`).join('')
    return role.member === undefined ? text : text + memberConf(role.member.conf)
  }

  async #dirs(): Promise<string> {
    const { snapshots, logs } = await this.#sizes()
    return `datadir_size: ${snapshots}\nlogdir_size: ${logs}\n`
  }

  /** Bytes of snapshots and of logs; both, when they share a folder. */
  async #sizes(): Promise<{ snapshots: number; logs: number }> {
    const snapshots = await this.#size(this.#folders.snapshots)
    return {
      snapshots,
      logs: this.#folders.logs === this.#folders.snapshots ? snapshots : await this.#size(this.#folders.logs),
    }
  }

  async #size(folder: string): Promise<number> {
    const { disk } = this.#core.ports
    let bytes = 0
    for (const name of await disk.list(folder)) {
      // A file may be purged between the listing and the look at it.
      const path = `${folder}/${name}`
      if (await disk.exists(path)) bytes += await disk.size(path)
    }
    return bytes
  }

  #envi(): string {
    const facts = [['zookeeper.version', FULL_VERSION] as const, ...this.#core.ports.system.environment()]
    return `Environment:\n${facts.map(([name, value]) => `${name}=${value}\n`).join('')}`
  }

  #crst(): string {
    for (const connection of this.#core.connections) {
      connection.receivedCount = 0
      connection.replyWriter.resetStats()
    }
    return 'Connection stats reset.\n'
  }

  #srst(): string {
    const { stats, watchNotifier: firing, tlsHandshakes: handshakes } = this.#core
    const { rejected: exceeded, failed } = handshakes()
    stats.reset()
    stats.tlsExceededAtReset = exceeded
    stats.tlsFailedAtReset = failed
    firing.resetStats()
    this.#core.ports.system.resetPauses?.()
    return 'Server stats reset.\n'
  }

  #stmk(mask: Uint8Array): string {
    this.#traceMask = new DataView(mask.buffer, mask.byteOffset, 8).getBigInt64(0)
    return String(this.#traceMask)
  }
}

/** What `conf` shows of a member behind the rest. A read-only server leaves out who the members are. */
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

/** The number in brackets is the reference's interest in reading: none in the connection that asks. */
function brief(connection: ClientConnection, asking: ClientConnection): string {
  const { host, port, queuedRequests: queued, receivedCount: received, replyWriter: outbox } = connection
  return ` /${host}:${port}[${connection === asking ? 0 : 1}](queued=${queued},recved=${received},sent=${outbox.sentCount}`
}

function full(connection: ClientConnection, asking: ClientConnection, now: number): string {
  const { session, replyWriter: outbox } = connection
  if (session === undefined) return brief(connection, asking)
  const operation = outbox.lastOperation === undefined ? 'NA' : operationOf(outbox.lastOperation).name
  const fields = [
    brief(connection, asking),
    `sid=${formatSessionId(connection.sessionId)}`,
    `lop=${operation}`,
    `est=${connection.establishedAt}`,
    `to=${session.timeout}`,
    `lcxid=${hexLong(outbox.lastXid)}`,
    `lzxid=${hexLong(outbox.lastZxid)}`,
    `lresp=${Math.floor(outbox.lastResponseAt || now)}`,
    `llat=${Math.floor(outbox.lastLatency)}`,
    `minlat=${Math.floor(outbox.latency.min)}`,
    `avglat=${Math.floor(outbox.latency.mean)}`,
    `maxlat=${Math.floor(outbox.latency.max)}`,
  ]
  return fields.join(',')
}
