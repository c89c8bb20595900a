import type { Cancel } from '@zabra/runtime'
import type { ClientService } from '../connections/client-service.ts'
import type { Database } from './index.ts'

/** Takes snapshots one at a time while requests go on, and removes what recovery no longer needs. */
export class SnapshotScheduler {
  readonly #core: ClientService
  readonly #vault: Database
  readonly #stop = new AbortController()
  #running: Promise<void> | undefined
  #cancel: Cancel = () => {}

  constructor(core: ClientService, vault: Database) {
    this.#core = core
    this.#vault = vault
  }

  /** Starts the timer of the purge, if there is to be one. */
  start(): void {
    const every = this.#core.settings.purgeIntervalMs
    if (every <= 0) return
    this.#cancel = this.#core.platform.clock.after(every, 'autopurge', () => {
      void this.purge().finally(() => this.start())
    })
  }

  /** Takes a snapshot unless one is being taken. Never rejects: a failure is logged and counted. */
  take(): Promise<void> {
    this.#running ??= this.#take().finally(() => (this.#running = undefined))
    return this.#running
  }

  async purge(): Promise<void> {
    const { settings, platform: ports } = this.#core
    try {
      const removed = await this.#vault.purge(settings.purgeRetainCount)
      if (removed.length > 0) ports.logger.info({ removed: removed.length }, 'Removed old snapshots and logs')
    } catch (error) {
      ports.logger.error(
        { error: String(error) },
        'Old snapshots and logs could not be removed; trying again at the next interval',
      )
    }
  }

  /** Gives up a snapshot that is being taken and waits until nothing runs. */
  async stop(): Promise<void> {
    this.#cancel()
    this.#stop.abort(new Error('The server is stopping'))
    await this.#running
  }

  async #take(): Promise<void> {
    const { sessions, platform: ports, stats } = this.#core
    const started = ports.clock.monotonic()
    try {
      const list = [...sessions].map(({ id, timeout }) => [id, timeout] as const)
      const taken = await this.#vault.takeSnapshot(list, this.#stop.signal)
      const ms = ports.clock.monotonic() - started
      stats.snapshotTime.add(ms)
      ports.logger.info(
        { file: taken.file, nodes: taken.nodes, bytes: taken.bytes, ms: Math.round(ms) },
        'Took a snapshot',
      )
    } catch (error) {
      if (this.#stop.signal.aborted) return
      // The log goes on, so nothing is lost; recovery takes longer.
      stats.snapshotErrors++
      ports.logger.error(
        { error: String(error) },
        'A snapshot failed; the log goes on and the next one is tried when it is due',
      )
    }
  }
}
