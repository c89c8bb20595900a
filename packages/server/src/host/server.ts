import { formatZxid } from '@zabra/protocol'
import type { Address, Cancel, Ports } from '@zabra/runtime'
import { FourLetterWords } from '../admin/index.ts'
import { SessionTracker } from '../core/sessions/index.ts'
import { Tree } from '../core/tree/index.ts'
import { lockFolder, recover, TxnLog, VERSION_FOLDER, type Recovery } from '../log/index.ts'
import type { ServerSettings } from '../settings/index.ts'
import { ServerCore } from './core.ts'
import { Listeners, type ServedPort } from './listeners.ts'
import { Reaper } from './reaper.ts'
import { Snapshots } from './snapshots.ts'

/** A server that runs. */
export interface Server {
  /** Where clients connect: on `clientPort`, or on the first port that is served without it. */
  readonly addresses: { readonly client: Address }
  /** Every port on which it listens. */
  readonly listeners: readonly ServedPort[]
  /** Resolves with the reason when the server has stopped by itself, and with undefined after `close`. Never rejects. */
  readonly failed: Promise<unknown>
  /** A few figures; `mntr` has them all. */
  stats(): ServerFigures
  /** Takes a snapshot now, while requests go on. Resolves when it is on disk; a failure is logged. */
  snapshot(): Promise<void>
  /** Reads the files with certificates again, for new connections. What cannot be used is logged, and the old ones stay. */
  reload(): Promise<void>
  /** Stops: no new clients, what is accepted becomes durable and is answered, connections close. Sessions stay on disk. */
  close(): Promise<void>
}

export interface ServerFigures {
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
export async function createServer(settings: ServerSettings, ports: Ports): Promise<Server> {
  if (settings.ensemble !== undefined)
    throw new RangeError(
      'Ensembles are not served yet, and this server would be on its own. Leave one server.N line to run a single server',
    )
  const unlock = await lock(settings, ports)
  try {
    const recovery = await recovered(settings, ports)
    return await new RunningServer(settings, ports, recovery, unlock).start()
  } catch (error) {
    await unlock()
    throw error
  }
}

async function lock(settings: ServerSettings, { disk, random, system }: Ports): Promise<() => Promise<void>> {
  const folders = new Set([settings.dataDir, settings.dataLogDir])
  const token = [...random.bytes(8)].map((byte) => byte.toString(16).padStart(2, '0')).join('')
  const unlocks: (() => Promise<void>)[] = []
  const unlock = async (): Promise<void> => {
    for (const one of unlocks.reverse()) await one()
  }
  try {
    for (const folder of folders) {
      if (settings.autoCreateDataDir) await disk.makeFolder(folder)
      unlocks.push(await lockFolder(disk, folder, system, token))
    }
    return unlock
  } catch (error) {
    await unlock()
    throw error
  }
}

function recovered(settings: ServerSettings, ports: Ports): Promise<Recovery> {
  return recover({
    disk: ports.disk,
    logger: ports.logger,
    compression: ports.compression,
    dataDir: settings.dataDir,
    dataLogDir: settings.dataLogDir,
    autoCreate: settings.autoCreateDataDir,
    trustEmptySnapshot: settings.snapshotTrustEmpty,
    createTree: () =>
      new Tree({ extendedTypes: settings.extendedTypesEnabled, digest: settings.digestEnabled }),
  })
}

class RunningServer implements Server {
  readonly #settings: ServerSettings
  readonly #ports: Ports
  readonly #core: ServerCore
  readonly #log: TxnLog
  readonly #snapshots: Snapshots
  readonly #reaper: Reaper
  readonly #unlock: () => Promise<void>
  readonly #fresh: boolean
  readonly failed: Promise<unknown>
  #settle: (reason: unknown) => void = () => {}
  readonly #listeners: Listeners
  #cancelTick: Cancel = () => {}
  #closing: Promise<void> | undefined

  constructor(settings: ServerSettings, ports: Ports, recovery: Recovery, unlock: () => Promise<void>) {
    this.#settings = settings
    this.#ports = ports
    this.#unlock = unlock
    this.#fresh = recovery.fresh
    this.failed = new Promise((resolve) => (this.#settle = resolve))
    const now = ports.clock.monotonic()
    const sessions = new SessionTracker(settings.tickTimeMs, now)
    for (const [id, timeout] of recovery.sessions) sessions.add(id, timeout, now)
    const folders = {
      snapshots: `${settings.dataDir}/${VERSION_FOLDER}`,
      logs: `${settings.dataLogDir}/${VERSION_FOLDER}`,
    }
    this.#log = this.#openLog(folders.logs, recovery)
    this.#core = new ServerCore({
      settings,
      ports,
      tree: recovery.tree,
      sessions,
      journal: this.#log,
      failed: (error) => this.#fail(error),
    })
    this.#listeners = new Listeners(settings, ports)
    this.#core.words = new FourLetterWords(this.#core, folders, ports.clock.monotonic())
    this.#snapshots = new Snapshots(this.#core, folders)
    this.#reaper = new Reaper(this.#core)
  }

  get addresses(): { client: Address } {
    return { client: this.listeners[0]!.address }
  }

  get listeners(): readonly ServedPort[] {
    return this.#listeners.served
  }

  stats(): ServerFigures {
    const { tree, sessions, connections, watches, pipeline } = this.#core
    return {
      lastZxid: tree.lastZxid,
      nodes: tree.nodeCount,
      sessions: sessions.size,
      connections: connections.size,
      watches: watches.size,
      outstanding: pipeline.outstanding,
    }
  }

  snapshot(): Promise<void> {
    return this.#snapshots.take()
  }

  reload(): Promise<void> {
    return this.#listeners.reload()
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
    if (this.#fresh) await this.#snapshots.take()
    this.#endOrphans()
    await this.#listeners.open((wire) => this.#core.turn(() => this.#core.accept(wire)))
    this.#core.portOf = (key) => this.#listeners.portOf(key)
    this.#core.handshakes = () => this.#listeners.handshakes
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

  #openLog(folder: string, { lastZxid, replayed }: Recovery): TxnLog {
    const { disk, clock, random, logger } = this.#ports
    const settings = this.#settings
    return new TxnLog(
      {
        disk,
        clock,
        random,
        logger,
        folder,
        lastZxid,
        sinceSnapshot: replayed,
        durable: settings.forceSync,
        preallocateBytes: settings.preAllocSizeBytes,
        snapCount: settings.snapCount,
        snapSizeLimitBytes: settings.snapSizeLimitBytes,
        fileSizeLimitBytes: settings.txnLogSizeLimitBytes,
        syncWarningMs: settings.fsyncWarningThresholdMs,
        flushDelayMs: settings.flushDelayMs,
        maxBatchSize: settings.maxBatchSize,
      },
      {
        durable: (zxid) =>
          this.#core.turn(() => {
            this.#core.stats.fsyncTime.add(this.#log.stats.lastFlushMs)
            const { outstanding } = this.#core.pipeline
            this.#core.pipeline.durable(zxid)
            this.#core.stats.batchSize.add(outstanding - this.#core.pipeline.outstanding)
            this.#core.releaseHeld()
          }),
        snapshotDue: () => void this.#snapshots.take(),
        full: (durable) =>
          this.#core.turn(() => {
            this.#core.pipeline.lose(durable)
            this.#core.releaseHeld()
          }),
        space: () => this.#core.turn(() => this.#core.expireSessions()),
        fatal: (error) => this.#fail(error),
      },
    )
  }

  /** Ephemeral nodes whose session is unknown would stay for ever; they go with a transaction of their own. */
  #endOrphans(): void {
    const { tree, sessions, pipeline, ports } = this.#core
    const orphans = [...tree.owners.sessions()].filter((id) => sessions.get(id) === undefined)
    for (const id of orphans) pipeline.closeSession(id, 0, undefined, ports.clock.monotonic())
  }

  #tick(): void {
    const { clock } = this.#ports
    // While nothing can be written no session ends, and the next moment is long gone.
    const next = this.#core.pipeline.writable ? this.#core.sessions.nextDeadline : Infinity
    const wait = Math.max(1, Math.min(this.#settings.tickTimeMs, next - clock.monotonic()))
    this.#cancelTick = clock.after(wait, 'session expiry', () => {
      this.#core.turn(() => this.#core.expireSessions())
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
    this.#core.accepting = false
    this.#quiet()
    const closed = this.#listeners.close()
    await this.#snapshots.stop()
    // What is accepted becomes durable and is answered before its connection goes.
    if (this.#log.state === 'open') await this.#log.flush().catch((error: unknown) => this.#fail(error))
    await this.#core.closeConnections()
    this.#core.stop()
    await closed
    await this.#log.close()
    await this.#unlock()
    this.#settle(undefined)
    logger.info({ lastZxid: formatZxid(this.#core.tree.lastZxid) }, 'Stopped')
  }

  #quiet(): void {
    this.#cancelTick()
    this.#reaper.stop()
  }
}
