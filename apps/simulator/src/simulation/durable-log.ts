import { logsIn, snapshotsIn } from '@zabra/server/files'
import type { DiskImage, FileImage } from '@zabra/testing'
import { DATA_DIR } from './settings.ts'

const FOLDER = `${DATA_DIR}/version-2`
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
  at: number
  truncations: number
}

/** Which transactions a power cut would leave on a machine's disk for certain. */
export class DurableLog {
  readonly #platter: DiskImage
  #listed: HistoryFiles = { namesVersion: -1, logs: [], snapshots: [] }
  readonly #read = new WeakMap<FileImage, ParsedLog>()
  /** What the machine had on disks that it has no more. */
  readonly #before = { zxids: new Set<number>(), snapshot: 0, epochs: new Map<string, number>() }

  constructor(platter: DiskImage) {
    this.#platter = platter
  }

  /** Whether a log or a snapshot has it. */
  has(zxid: number): boolean {
    const { logs, snapshots } = this.#names()
    for (let at = logs.length - 1; at >= 0; at--) {
      const { path, zxid: first } = logs[at]!
      if (first <= zxid && this.#zxids(path).has(zxid)) return true
    }
    return snapshots.some(({ path, zxid: last }) => last >= zxid && this.#platter.durable(path) !== undefined)
  }

  /** The files that hold history; looked for again when names have changed. */
  #names(): HistoryFiles {
    const { namesVersion } = this.#platter
    if (this.#listed.namesVersion === namesVersion) return this.#listed
    const names = this.#platter.hasFolder(FOLDER) ? this.#platter.list(FOLDER) : []
    const found = ({ name, zxid }: { name: string; zxid: number }): HistoryFile => ({
      path: `${FOLDER}/${name}`,
      zxid,
    })
    this.#listed = {
      namesVersion,
      logs: logsIn(names).map(found),
      snapshots: snapshotsIn(names).map(found),
    }
    return this.#listed
  }

  /** Whether a disk of this machine has it, or had it. */
  everHad(zxid: number): boolean {
    return this.#before.zxids.has(zxid) || this.#before.snapshot >= zxid || this.has(zxid)
  }

  /** Call it before the disk of the machine is taken away. */
  retainHistory(): void {
    const { zxids, epochs } = this.#before
    for (const zxid of this.zxids()) zxids.add(zxid)
    for (const { zxid } of this.#names().snapshots)
      this.#before.snapshot = Math.max(this.#before.snapshot, zxid)
    for (const name of ['currentEpoch', 'acceptedEpoch']) epochs.set(name, this.highestEpochIn(name))
  }

  /** The number in a file such as `currentEpoch`, or what was there before the disk was another one. */
  highestEpochIn(name: string): number {
    return Math.max(this.epochIn(name), this.#before.epochs.get(name) ?? 0)
  }

  /** All that the logs have. */
  *zxids(): Generator<number> {
    for (const { path } of this.#names().logs) yield* this.#zxids(path)
  }

  /** The number in a file such as `currentEpoch`; 0 without it. */
  epochIn(name: string): number {
    const file = this.#platter.durable(`${FOLDER}/${name}`)
    return file === undefined ? 0 : Number(new TextDecoder().decode(file.durableBytes).trim())
  }

  #zxids(path: string): Set<number> {
    const file = this.#platter.durable(path)
    if (file === undefined) return new Set()
    let read = this.#read.get(file)
    if (read === undefined || read.truncations !== file.truncations) {
      read = { zxids: new Set(), at: HEADER_BYTES, truncations: file.truncations }
      this.#read.set(file, read)
    }
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
