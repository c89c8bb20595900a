import { DiskError, type Disk, type DiskReader, type DiskSpace, type DiskWriter } from '@zabra/runtime'
import { folderOf, type DiskImage } from './disk-image.ts'
import type { FileImage } from './file-image.ts'
import type { ProcessState, Scheduler } from './types.ts'

/** Duration from which a sync counts as slow, in milliseconds. */
const SLOW_MS = 200
/** A sync takes at most so many times as long as they take on average: the last one of a slow disk ends soon after the fault. */
const LONGEST_SYNC = 4

/** The disk as one process sees it. Calls take simulated time; calls of an ended process have no effect. */
export class SimulatedDisk implements Disk {
  readonly #world: Scheduler
  readonly #owner: ProcessState
  readonly #image: DiskImage

  constructor(world: Scheduler, owner: ProcessState, image: DiskImage) {
    this.#world = world
    this.#owner = owner
    this.#image = image
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

  modifiedAt(path: string): Promise<number> {
    return this.#call(() => this.#file(path).modifiedAt)
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

  createFile(path: string, bytes: Uint8Array): Promise<void> {
    return this.#call(() => {
      if (this.#image.file(path) !== undefined) throw diskError('EEXIST', path)
      if (this.#image.conditions.isFull) throw this.#noSpace(path)
      const file = this.#image.create(path)
      file.write(0, bytes)
      file.modifiedAt = this.#world.now
    })
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

  renameNew(from: string, to: string): Promise<void> {
    return this.#call(() => {
      this.#file(from)
      if (this.#image.file(to) !== undefined) throw diskError('EEXIST', to)
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

  space(): Promise<DiskSpace> {
    return this.#call(() => ({ free: this.#image.conditions.isFull ? 0 : 2 ** 40, size: 2 ** 41 }))
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
          file.modifiedAt = this.#world.now
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
    const image = this.#image
    // Takes the bytes when the write completes, as a system may do, so that a caller that modifies them earlier fails.
    const flight = { file, position, bytes }
    image.inFlightWrites.add(flight)
    const time = durable ? this.#syncTime() : undefined
    if (durable) image.notifyDurableWrite()
    return this.#call(() => {
      image.inFlightWrites.delete(flight)
      file.modifiedAt = this.#world.now
      const grows = position + bytes.length > file.length
      if (image.conditions.isFull && grows) {
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
    const sync = Math.min(prng.exponential(syncMs), LONGEST_SYNC * syncMs)
    const time = sync + (prng.chance(stallRate) ? prng.exponential(stallMs) : 0)
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
        if (owner.host.isPaused) owner.schedule(0, 'disk done', settle)
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
