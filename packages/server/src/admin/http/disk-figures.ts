import type { Clock, Disk, DiskSpace } from '@zabra/runtime'
import { fileSizes, newestSnapshot } from '../server-actions.ts'
import type { DirectoryReport } from '../server-report.ts'

/** Figures of this age are read anew, which takes a tenth of the time of a scrape. */
const READ_AFTER_MS = 10_000
/** Figures of this age are not reported any more. */
const MAX_AGE_MS = 60_000
/** How long a caller waits for a disk that does not answer, in milliseconds: half of what the leader waits for the report of a member. */
const WAIT_MS = 500

/** What the metrics report of the disk. A figure that the system does not give is left out. */
export interface DiskReport {
  /** By folder. */
  readonly spaces: ReadonlyMap<string, DiskSpace>
  /** When the newest snapshot was taken, in milliseconds since 1970; undefined when there is none. */
  readonly lastSnapshotAt: number | undefined
  /** Bytes of all snapshots, and of all logs. */
  readonly sizes: { readonly snapshots: number; readonly logs: number } | undefined
}

/**
 * Reads figures of the disk for the metrics. The result of a call to the system is there an iteration of the event loop later, under
 * load tens of milliseconds: a scrape reports what an earlier one has begun to read, and what is read is read at once.
 */
export class DiskFigures {
  readonly #clock: Pick<Clock, 'monotonic' | 'after'>
  readonly #disk: Disk
  #last: { readonly report: DiskReport; readonly at: number } | undefined
  #reading: Promise<DiskReport> | undefined

  constructor(clock: Pick<Clock, 'monotonic' | 'after'>, disk: Disk) {
    this.#clock = clock
    this.#disk = disk
  }

  /**
   * Resolves to the figures read last, or to new ones if these are too old; to undefined where the disk does not answer in time. Begins to
   * read them anew after ten seconds.
   */
  async next(directories: DirectoryReport): Promise<DiskReport | undefined> {
    const last = this.#last
    const age = last === undefined ? Infinity : this.#clock.monotonic() - last.at
    if (age >= READ_AFTER_MS) this.#reading ??= this.#read(directories)
    return age >= MAX_AGE_MS ? this.#inTime(this.#reading!) : last!.report
  }

  #inTime(reading: Promise<DiskReport>): Promise<DiskReport | undefined> {
    return new Promise((resolve, reject) => {
      const cancel = this.#clock.after(WAIT_MS, 'figures of the disk', () => resolve(undefined))
      reading.then(resolve, reject).finally(cancel)
    })
  }

  async #read(directories: DirectoryReport): Promise<DiskReport> {
    const folders = [...new Set([directories.snapshots, directories.logs])]
    const [spaces, newest, sizes] = await Promise.all([
      Promise.all(folders.map((folder) => this.#disk.space(folder).catch(() => undefined))),
      newestSnapshot(this.#disk, directories).catch(() => undefined),
      fileSizes(this.#disk, directories).catch(() => undefined),
    ])
    const known = folders.flatMap((folder, index) => {
      const space = spaces[index]
      return space === undefined ? [] : [[folder, space] as const]
    })
    const report = { spaces: new Map(known), lastSnapshotAt: newest?.at, sizes }
    this.#last = { report, at: this.#clock.monotonic() }
    this.#reading = undefined
    return report
  }
}
