import type { Cancel, Platform } from '@zabra/runtime'
import type { ServerSettings } from '../settings/index.ts'
import type { ServerStats } from '../connections/stats.ts'
import type { Database } from './index.ts'

/** Takes snapshots one at a time while requests go on, and removes what recovery no longer needs. */
export class MemberSnapshotScheduler {
  readonly #settings: ServerSettings
  readonly #ports: Platform
  readonly #vault: Database
  readonly #stats: ServerStats
  readonly #stop = new AbortController()
  #running: Promise<void> | undefined
  #cancel: Cancel = () => {}

  constructor(settings: ServerSettings, ports: Platform, vault: Database, stats: ServerStats) {
    this.#settings = settings
    this.#ports = ports
    this.#vault = vault
    this.#stats = stats
  }

  /** Starts the timer of the purge, if there is to be one. */
  start(): void {
    const every = this.#settings.purgeIntervalMs
    if (every <= 0 || this.#stop.signal.aborted) return
    this.#cancel = this.#ports.clock.after(every, 'autopurge', () => {
      void this.#purge().finally(() => this.start())
    })
  }

  /** Takes a snapshot unless one is being taken. Never rejects: a failure is logged and counted. */
  take(): Promise<void> {
    this.#running ??= this.#take().finally(() => (this.#running = undefined))
    return this.#running
  }

  /** Gives up a snapshot that is being taken and waits until nothing runs. */
  async stop(): Promise<void> {
    this.#cancel()
    this.#stop.abort(new Error('The server is stopping'))
    await this.#running
  }

  async #take(): Promise<void> {
    const { clock, logger } = this.#ports
    const started = clock.monotonic()
    try {
      const taken = await this.#vault.takeSnapshot([...this.#vault.sessions], this.#stop.signal)
      const ms = clock.monotonic() - started
      this.#stats.snapshotTime.add(ms)
      logger.info({ ...taken, ms: Math.round(ms) }, 'Took a snapshot')
    } catch (error) {
      if (this.#stop.signal.aborted) return
      // The log goes on, so nothing is lost; recovery takes longer.
      this.#stats.snapshotErrors++
      logger.error(
        { error: String(error) },
        'A snapshot failed; the log goes on and the next one is tried when it is due',
      )
    }
  }

  async #purge(): Promise<void> {
    const { logger } = this.#ports
    try {
      const removed = await this.#vault.purge(this.#settings.purgeRetainCount)
      if (removed.length > 0) logger.info({ removed: removed.length }, 'Removed old snapshots and logs')
    } catch (error) {
      logger.error(
        { error: String(error) },
        'Old snapshots and logs could not be removed; trying again at the next interval',
      )
    }
  }
}
