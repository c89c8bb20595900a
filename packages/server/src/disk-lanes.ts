import type { Disk, DiskReader, DiskWriter, FileReads } from '@zabra/runtime'
import { isRemoteTarget, parseTarget } from './backup/index.ts'
import { Mutex } from './persistence/index.ts'
import type { ServerSettings } from './settings/index.ts'

/** Runs calls for files, so many at once. */
type Lane = FileReads

/** Calls in lanes that are made at once. */
const LANE_CALLS = 3

/**
 * Makes the calls for a disk in lanes, one at a time in each. A process has four threads for the calls of all files by default, and a call
 * for a disk that hangs, such as a mounted folder whose machine is away, does not return: four of them would stop the log of the server.
 *
 * The log has no lane, nor have the small files of the data folder. All else of a data folder that is not that of the log has one, so have
 * all folders of backups together, the audit file, and all other files together, which are those that settings name. Three lanes make a call
 * at once at most. So whatever hangs, a thread is left for the log; and while two lanes hang, the others go on.
 */
export class DiskLanes {
  readonly disk: Disk
  /** The lane of files that settings name. */
  readonly ofFiles: Lane
  readonly #ofData: Lane
  readonly #auditFile: readonly [path: string, lane: Lane] | undefined
  /** The lanes of folders, the longest names first; undefined for none. */
  readonly #folders: readonly (readonly [folder: string, lane: Lane | undefined])[]

  constructor(disk: Disk, { dataDir, dataLogDir, backupTargets, auditFile }: ServerSettings) {
    const permits = new Permits(LANE_CALLS)
    const createLane = (): Lane => {
      const calls = new Mutex()
      return { run: (call) => calls.run(() => permits.run(call)) }
    }
    this.ofFiles = createLane()
    this.#ofData = createLane()
    if (auditFile !== undefined) this.#auditFile = [auditFile, createLane()]
    const ofBackups = createLane()
    const folders: (readonly [string, Lane | undefined])[] = [[dataLogDir, undefined]]
    if (dataDir !== dataLogDir) folders.push([dataDir, this.#ofData])
    for (const folder of foldersOf(backupTargets)) folders.push([folder, ofBackups])
    this.#folders = folders.toSorted(([a], [b]) => b.length - a.length)
    this.disk = this.#inLanes(disk)
  }

  #laneOf(path: string): Lane | undefined {
    const [auditFile, ofAudit] = this.#auditFile ?? []
    // A file that was rotated has a number behind its name.
    if (
      auditFile !== undefined &&
      path.startsWith(auditFile) &&
      /^(?:\.\d+)?$/.test(path.slice(auditFile.length))
    )
      return ofAudit
    const found = this.#folders.find(
      ([name]) => path.startsWith(name) && (path.length === name.length || path[name.length] === '/'),
    )
    return found === undefined ? this.ofFiles : found[1]
  }

  #inLanes(disk: Disk): Disk {
    const inLane = <T>(path: string, call: () => Promise<T>): Promise<T> => {
      const lane = this.#laneOf(path)
      return lane === undefined ? call() : lane.run(call)
    }
    /** A snapshot in the same lane must not hold up what an election needs. */
    const forSmallFile = <T>(path: string, call: () => Promise<T>): Promise<T> =>
      this.#laneOf(path) === this.#ofData ? call() : inLane(path, call)
    return {
      list: (folder) => inLane(folder, () => disk.list(folder)),
      exists: (path) => inLane(path, () => disk.exists(path)),
      makeFolder: (path) => inLane(path, () => disk.makeFolder(path)),
      size: (path) => inLane(path, () => disk.size(path)),
      modifiedAt: (path) => inLane(path, () => disk.modifiedAt(path)),
      readFile: (path) => forSmallFile(path, () => disk.readFile(path)),
      replaceFile: (path, bytes, options) => forSmallFile(path, () => disk.replaceFile(path, bytes, options)),
      createFile: (path, bytes) => forSmallFile(path, () => disk.createFile(path, bytes)),
      openRead: async (path) => {
        const reader = await inLane(path, () => disk.openRead(path))
        const lane = this.#laneOf(path)
        return lane === undefined ? reader : readerIn(lane, reader)
      },
      openWrite: async (path, options) => {
        const writer = await inLane(path, () => disk.openWrite(path, options))
        const lane = this.#laneOf(path)
        return lane === undefined ? writer : writerIn(lane, writer)
      },
      rename: (from, to) => inLane(from, () => disk.rename(from, to)),
      renameNew: (from, to) => inLane(from, () => disk.renameNew(from, to)),
      remove: (path) => inLane(path, () => disk.remove(path)),
      syncFolder: (folder) => inLane(folder, () => disk.syncFolder(folder)),
      space: (folder) => inLane(folder, () => disk.space(folder)),
      ...(disk.modeOf === undefined ? {} : { modeOf: (path) => inLane(path, () => disk.modeOf!(path)) }),
      ...(disk.deviceOf === undefined
        ? {}
        : { deviceOf: (path) => inLane(path, () => disk.deviceOf!(path)) }),
      ...(disk.realPath === undefined
        ? {}
        : { realPath: (path) => inLane(path, () => disk.realPath!(path)) }),
    }
  }
}

const readerIn = (lane: Lane, reader: DiskReader): DiskReader => ({
  read: (into, position) => lane.run(() => reader.read(into, position)),
  size: () => lane.run(() => reader.size()),
  close: () => lane.run(() => reader.close()),
})

const writerIn = (lane: Lane, writer: DiskWriter): DiskWriter => ({
  write: (bytes, position) => lane.run(() => writer.write(bytes, position)),
  sync: () => lane.run(() => writer.sync()),
  truncate: (length) => lane.run(() => writer.truncate(length)),
  close: () => lane.run(() => writer.close()),
})

const foldersOf = (targets: readonly string[]): readonly string[] =>
  targets.flatMap((text) => {
    if (isRemoteTarget(text)) return []
    const name = parseTarget(text)
    return 'path' in name ? [name.path.replace(/\/+$/, '')] : []
  })

/** Runs so many calls at once, the others in their order. */
class Permits implements Lane {
  #free: number
  readonly #waiting: (() => void)[] = []

  constructor(count: number) {
    this.#free = count
  }

  async run<T>(call: () => Promise<T>): Promise<T> {
    if (this.#free === 0) await new Promise<void>((begin) => this.#waiting.push(begin))
    else this.#free--
    try {
      return await call()
    } finally {
      const next = this.#waiting.shift()
      if (next === undefined) this.#free++
      else next()
    }
  }
}
