import { epochOf, formatZxid } from '@zabra/protocol'
import type { Address, Cancel, Platform } from '@zabra/runtime'
import { FourLetterCommands } from './admin/index.ts'
import { SessionTracker } from './core/sessions/index.ts'
import type { ServerSettings } from './settings/index.ts'
import type { ClientConnection } from './connections/client-connection.ts'
import { ClientService } from './connections/client-service.ts'
import { startMember } from './ensemble/member.ts'
import { Listeners, type ServedPort } from './connections/listeners.ts'
import { ContainerManager } from './connections/container-manager.ts'
import { SnapshotScheduler } from './database/index.ts'
import { openDatabase, type LogWriter, type Database } from './database/index.ts'
import { LeaderPipeline, type PipelineLog } from './pipeline/index.ts'

/** A server that runs. */
export interface Server {
  /** Where clients connect: on `clientPort`, or on the first port that is served without it. */
  readonly addresses: { readonly client: Address }
  /** Every port on which it listens. */
  readonly listeners: readonly ServedPort[]
  /** Resolves with the reason when the server has stopped by itself, and with undefined after `close`. Never rejects. */
  readonly failed: Promise<unknown>
  /** What the server is to others at this moment. */
  readonly role: 'standalone' | 'looking' | 'leading' | 'following' | 'observing' | 'read-only'
  /** The epoch of its history: that of the last leader that it came into step with; of its last transaction when it stands alone. */
  readonly epoch: number
  /** Who leads, as far as this server knows; undefined while nobody does, and when it stands alone. */
  readonly leader: number | undefined
  /** Whether clients are served now. */
  readonly serving: boolean
  /** A few figures; `mntr` has them all. */
  stats(): ServerMetrics
  /** Takes a snapshot now, while requests go on. Resolves when it is on disk; a failure is logged. */
  snapshot(): Promise<void>
  /** Reads the files with certificates again, for new connections. What cannot be used is logged, and the old ones stay. */
  reload(): Promise<void>
  /**
   * Hands leadership over, as the word `ydld` does: what is accepted is committed, and a member that has all of it takes over.
   * Returns at once; false where this server does not lead, or the others are no quorum without it.
   */
  yieldLeadership(): boolean
  /** Stops: no new clients, what is accepted becomes durable and is answered, connections close. Sessions stay on disk. */
  close(): Promise<void>
}

export interface ServerMetrics {
  readonly lastZxid: number
  readonly nodes: number
  readonly sessions: number
  readonly connections: number
  readonly watches: number
  readonly outstanding: number
}

/**
 * Recovers the data directory and serves it on its ports. Rejects with a `DamageError` or `RecoveryError` when the
 * files cannot be trusted, a `FolderLockedError` when another server uses them, a `NetworkError` when a port cannot be
 * had, a `CertificateError` when a key or certificate cannot be used, and a `DiskError` when the disk refuses; each message says what to do.
 */
export async function createServer(settings: ServerSettings, ports: Platform): Promise<Server> {
  if (settings.ensemble !== undefined) return startMember(settings, ports)
  const vault = await openDatabase(settings, ports, { member: false })
  try {
    return await new RunningServer(settings, ports, vault).start()
  } catch (error) {
    await vault.close()
    throw error
  }
}

class RunningServer implements Server {
  readonly #settings: ServerSettings
  readonly #ports: Platform
  readonly #core: ClientService
  #writes!: LeaderPipeline<ClientConnection>
  readonly #vault: Database
  readonly #log: LogWriter
  readonly #snapshots: SnapshotScheduler
  readonly #reaper: ContainerManager
  readonly failed: Promise<unknown>
  #settle: (reason: unknown) => void = () => {}
  readonly #listeners: Listeners
  #cancelTick: Cancel = () => {}
  #closing: Promise<void> | undefined

  constructor(settings: ServerSettings, ports: Platform, vault: Database) {
    this.#settings = settings
    this.#ports = ports
    this.#vault = vault
    this.failed = new Promise((resolve) => (this.#settle = resolve))
    const now = ports.clock.monotonic()
    const sessions = new SessionTracker(settings.tickTimeMs, now)
    for (const [id, timeout] of vault.sessions) sessions.add(id, timeout, now)
    this.#log = this.#openLog()
    this.#core = new ClientService({
      settings,
      ports,
      tree: vault.tree,
      sessions,
      createPipeline: (kit) =>
        (this.#writes = new LeaderPipeline({
          ...kit,
          log: journalOf(this.#log),
          lastZxid: vault.lastZxid,
          serverId: settings.serverId,
        })),
      onFailure: (error) => this.#fail(error),
    })
    this.#listeners = new Listeners(settings, ports)
    this.#core.commands = new FourLetterCommands(this.#core, vault.folders, ports.clock.monotonic())
    this.#snapshots = new SnapshotScheduler({
      settings,
      clock: ports.clock,
      logger: ports.logger,
      database: vault,
      stats: this.#core.stats,
      sessions: () => [...this.#core.sessions].map(({ id, timeout }) => [id, timeout] as const),
    })
    this.#reaper = new ContainerManager(this.#core)
  }

  readonly role = 'standalone'
  readonly leader = undefined
  readonly serving = true

  get epoch(): number {
    return epochOf(this.#core.tree.lastZxid)
  }

  get addresses(): { client: Address } {
    return { client: this.listeners[0]!.address }
  }

  get listeners(): readonly ServedPort[] {
    return this.#listeners.served
  }

  stats(): ServerMetrics {
    const { tree, sessions, connections, watches, pipeline: writes } = this.#core
    return {
      lastZxid: tree.lastZxid,
      nodes: tree.nodeCount,
      sessions: sessions.size,
      connections: connections.size,
      watches: watches.size,
      outstanding: writes.outstanding,
    }
  }

  snapshot(): Promise<void> {
    return this.#snapshots.take()
  }

  reload(): Promise<void> {
    return this.#listeners.reload()
  }

  yieldLeadership(): boolean {
    return false
  }

  async start(): Promise<this> {
    const { logger } = this.#ports
    if (!this.#settings.forceSync) {
      logger.warn(
        {},
        'forceSync=no: acknowledged writes are lost when the machine loses power. Use it for tests only',
      )
    }
    // A first snapshot makes the directory complete, for Apache ZooKeeper too, which refuses logs without any.
    if (this.#vault.wasEmpty) await this.#snapshots.take()
    this.#writes.closeOrphanedSessions()
    await this.#listeners.open((wire) => this.#core.runTurn(() => this.#core.accept(wire)))
    this.#core.portOf = (key) => this.#listeners.portOf(key)
    this.#core.tlsHandshakes = () => this.#listeners.handshakes
    this.#tick()
    this.#reaper.start()
    this.#snapshots.start()
    const { tree, sessions } = this.#core
    // Whoever has started it tells people where it serves; once is enough.
    logger.debug(
      {
        ...this.addresses.client,
        ports: this.listeners.map(({ key, address }) => `${key} ${address.port}`),
        lastZxid: formatZxid(tree.lastZxid),
        nodes: tree.nodeCount,
        sessions: sessions.size,
      },
      'Serving clients',
    )
    return this
  }

  close(): Promise<void> {
    this.#closing ??= this.#close()
    return this.#closing
  }

  #openLog(): LogWriter {
    return this.#vault.openWriter({
      durable: (zxid) =>
        this.#core.runTurn(() => {
          this.#core.stats.fsyncTime.add(this.#log.stats.lastFlushMs)
          const { outstanding } = this.#writes
          this.#writes.commit(zxid)
          this.#core.stats.batchSize.add(outstanding - this.#writes.outstanding)
          this.#core.releaseThrottled()
        }),
      snapshotDue: () => void this.#snapshots.take(),
      diskFull: (durable) =>
        this.#core.runTurn(() => {
          this.#writes.discardAfter(durable)
          this.#core.releaseThrottled()
        }),
      spaceAvailable: () => this.#core.runTurn(() => this.#core.expireSessions()),
      fatal: (error) => this.#fail(error),
    })
  }

  #tick(): void {
    const { clock } = this.#ports
    const wait = Math.max(1, Math.min(this.#settings.tickTimeMs, this.#core.nextExpiry - clock.monotonic()))
    this.#cancelTick = clock.after(wait, 'session expiry', () => {
      this.#core.runTurn(() => this.#core.expireSessions())
      this.#tick()
    })
  }

  #fail(error: unknown): void {
    this.#core.stop()
    const reason = error instanceof Error ? error.message : String(error)
    this.#ports.logger.error({ reason }, 'The server stops: it can no longer vouch for its state')
    this.#settle(error)
    // Connections are cut so that clients go elsewhere. Nothing more is written: the log may be what is broken.
    void this.#listeners.close()
    for (const connection of this.#core.connections) connection.destroy('Closed: the server has failed')
    this.#quiet()
  }

  async #close(): Promise<void> {
    const { logger } = this.#ports
    this.#core.isAccepting = false
    this.#quiet()
    const closed = this.#listeners.close()
    await this.#snapshots.stop()
    // What is accepted becomes durable and is answered before its connection goes.
    do {
      this.#core.runTurn(() => this.#writes.drain())
      if (this.#log.state === 'open') await this.#log.flush().catch((error: unknown) => this.#fail(error))
    } while (this.#writes.isBusy && this.#log.state === 'open')
    await this.#core.closeConnections()
    this.#core.stop()
    await closed
    await this.#vault.close()
    this.#settle(undefined)
    logger.info({ lastZxid: formatZxid(this.#core.tree.lastZxid) }, 'Stopped')
  }

  #quiet(): void {
    this.#cancelTick()
    this.#reaper.stop()
  }
}

/** The log of a server that stands alone; a large transaction comes encoded. */
const journalOf = (log: LogWriter): PipelineLog => ({
  get state() {
    return log.state
  },
  append: (logged, payload, adler) =>
    payload === undefined ? log.append(logged) : log.appendPayload(logged.header.zxid, payload, adler),
})
