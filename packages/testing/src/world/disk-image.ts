import { FileImage, type PowerLoss } from './file-image.ts'
import type { Prng } from './prng.ts'

/**
 * How a process ends: `kill` leaves its machine running; `power` cuts the machine's power, which loses unsynced writes.
 */
export type CrashKind = 'kill' | 'power'

/** How a disk behaves. */
export interface DiskConditions {
  /** Mean durations, in milliseconds. */
  callMs: number
  syncMs: number
  /** Probability that a sync takes `stallMs` longer. */
  stallRate: number
  stallMs: number
  /** The disk is full: any write that grows a file fails with ENOSPC. */
  isFull: boolean
  /** The next sync, or durable write, fails with EIO. */
  failNextSync: boolean
  /** A power cut keeps an arbitrary subset of the sectors in flight and may corrupt them. */
  reordersSectors: boolean
}

type NameChange =
  | { readonly kind: 'set'; readonly path: string; readonly file: FileImage }
  | { readonly kind: 'remove'; readonly path: string }
  | { readonly kind: 'rename'; readonly from: string; readonly to: string; readonly file: FileImage }

/** Disk faults that are counted. */
export type DiskFault =
  | 'lost tails'
  | 'torn tails'
  | 'reordered tails'
  | 'tails with flipped bytes'
  | 'lost names'
  | 'writes without space'
  | 'failed syncs'
  | 'slow syncs'

const DISK_FAULT_OF: Readonly<Record<Exclude<PowerLoss, 'clean'>, DiskFault>> = {
  lost: 'lost tails',
  torn: 'torn tails',
  reordered: 'reordered tails',
  rotten: 'tails with flipped bytes',
}

interface InFlightWrite {
  readonly file: FileImage
  readonly position: number
  readonly bytes: Uint8Array
}

export const folderOf = (path: string): string => path.slice(0, Math.max(0, path.lastIndexOf('/')))

/** The disk contents of a machine, kept across its processes. */
export class DiskImage {
  readonly conditions: DiskConditions = {
    callMs: 0.05,
    syncMs: 0.5,
    stallRate: 0.002,
    stallMs: 50,
    isFull: false,
    failNextSync: false,
    reordersSectors: false,
  }
  readonly prng: Prng
  /** Counts the faults that occurred, to show that a run met some. */
  readonly faultCounts: Record<DiskFault, number> = {
    'lost tails': 0,
    'torn tails': 0,
    'reordered tails': 0,
    'tails with flipped bytes': 0,
    'lost names': 0,
    'writes without space': 0,
    'failed syncs': 0,
    'slow syncs': 0,
  }
  readonly inFlightWrites = new Set<InFlightWrite>()
  /** Called once, when the next durable write begins. */
  onNextDurableWrite: (() => void) | undefined
  /** Counts changes of file names, for callers that cache a listing. */
  namesVersion = 0
  /** Called with the contents of a file that is removed or renamed. */
  onRemove: ((path: string, bytes: Uint8Array) => void) | undefined
  #files = new Map<string, FileImage>()
  readonly #durable = new Map<string, FileImage>()
  readonly #folders = new Set<string>()
  #pending: NameChange[] = []

  constructor(prng: Prng) {
    this.prng = prng
  }

  get paths(): string[] {
    return [...this.#files.keys()]
  }

  file(path: string): FileImage | undefined {
    return this.#files.get(path)
  }

  /** Returns a file as it would certainly survive a power cut; undefined when its name may be lost. */
  durable(path: string): FileImage | undefined {
    return this.#durable.get(path)
  }

  hasFolder(path: string): boolean {
    return this.#folders.has(path)
  }

  list(folder: string): string[] {
    const prefix = `${folder}/`
    const names = new Set<string>()
    for (const paths of [this.#files.keys(), this.#folders])
      for (const path of paths) {
        if (!path.startsWith(prefix)) continue
        const end = path.indexOf('/', prefix.length)
        names.add(path.slice(prefix.length, end < 0 ? undefined : end))
      }
    return [...names]
  }

  makeFolder(path: string): void {
    for (let at = path; at !== ''; at = folderOf(at)) this.#folders.add(at)
  }

  create(path: string): FileImage {
    const file = new FileImage()
    this.namesVersion++
    this.#files.set(path, file)
    this.#pending.push({ kind: 'set', path, file })
    return file
  }

  rename(from: string, to: string): void {
    const file = this.#files.get(from)!
    this.namesVersion++
    this.onRemove?.(from, file.bytes)
    this.#files.delete(from)
    this.#files.set(to, file)
    this.#pending.push({ kind: 'rename', from, to, file })
  }

  remove(path: string): void {
    this.namesVersion++
    this.onRemove?.(path, this.#files.get(path)?.bytes ?? new Uint8Array(0))
    this.#files.delete(path)
    this.#pending.push({ kind: 'remove', path })
  }

  syncFolder(folder: string): void {
    const isHere = (change: NameChange): boolean =>
      folderOf(change.kind === 'rename' ? change.to : change.path) === folder
    for (const change of this.#pending) if (isHere(change)) this.#makeDurable(change)
    this.#pending = this.#pending.filter((change) => !isHere(change))
  }

  /** Removes everything, as when the disk is replaced. */
  wipe(): void {
    for (const [path, file] of this.#files) this.onRemove?.(path, file.bytes)
    this.namesVersion++
    this.#files.clear()
    this.#durable.clear()
    this.#folders.clear()
    this.#pending = []
  }

  /** Creates a durable file and its folder. */
  install(path: string, bytes: Uint8Array): void {
    this.makeFolder(folderOf(path))
    const file = this.create(path)
    file.write(0, bytes)
    file.sync(file.pending)
    this.syncFolder(folderOf(path))
  }

  /** Ends writes in flight when the process ends. A power cut also drops what was not synced. */
  crash(kind: CrashKind): void {
    for (const { file, position, bytes } of this.inFlightWrites) {
      // The write was interrupted midway, or the system had all of it in memory and the disk had not.
      const had = this.prng.chance(0.5) ? this.prng.below(bytes.length + 1) : bytes.length
      if (this.prng.chance(0.7)) file.write(position, bytes.subarray(0, had))
    }
    this.inFlightWrites.clear()
    this.conditions.failNextSync = false
    if (kind === 'kill') return
    const together = this.prng.chance(0.5)
    const keep = this.prng.below(this.#pending.length + 1)
    this.#pending.forEach((change, index) => {
      if (together ? index < keep : this.prng.chance(0.5)) this.#makeDurable(change)
      else this.faultCounts['lost names']++
    })
    this.#pending = []
    this.namesVersion++
    this.#files = new Map(this.#durable)
    for (const file of new Set(this.#files.values())) {
      const end = file.losePower(this.prng, this.conditions.reordersSectors)
      if (end !== 'clean') this.faultCounts[DISK_FAULT_OF[end]]++
    }
  }

  notifyDurableWrite(): void {
    const callback = this.onNextDurableWrite
    this.onNextDurableWrite = undefined
    callback?.()
  }

  #makeDurable(change: NameChange): void {
    if (change.kind === 'set') this.#durable.set(change.path, change.file)
    else if (change.kind === 'remove') this.#durable.delete(change.path)
    else {
      this.#durable.delete(change.from)
      this.#durable.set(change.to, change.file)
    }
  }
}
