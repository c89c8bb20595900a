import type { Cancel, Clock, Logger } from '@zabra/runtime'
import type { Zxid } from '../core/types.ts'
import type { Database } from './database.ts'

export interface SnapshotSettings {
  /** How often old files are removed; 0 disables it. */
  readonly purgeIntervalMs: number
  /** Number of snapshots that are kept, with the logs that they need. */
  readonly purgeRetainCount: number
}

/** Counters that the scheduler updates. */
export interface SnapshotStats {
  readonly snapshotTime: { add(ms: number): void }
  snapshotErrors: number
}

export interface SnapshotSchedulerOptions {
  readonly settings: SnapshotSettings
  readonly clock: Clock
  readonly logger: Logger
  readonly database: Database
  readonly stats: SnapshotStats
  /** Resolves within seconds to the transaction after which the next backup reads the log; to Infinity without backups. */
  readonly unsavedAfter: () => Promise<Zxid>
}

/** Takes snapshots one at a time while requests go on, and periodically removes files that recovery does not need. */
export class SnapshotScheduler {
  readonly #options: SnapshotSchedulerOptions
  readonly #stop = new AbortController()
  #running: Promise<boolean> | undefined
  #cancelTimer: Cancel = () => {}
  /** The interval of the purge timer; 0 without one. */
  #intervalMs = 0

  constructor(options: SnapshotSchedulerOptions) {
    this.#options = options
  }

  /** Starts the purge timer, unless purging is disabled. Ends an earlier one. */
  start(): void {
    const { settings, clock } = this.#options
    this.#cancelTimer()
    this.#intervalMs = settings.purgeIntervalMs
    if (this.#intervalMs <= 0 || this.#stop.signal.aborted) return
    this.#cancelTimer = clock.after(this.#intervalMs, 'autopurge', () => {
      void this.#purge().finally(() => this.start())
    })
  }

  /** Starts the purge timer anew if the settings have another interval. */
  applySettings(): void {
    if (this.#options.settings.purgeIntervalMs !== this.#intervalMs) this.start()
  }

  /** Takes a snapshot unless one is in progress. Resolves to whether it is on disk. Never rejects: a failure is logged and counted. */
  take(): Promise<boolean> {
    this.#running ??= this.#take().finally(() => (this.#running = undefined))
    return this.#running
  }

  /** Takes the snapshot without which the next start would refuse the log, before there is a role. Rejects where that fails. */
  takeFirst(signal: AbortSignal | undefined): Promise<void> {
    return this.#write(signal)
  }

  /** Aborts a snapshot in progress and waits until it has stopped. */
  async stop(): Promise<void> {
    this.#cancelTimer()
    this.#stop.abort(new Error('The server is stopping'))
    await this.#running
  }

  async #write(signal: AbortSignal | undefined): Promise<void> {
    const { clock, logger, database, stats } = this.#options
    const started = clock.monotonic()
    const { file, nodes, bytes } = await database.takeSnapshot(database.sessions, signal)
    const ms = clock.monotonic() - started
    stats.snapshotTime.add(ms)
    logger.info({ file, nodes, bytes, ms: Math.round(ms) }, 'Took a snapshot')
  }

  async #take(): Promise<boolean> {
    const { logger, stats } = this.#options
    try {
      await this.#write(this.#stop.signal)
      return true
    } catch (error) {
      if (this.#stop.signal.aborted) return false
      // The log continues, so nothing is lost; recovery takes longer.
      stats.snapshotErrors++
      logger.error(
        { error: String(error) },
        'A snapshot failed; the log continues and the next snapshot is taken when it is due',
      )
      return false
    }
  }

  async #purge(): Promise<void> {
    const { settings, logger, database, unsavedAfter } = this.#options
    try {
      const after = await unsavedAfter()
      if (this.#stop.signal.aborted) return
      const removed = await database.purge(settings.purgeRetainCount, after)
      if (removed.length > 0) logger.info({ removed: removed.length }, 'Removed old snapshots and logs')
    } catch (error) {
      logger.error(
        { error: String(error) },
        'Old snapshots and logs could not be removed; trying again at the next interval',
      )
    }
  }
}
