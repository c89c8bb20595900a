import type { Clock, Disk, DiskSpace } from '@zabra/runtime'
import { fileSizes, newestSnapshot } from '../server-actions.ts'
import type { DirectoryReport } from '../server-report.ts'

/** Figures of this age are not reported any more. */
const MAX_AGE_MS = 60_000

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
 * load tens of milliseconds: a scrape reports what the one before it has begun to read, and what is read is read at once.
 */
export class DiskFigures {
  readonly #clock: Pick<Clock, 'monotonic'>
  readonly #disk: Disk
  #last: { readonly report: DiskReport; readonly at: number } | undefined
  #reading: Promise<DiskReport> | undefined

  constructor(clock: Pick<Clock, 'monotonic'>, disk: Disk) {
    this.#clock = clock
    this.#disk = disk
  }

  /** Begins to read the figures anew. Resolves to those read last, or to the new ones if these are old. */
  async next(directories: DirectoryReport): Promise<DiskReport> {
    const last = this.#last
    this.#reading ??= this.#read(directories)
    if (last === undefined || this.#clock.monotonic() - last.at >= MAX_AGE_MS) return this.#reading
    return last.report
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
