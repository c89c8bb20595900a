import { logsIn, snapshotsIn } from '@zabra/server/files'
import type { DiskImage, FileImage } from '@zabra/testing'
import { DATA_DIR, HISTORY_FOLDERS } from './settings.ts'

const HEADER_BYTES = 16

interface HistoryFile {
  readonly path: string
  readonly zxid: number
}

interface HistoryFiles {
  readonly namesVersion: number
  readonly logs: readonly HistoryFile[]
  readonly snapshots: readonly HistoryFile[]
}

interface ParsedLog {
  readonly zxids: Set<number>
  /** The version of the durable contents up to which the log was read. */
  version: number
  at: number
  truncations: number
}

/** The transactions that would certainly survive a power cut of a machine. */
export class DurableLog {
  readonly #image: DiskImage
  #listed: HistoryFiles = { namesVersion: -1, logs: [], snapshots: [] }
  readonly #read = new WeakMap<FileImage, ParsedLog>()
  /** What earlier disks of the machine held. */
  readonly #before = { zxids: new Set<number>(), snapshot: 0, epochs: new Map<string, number>() }

  constructor(image: DiskImage) {
    this.#image = image
  }

  /** Returns whether a log or a snapshot holds a transaction. */
  has(zxid: number): boolean {
    const { logs, snapshots } = this.#names()
    for (let at = logs.length - 1; at >= 0; at--) {
      const { path, zxid: first } = logs[at]!
      if (first <= zxid && this.#zxids(path).has(zxid)) return true
    }
    return snapshots.some(({ path, zxid: last }) => last >= zxid && this.#image.durable(path) !== undefined)
  }

  /** Returns the files that hold history; lists them again when names have changed. */
  #names(): HistoryFiles {
    const { namesVersion } = this.#image
    if (this.#listed.namesVersion === namesVersion) return this.#listed
    const [logs, snapshots]: [HistoryFile[], HistoryFile[]] = [[], []]
    for (const folder of HISTORY_FOLDERS) {
      if (!this.#image.hasFolder(folder)) continue
      const names = this.#image.list(folder)
      const found = ({ name, zxid }: { name: string; zxid: number }): HistoryFile => ({
        path: `${folder}/${name}`,
        zxid,
      })
      logs.push(...logsIn(names).map(found))
      snapshots.push(...snapshotsIn(names).map(found))
    }
    this.#listed = { namesVersion, logs, snapshots }
    return this.#listed
  }

  /** Returns whether a current or earlier disk of this machine held a transaction. */
  everHad(zxid: number): boolean {
    return this.#before.zxids.has(zxid) || this.#before.snapshot >= zxid || this.has(zxid)
  }

  /** Records what the disk holds, before it is replaced. */
  retainHistory(): void {
    const { zxids, epochs } = this.#before
    for (const zxid of this.zxids()) zxids.add(zxid)
    for (const { zxid } of this.#names().snapshots)
      this.#before.snapshot = Math.max(this.#before.snapshot, zxid)
    for (const name of ['currentEpoch', 'acceptedEpoch']) epochs.set(name, this.highestEpochIn(name))
  }

  /** Returns the epoch in a file such as `currentEpoch`, or the highest one on earlier disks. */
  highestEpochIn(name: string): number {
    return Math.max(this.epochIn(name), this.#before.epochs.get(name) ?? 0)
  }

  /** Yields all zxids in the logs. */
  *zxids(): Generator<number> {
    for (const { path } of this.#names().logs) yield* this.#zxids(path)
  }

  /** Returns the epoch in a file such as `currentEpoch`; 0 without the file. */
  epochIn(name: string): number {
    const file = this.#image.durable(`${DATA_DIR}/version-2/${name}`)
    return file === undefined ? 0 : Number(new TextDecoder().decode(file.durableBytes).trim())
  }

  #zxids(path: string): Set<number> {
    const file = this.#image.durable(path)
    if (file === undefined) return new Set()
    let read = this.#read.get(file)
    if (read?.version === file.durableVersion) return read.zxids
    if (read === undefined || read.truncations !== file.truncations) {
      read = { zxids: new Set(), version: 0, at: HEADER_BYTES, truncations: file.truncations }
      this.#read.set(file, read)
    }
    read.version = file.durableVersion
    const bytes = file.durableBytes
    const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength)
    while (read.at + 32 < bytes.length) {
      const length = view.getInt32(read.at + 8)
      const end = read.at + 12 + length
      if (length < 32 || end >= bytes.length || bytes[end] !== 0x42) break
      read.zxids.add(view.getInt32(read.at + 24) * 2 ** 32 + view.getUint32(read.at + 28))
      read.at = end + 1
    }
    return read.zxids
  }
}
