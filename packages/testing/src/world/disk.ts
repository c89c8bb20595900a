import { DiskError, type Disk, type DiskReader, type DiskWriter } from '@zabra/runtime'
import type { Prng } from './prng.ts'
import { FileImage, type PowerLoss } from './file-image.ts'
import type { CrashKind, Incarnation } from './process.ts'
import type { SimulatedWorld } from './world.ts'

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

/** Duration from which a sync counts as slow, in milliseconds. */
const SLOW_MS = 200

interface InFlightWrite {
  readonly file: FileImage
  readonly position: number
  readonly bytes: Uint8Array
}

const folderOf = (path: string): string => path.slice(0, Math.max(0, path.lastIndexOf('/')))

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

  constructor(world: SimulatedWorld, name: string) {
    this.prng = world.prng.fork(`disk ${name}`)
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
    for (const path of [...this.#files.keys(), ...this.#folders])
      if (path.startsWith(prefix)) names.add(path.slice(prefix.length).split('/', 1)[0]!)
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
    const heard = this.onNextDurableWrite
    this.onNextDurableWrite = undefined
    heard?.()
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

/** The disk as one process sees it. Calls take simulated time; calls of an ended process have no effect. */
export class SimulatedDisk implements Disk {
  readonly #world: SimulatedWorld
  readonly #owner: Incarnation
  readonly #image: DiskImage

  constructor(world: SimulatedWorld, owner: Incarnation, platter: DiskImage) {
    this.#world = world
    this.#owner = owner
    this.#image = platter
  }

  list(folder: string): Promise<string[]> {
    return this.#call(() => {
      const names = this.#image.list(folder)
      if (names.length === 0 && !this.#image.hasFolder(folder)) throw diskError('ENOENT', folder)
      // Folders have no order: shuffle, so that no caller depends on one.
      return this.#image.prng.shuffled(names)
    })
  }

  exists(path: string): Promise<boolean> {
    return this.#call(() => this.#image.file(path) !== undefined || this.#image.hasFolder(path))
  }

  makeFolder(path: string): Promise<void> {
    return this.#call(() => this.#image.makeFolder(path))
  }

  size(path: string): Promise<number> {
    return this.#call(() => this.#file(path).length)
  }

  readFile(path: string): Promise<Uint8Array> {
    return this.#call(() => this.#file(path).bytes.slice())
  }

  async replaceFile(path: string, bytes: Uint8Array): Promise<void> {
    const temporary = `${path}.tmp`
    const file = await this.#call(() => {
      if (this.#image.file(temporary) === undefined) this.#image.create(temporary)
      const made = this.#file(temporary)
      made.truncate(0)
      return made
    })
    const writer = this.#writer(temporary, file, false)
    await writer.write(bytes, 0)
    await writer.sync()
    await this.rename(temporary, path)
    await this.syncFolder(folderOf(path))
  }

  async openRead(path: string): Promise<DiskReader> {
    const file = await this.#call(() => this.#file(path))
    return {
      read: (into, position) =>
        this.#call(() => {
          const part = file.bytes.subarray(position, position + into.length)
          into.set(part)
          return part.length
        }),
      size: () => this.#call(() => file.length),
      close: () => this.#call(() => {}),
    }
  }

  async openWrite(path: string, options: { create: boolean; durable: boolean }): Promise<DiskWriter> {
    const file = await this.#call(() => {
      if (!options.create) return this.#file(path)
      if (this.#image.file(path) !== undefined) throw diskError('EEXIST', path)
      if (this.#image.conditions.isFull && this.#image.prng.chance(0.5)) throw this.#noSpace(path)
      return this.#image.create(path)
    })
    return this.#writer(path, file, options.durable)
  }

  rename(from: string, to: string): Promise<void> {
    return this.#call(() => {
      this.#file(from)
      this.#image.rename(from, to)
    })
  }

  remove(path: string): Promise<void> {
    return this.#call(() => {
      this.#file(path)
      this.#image.remove(path)
    })
  }

  syncFolder(folder: string): Promise<void> {
    return this.#call(() => this.#image.syncFolder(folder), this.#syncTime())
  }

  freeSpace(): Promise<number> {
    return this.#call(() => (this.#image.conditions.isFull ? 0 : 2 ** 40))
  }

  #writer(path: string, file: FileImage, durable: boolean): DiskWriter {
    return {
      write: (bytes, position) => this.#write(path, file, bytes, position, durable),
      sync: () => {
        const count = file.pending
        return this.#call(() => this.#sync(path, file, count), this.#syncTime())
      },
      truncate: (length) =>
        this.#call(() => {
          if (this.#image.conditions.isFull && length > file.length) throw this.#noSpace(path)
          file.truncate(length)
        }),
      close: () => this.#call(() => {}),
    }
  }

  #write(
    path: string,
    file: FileImage,
    bytes: Uint8Array,
    position: number,
    durable: boolean,
  ): Promise<void> {
    const platter = this.#image
    // Takes the bytes when the write completes, as a system may do, so that a caller that modifies them earlier fails.
    const flight = { file, position, bytes }
    platter.inFlightWrites.add(flight)
    const time = durable ? this.#syncTime() : undefined
    if (durable) platter.notifyDurableWrite()
    return this.#call(() => {
      platter.inFlightWrites.delete(flight)
      const grows = position + bytes.length > file.length
      if (platter.conditions.isFull && grows) {
        const room = Math.max(0, file.length - position)
        file.write(position, bytes.subarray(0, room))
        throw this.#noSpace(path)
      }
      file.write(position, bytes)
      if (durable) this.#sync(path, file, file.pending)
    }, time)
  }

  #sync(path: string, file: FileImage, count: number): void {
    if (this.#image.conditions.failNextSync) {
      this.#image.conditions.failNextSync = false
      this.#image.faultCounts['failed syncs']++
      file.dropPending()
      throw diskError('EIO', path)
    }
    file.sync(Math.min(count, file.pending))
  }

  #syncTime(): number {
    const { syncMs, stallRate, stallMs } = this.#image.conditions
    const { prng } = this.#image
    const time = prng.exponential(syncMs) + (prng.chance(stallRate) ? prng.exponential(stallMs) : 0)
    if (time >= SLOW_MS) this.#image.faultCounts['slow syncs']++
    return time
  }

  #noSpace(path: string): DiskError {
    this.#image.faultCounts['writes without space']++
    return diskError('ENOSPC', path)
  }

  /** Runs `effect` after a delay, in the system. A paused process gets the result when it resumes. */
  #call<T>(
    effect: () => T,
    ms: number = this.#image.prng.exponential(this.#image.conditions.callMs),
  ): Promise<T> {
    const owner = this.#owner
    return new Promise((resolve, reject) => {
      this.#world.schedule(ms, undefined, 'disk', () => {
        if (!owner.isAlive) return
        const settle = this.#attempt(effect, resolve, reject)
        if (owner.host.isPaused) owner.later(0, 'disk done', settle)
        else settle()
      })
    })
  }

  #attempt<T>(effect: () => T, resolve: (value: T) => void, reject: (error: Error) => void): () => void {
    try {
      const value = effect()
      return () => resolve(value)
    } catch (error) {
      return () => reject(error as Error)
    }
  }

  #file(path: string): FileImage {
    const file = this.#image.file(path)
    if (file === undefined) throw diskError('ENOENT', path)
    return file
  }
}

const diskError = (code: string, path: string): DiskError =>
  new DiskError(`Cannot use ${path}: ${code}`, code, path)
