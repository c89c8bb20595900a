import { DiskError, type Disk, type DiskReader, type DiskSpace, type DiskWriter } from './disk.ts'

/** Bytes that grow. */
class Contents {
  #bytes = new Uint8Array(0)
  #length = 0

  view(): Uint8Array {
    return this.#bytes.subarray(0, this.#length)
  }

  resize(length: number): void {
    if (length > this.#bytes.length) {
      const grown = new Uint8Array(Math.max(length, this.#bytes.length * 2))
      grown.set(this.view())
      this.#bytes = grown
    }
    if (length < this.#length) this.#bytes.fill(0, length, this.#length)
    this.#length = length
  }

  set(bytes: Uint8Array, position: number): void {
    this.#bytes.set(bytes, position)
  }
}

class MemoryFile {
  /** What programs read. */
  readonly #current = new Contents()
  /** What is left after a power cut. */
  readonly #durable = new Contents()
  /** The range that has changed since the last sync: a sync copies no more, however large the file. */
  #changedFrom = Infinity
  #changedTo = 0
  modifiedAt = 0

  get length(): number {
    return this.view().length
  }

  view(): Uint8Array {
    return this.#current.view()
  }

  write(bytes: Uint8Array, position: number): void {
    if (bytes.length === 0) return
    if (position + bytes.length > this.length) this.resize(position + bytes.length)
    this.#current.set(bytes, position)
    this.#note(position, position + bytes.length)
  }

  resize(length: number): void {
    this.#note(Math.min(length, this.length), Math.max(length, this.length))
    this.#current.resize(length)
  }

  sync(): void {
    this.#durable.resize(this.length)
    const to = Math.min(this.#changedTo, this.length)
    if (this.#changedFrom < to)
      this.#durable.set(this.view().subarray(this.#changedFrom, to), this.#changedFrom)
    this.#changedFrom = Infinity
    this.#changedTo = 0
  }

  /** Drops what was not synced. */
  powerCut(): void {
    const durable = this.#durable.view()
    this.resize(durable.length)
    this.write(durable, 0)
    this.sync()
  }

  #note(from: number, to: number): void {
    this.#changedFrom = Math.min(this.#changedFrom, from)
    this.#changedTo = Math.max(this.#changedTo, to)
  }
}

/** An injected failure. Of a failed write, the first `writtenBytes` bytes are written. */
export interface DiskFault {
  readonly code: string
  readonly writtenBytes?: number | undefined
}
export type DiskOperation = 'write' | 'sync' | 'open' | 'truncate' | 'read' | 'rename' | 'remove'

/**
 * A disk in memory, for tests. `powerCut` drops everything that was not synced: contents of files, and names that `syncFolder`
 * did not make durable. `injectFault` is called before each operation.
 */
export class MemoryDisk implements Disk {
  #files = new Map<string, MemoryFile>()
  #durableNames = new Map<string, MemoryFile>()
  readonly #folders = new Set<string>()
  injectFault: ((call: DiskOperation, path: string, length: number) => DiskFault | undefined) | undefined
  /** When set, every write awaits it first. */
  beforeWrite: (() => Promise<void>) | undefined
  /** Number of calls of `write`. */
  writes = 0
  freeBytes = 2 ** 40
  /** Returns the time that changed files get, in milliseconds since 1970. */
  now = (): number => 0

  /** Simulates a power cut. Writers opened before must not be used any more. */
  powerCut(): void {
    this.#files = new Map(this.#durableNames)
    for (const file of new Set(this.#files.values())) file.powerCut()
  }

  /** Replaces a file durably and synchronously, for tests that prepare or damage one. */
  putFile(path: string, bytes: Uint8Array): void {
    const file = new MemoryFile()
    file.write(bytes, 0)
    file.modifiedAt = this.now()
    file.sync()
    this.#files.set(path, file)
    this.#durableNames.set(path, file)
    this.#folders.add(folderOf(path))
  }

  /** Returns an independent copy. */
  clone(): MemoryDisk {
    const copy = new MemoryDisk()
    for (const [path, file] of this.#files) copy.putFile(path, file.view())
    for (const folder of this.#folders) copy.#folders.add(folder)
    return copy
  }

  paths(): string[] {
    return [...this.#files.keys()]
  }

  async list(folder: string): Promise<string[]> {
    const prefix = `${folder}/`
    const names = new Set<string>()
    for (const path of [...this.#files.keys(), ...this.#folders]) {
      if (path.startsWith(prefix)) names.add(path.slice(prefix.length).split('/', 1)[0]!)
    }
    if (names.size === 0 && !this.#folders.has(folder)) throw failure('ENOENT', folder)
    return [...names]
  }

  async exists(path: string): Promise<boolean> {
    return this.#files.has(path) || this.#folders.has(path)
  }

  async makeFolder(path: string): Promise<void> {
    for (let at = path; at !== ''; at = folderOf(at)) this.#folders.add(at)
  }

  async size(path: string): Promise<number> {
    return this.#file(path).length
  }

  async modifiedAt(path: string): Promise<number> {
    return this.#file(path).modifiedAt
  }

  async readFile(path: string): Promise<Uint8Array> {
    this.#failIfInjected('read', path, 0)
    return this.#file(path).view().slice()
  }

  async replaceFile(path: string, bytes: Uint8Array): Promise<void> {
    this.#failIfInjected('write', path, bytes.length)
    this.putFile(path, bytes)
  }

  async createFile(path: string, bytes: Uint8Array): Promise<void> {
    if (this.beforeWrite) await this.beforeWrite()
    this.#failIfInjected('write', path, bytes.length)
    if (this.#files.has(path)) throw failure('EEXIST', path)
    const file = new MemoryFile()
    file.write(bytes, 0)
    file.modifiedAt = this.now()
    this.#files.set(path, file)
  }

  async openRead(path: string): Promise<DiskReader> {
    const file = this.#file(path)
    return {
      read: async (into, position) => {
        this.#failIfInjected('read', path, into.length)
        const part = file.view().subarray(position, position + into.length)
        into.set(part)
        return part.length
      },
      size: async () => file.length,
      close: async () => {},
    }
  }

  async openWrite(path: string, options: { create: boolean; durable: boolean }): Promise<DiskWriter> {
    this.#failIfInjected('open', path, 0)
    if (options.create) {
      if (this.#files.has(path)) throw failure('EEXIST', path)
      this.#files.set(path, new MemoryFile())
    }
    const file = this.#file(path)
    return {
      write: async (bytes, position) => {
        this.writes++
        if (this.beforeWrite) await this.beforeWrite()
        const fault = this.injectFault?.('write', path, bytes.length)
        const part = bytes.subarray(0, fault ? (fault.writtenBytes ?? 0) : bytes.length)
        file.modifiedAt = this.now()
        file.write(part, position)
        if (fault) throw failure(fault.code, path)
        if (options.durable) file.sync()
      },
      sync: async () => {
        this.#failIfInjected('sync', path, 0)
        file.sync()
      },
      truncate: async (length) => {
        this.#failIfInjected('truncate', path, length)
        file.resize(length)
        file.modifiedAt = this.now()
      },
      close: async () => {},
    }
  }

  async rename(from: string, to: string): Promise<void> {
    this.#failIfInjected('rename', from, 0)
    const file = this.#file(from)
    this.#files.delete(from)
    this.#files.set(to, file)
  }

  async renameNew(from: string, to: string): Promise<void> {
    if (this.#files.has(to)) throw failure('EEXIST', to)
    await this.rename(from, to)
  }

  async remove(path: string): Promise<void> {
    this.#failIfInjected('remove', path, 0)
    this.#file(path)
    this.#files.delete(path)
  }

  async syncFolder(folder: string): Promise<void> {
    this.#failIfInjected('sync', folder, 0)
    for (const path of this.#durableNames.keys())
      if (folderOf(path) === folder) this.#durableNames.delete(path)
    for (const [path, file] of this.#files) if (folderOf(path) === folder) this.#durableNames.set(path, file)
  }

  async space(): Promise<DiskSpace> {
    return { free: this.freeBytes, size: 2 ** 41 }
  }

  #file(path: string): MemoryFile {
    const file = this.#files.get(path)
    if (!file) throw failure('ENOENT', path)
    return file
  }

  #failIfInjected(call: DiskOperation, path: string, length: number): void {
    const fault = this.injectFault?.(call, path, length)
    if (fault) throw failure(fault.code, path)
  }
}

const folderOf = (path: string): string => path.slice(0, Math.max(0, path.lastIndexOf('/')))
const failure = (code: string, path: string): DiskError => new DiskError(`${code} on ${path}`, code, path)
