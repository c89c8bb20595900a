import type { Disk, Logger, Platform } from '@zabra/runtime'
import {
  DISTRUSTED_FILE,
  finishReplacement,
  logsIn,
  RecoveryError,
  setAside,
  snapshotsIn,
  type DataFolders,
} from '../persistence/index.ts'
import type { DatabaseSettings } from './types.ts'

/** Name of the file that allows a member to start without data (disk-format 2.5). */
const INITIALIZE = 'initialize'

/**
 * Records whether a member may vote with its data. A quorum relies on every transaction that a member acknowledged; a member that
 * has lost some, or has others, could help to elect a leader without them. It votes with zxid -1, which other members ignore, until
 * a leader has sent it everything. The record survives restarts.
 */
export class VoteEligibility {
  readonly #disk: Disk
  readonly #logger: Logger
  readonly #folders: DataFolders
  #isEligible: boolean

  private constructor({ disk, logger }: Platform, folders: DataFolders, isEligible: boolean) {
    this.#disk = disk
    this.#logger = logger
    this.#folders = folders
    this.#isEligible = isEligible
  }

  /** Reads the record; call it before the files are read. Sets the files aside if the member is not eligible. */
  static async open(platform: Platform, folders: DataFolders): Promise<VoteEligibility> {
    const isMarked = await platform.disk.exists(`${folders.snapshots}/${DISTRUSTED_FILE}`)
    const eligibility = new VoteEligibility(platform, folders, !isMarked)
    if (isMarked) await eligibility.#setAside('a leader must send all data again')
    return eligibility
  }

  /** Rejects with a `RecoveryError` for a standalone server that finds the marker: it has no leader and must not start empty. */
  static async rejectStandalone({ disk }: Platform, { snapshots }: DataFolders): Promise<void> {
    if (!(await disk.exists(`${snapshots}/${DISTRUSTED_FILE}`))) return
    throw new RecoveryError(
      'Expected data of a standalone server, got those of a member that waits for a leader to send it everything',
      snapshots,
      `Start it as a member again, or restore a backup and remove the file ${DISTRUSTED_FILE}.`,
    )
  }

  get isEligible(): boolean {
    return this.#isEligible
  }

  /** Revokes eligibility durably and sets all files aside. No file is removed. */
  async revoke(reason: string): Promise<void> {
    await this.#mark(reason)
    this.#logger.error(
      { reason },
      'The data of this member differ from those of its ensemble; it sets them aside',
    )
    await this.#setAside('they are not those of the ensemble')
  }

  /**
   * Called for a member without any data. With `db.autocreate=false` the data count as lost and it is not eligible, unless an operator has
   * put a file `initialize` into `dataDir`, which is valid for one start (disk-format 2.5).
   */
  async checkEmptyStart(settings: DatabaseSettings): Promise<void> {
    if (await this.#takeInitialize(settings)) return this.grant()
    if (settings.autoCreateDatabase || !this.#isEligible) return
    await this.#mark('db.autocreate=false, and no file initialize')
    const sentence =
      'There are no data, and db.autocreate=false says that there should be: this member does not vote until a leader has sent it everything. To start with an empty database, put an empty file initialize into dataDir'
    this.#logger.warn({ dataDir: settings.dataDir }, sentence)
  }

  /** Makes the member eligible, durably. Call it when everything that a leader sent is on disk. */
  async grant(): Promise<void> {
    if (this.#isEligible) return
    await this.#disk.remove(`${this.#folders.snapshots}/${DISTRUSTED_FILE}`)
    await this.#disk.syncFolder(this.#folders.snapshots)
    this.#isEligible = true
  }

  async #mark(reason: string): Promise<void> {
    const { snapshots } = this.#folders
    this.#isEligible = false
    await this.#disk.replaceFile(`${snapshots}/${DISTRUSTED_FILE}`, new TextEncoder().encode(`${reason}\n`))
  }

  async #takeInitialize({ dataDir, dataLogDir }: DatabaseSettings): Promise<boolean> {
    let found = false
    for (const folder of new Set([dataLogDir, dataDir])) {
      if (!(await this.#disk.exists(`${folder}/${INITIALIZE}`))) continue
      found = true
      await this.#disk.remove(`${folder}/${INITIALIZE}`)
      await this.#disk.syncFolder(folder)
    }
    return found
  }

  /** Sets all files aside, logs first: after a crash in between, logs without snapshots could not be read. */
  async #setAside(reason: string): Promise<void> {
    const { snapshots, logs } = this.#folders
    for (const folder of new Set([snapshots, logs])) if (!(await this.#disk.exists(folder))) return
    await finishReplacement(this.#disk, this.#logger, this.#folders)
    const namesOf = (files: readonly { readonly name: string }[]): string[] => files.map(({ name }) => name)
    const oldLogs = logsIn(await this.#disk.list(logs)).toReversed()
    await setAside(this.#disk, this.#logger, logs, namesOf(oldLogs), reason)
    const old = snapshotsIn(await this.#disk.list(snapshots)).toReversed()
    await setAside(this.#disk, this.#logger, snapshots, namesOf(old), reason)
  }
}
