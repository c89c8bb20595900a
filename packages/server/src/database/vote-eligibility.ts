import type { Disk, Logger, Platform } from '@zabra/runtime'
import {
  finishReplacement,
  logsIn,
  RecoveryError,
  setAside,
  snapshotsIn,
  type DataFolders,
} from '../persistence/index.ts'
import type { ServerSettings } from '../settings/index.ts'

/** Says that what is in the folder, if anything, is not to be voted with. In `version-2`, where nobody else looks for it. */
const MARK = 'distrusted'
/** Says that a folder without data is right to have none (ZooKeeper's name). */
const INITIALIZE = 'initialize'

/**
 * Whether a member may vote with what it has. What it had acknowledged is on a quorum of disks; one that has lost it, or has
 * something else, would help to elect a leader without it. So it says zxid -1, which counts for nothing, until a leader has sent
 * it everything. This outlives the process.
 */
export class VoteEligibility {
  readonly #disk: Disk
  readonly #logger: Logger
  readonly #folders: DataFolders
  #isEligible: boolean

  private constructor({ disk, logger }: Platform, folders: DataFolders, given: boolean) {
    this.#disk = disk
    this.#logger = logger
    this.#folders = folders
    this.#isEligible = given
  }

  /** Finds out before the files are read. Those of a member that is distrusted are set aside, should any be left. */
  static async open(ports: Platform, folders: DataFolders): Promise<VoteEligibility> {
    const marked = await ports.disk.exists(`${folders.snapshots}/${MARK}`)
    const trust = new VoteEligibility(ports, folders, !marked)
    if (marked) await trust.#setAside('a leader is to send all data anew')
    return trust
  }

  /** A server on its own has nobody to fetch data from, and must not begin with nothing where there was something. */
  static async rejectStandalone({ disk }: Platform, { snapshots }: DataFolders): Promise<void> {
    if (!(await disk.exists(`${snapshots}/${MARK}`))) return
    throw new RecoveryError(
      'Expected data for a server on its own, got those of a member that waits for a leader to send it everything',
      snapshots,
      `Start it as a member again, or restore a backup and remove the file ${MARK}.`,
    )
  }

  get isEligible(): boolean {
    return this.#isEligible
  }

  /** Withdraws it, durably, and sets all files aside. Nothing is removed. */
  async revoke(reason: string): Promise<void> {
    await this.#mark(reason)
    this.#logger.error(
      { reason },
      'The data of this member cannot be those of its ensemble; it sets them aside',
    )
    await this.#setAside('they are not those of the ensemble')
  }

  /**
   * A member without any data. With `db.autocreate=false` it has lost them, unless somebody has put a file `initialize` beside
   * them, which is good for one start.
   */
  async checkEmptyStart(settings: ServerSettings): Promise<void> {
    if (await this.#takeInitialize(settings)) return this.grant()
    if (settings.autoCreateDatabase || !this.#isEligible) return
    await this.#mark('db.autocreate=false, and no file initialize')
    const sentence =
      'There are no data, and db.autocreate=false says that there should be: this member does not vote until a leader has sent it everything. To begin with nothing, put an empty file initialize into dataDir'
    this.#logger.warn({ dataDir: settings.dataDir }, sentence)
  }

  /** All that a leader had is on disk. */
  async grant(): Promise<void> {
    if (this.#isEligible) return
    await this.#disk.remove(`${this.#folders.snapshots}/${MARK}`)
    await this.#disk.syncFolder(this.#folders.snapshots)
    this.#isEligible = true
  }

  async #mark(reason: string): Promise<void> {
    const { snapshots } = this.#folders
    this.#isEligible = false
    await this.#disk.replaceFile(`${snapshots}/${MARK}`, new TextEncoder().encode(`${reason}\n`))
  }

  async #takeInitialize({ dataDir, dataLogDir }: ServerSettings): Promise<boolean> {
    let found = false
    for (const folder of new Set([dataLogDir, dataDir])) {
      if (!(await this.#disk.exists(`${folder}/${INITIALIZE}`))) continue
      found = true
      await this.#disk.remove(`${folder}/${INITIALIZE}`)
      await this.#disk.syncFolder(folder)
    }
    return found
  }

  /** Logs first: without snapshots they could not be read again, should this be cut short. */
  async #setAside(why: string): Promise<void> {
    const { snapshots, logs } = this.#folders
    for (const folder of new Set([snapshots, logs])) if (!(await this.#disk.exists(folder))) return
    await finishReplacement(this.#disk, this.#logger, this.#folders)
    const namesOf = (files: readonly { readonly name: string }[]): string[] => files.map(({ name }) => name)
    const oldLogs = logsIn(await this.#disk.list(logs)).toReversed()
    await setAside(this.#disk, this.#logger, logs, namesOf(oldLogs), why)
    const old = snapshotsIn(await this.#disk.list(snapshots)).toReversed()
    await setAside(this.#disk, this.#logger, snapshots, namesOf(old), why)
  }
}
