import { DiskError, type Cancel, type Clock, type Disk, type DiskWriter, type Logger } from '@zabra/runtime'

export interface AuditFileOptions {
  readonly path: string
  /** The file is renamed before it would become longer. */
  readonly maxBytes: number
  /** How many renamed files are kept. */
  readonly maxFiles: number
  /** Whether each write is followed by a sync. */
  readonly fsync: boolean
  /** Links the lines by hashes, which have to be JSON then; undefined for no links. */
  readonly chain?: AuditChain | undefined
  /** Returns a line that says how many lines are missing before it. */
  readonly lostLine: (count: number) => string
}
import { LINK_BYTES } from '../core/audit-chain.ts'
import type { AuditChain } from './audit-chain.ts'

/** Bytes that may wait for the disk. Lines beyond are counted and lost. */
const MAX_WAITING = 4 * 1024 * 1024
/** Bytes of one write, unless a line is longer. */
const WRITE_BYTES = 256 * 1024
/** Buffers that are kept for reuse: what comes in some milliseconds of a busy server. A new one is filled with zeros first. */
const MAX_FREE = 8
/** UTF-8 has no more bytes for a UTF-16 unit. */
const MAX_BYTES_PER_CHAR = 3
/** Characters of a line from which on its length in bytes is determined first, so that buffers are not left half empty. */
const LONG_CHARS = 1024
/** Time for which lines are collected before they are written, in milliseconds: a write costs as much as ten lines. */
const COLLECT_MS = 10
/** Time until a failed write is tried again, in milliseconds. */
const RETRY_MS = 1000
/** Time that a stop waits for the disk, in milliseconds. */
const CLOSE_MS = 3000
const NEWLINE = 10

/** Lines of one write. */
export interface LineBuffer {
  readonly bytes: Uint8Array
  /** A view of the same bytes. */
  readonly view: DataView
  length: number
  lines: number
}

const encoder = new TextEncoder()

function newBuffer(size: number): LineBuffer {
  const bytes = new Uint8Array(size)
  return { bytes, view: new DataView(bytes.buffer), length: 0, lines: 0 }
}

/** Appends lines to a file without ever making the caller wait. Rotates the file by size, and when it was renamed from outside. */
export class AuditFile {
  readonly #options: AuditFileOptions
  readonly #disk: Disk
  readonly #clock: Clock
  readonly #logger: Logger
  #writer: DiskWriter | undefined
  /** The length of the file. */
  #position = 0
  /** The lines that wait, the oldest first. */
  readonly #buffers: LineBuffer[] = []
  /** The buffer to which lines are added; undefined while it is being written. */
  #newest: LineBuffer | undefined
  readonly #free: LineBuffer[] = []
  /** Bytes of all lines that wait. */
  #waiting = 0
  #lost = 0
  #isFailing = false
  #mustReopen = false
  #isWriting = false
  #isClosing = false
  /** Whether the file ends without a newline. */
  #isCut = false
  /** Resolves when nothing is being written. */
  #written: Promise<void> = Promise.resolve()
  /** Set while lines are collected, or a failed write waits for its retry. */
  #cancelWait: Cancel | undefined

  constructor(
    options: AuditFileOptions,
    { disk, clock, logger }: { readonly disk: Disk; readonly clock: Clock; readonly logger: Logger },
  ) {
    this.#options = options
    this.#disk = disk
    this.#clock = clock
    this.#logger = logger
  }

  /** Whether the last write has failed, or so much waits for the disk that lines are lost. */
  get isFailing(): boolean {
    return this.#isFailing || this.#waiting >= MAX_WAITING
  }

  /** Opens the file. Rejects with a `DiskError` when it cannot be written. */
  async open(): Promise<void> {
    const { path, chain } = this.#options
    await chain?.resume(this.#disk, path, `${path}.1`)
    if (!(await this.#disk.exists(path))) {
      this.#writer = await this.#disk.openWrite(path, { create: true, durable: false })
      this.#position = 0
      this.#isCut = false
      return
    }
    this.#position = await this.#disk.size(path)
    const isWhole = this.#position === 0 || (await this.#lastByte()) === NEWLINE
    this.#writer = await this.#disk.openWrite(path, { create: false, durable: false })
    this.#isCut = !isWhole
    // The last run may have ended in the middle of a line. A chain closes it together with the next line.
    if (!isWhole && chain === undefined) {
      await this.#writer.write(Uint8Array.of(NEWLINE), this.#position)
      this.#position++
    }
  }

  /**
   * Rejects with a `DiskError` where `open` would, and changes nothing: of a file that is not there it lists the folder, which does not say
   * whether a file may be created in it.
   */
  static async check(disk: Disk, path: string): Promise<void> {
    if (await disk.exists(path)) await (await disk.openWrite(path, { create: false, durable: false })).close()
    else await disk.list(/^.*(?=\/)/s.exec(path)?.[0] || '/')
  }

  /** Adds a line, without its newline. Returns false when the line is lost. */
  append(line: string): boolean {
    if (!this.#hasRoom()) return false
    this.#push(line)
    return true
  }

  /**
   * Returns a buffer with room for a line of at most so many bytes, which the caller puts at its `length` before it calls `added`.
   * Returns undefined when the line is lost.
   */
  reserve(bytes: number): LineBuffer | undefined {
    return this.#hasRoom() ? this.#bufferFor(bytes) : undefined
  }

  /** Ends a line, its newline included, before `end` of the buffer. */
  added(buffer: LineBuffer, end: number): void {
    this.#waiting += end - buffer.length
    buffer.length = end
    buffer.lines++
    if (this.#cancelWait === undefined) this.#collect()
  }

  /** Opens the file again before the next line, since it may have been renamed. */
  reopen(): void {
    this.#mustReopen = true
  }

  /** Writes what waits, and closes the file. What cannot be written now, or within seconds, is lost. */
  async close(): Promise<void> {
    this.#isClosing = true
    this.#stopWaiting()
    this.#start()
    const finished = this.#finish()
    await new Promise<void>((resolve, reject) => {
      const cancel = this.#clock.after(CLOSE_MS, 'audit file at a stop', () => {
        this.#logLoss()
        resolve()
      })
      finished.finally(cancel).then(resolve, reject)
    })
  }

  /** Closes the file once all is written, or cannot be. */
  async #finish(): Promise<void> {
    await this.#written
    this.#stopWaiting()
    this.#logLoss()
    await this.#closeWriter()
    this.#noteHead()
  }

  #logLoss(): void {
    if (this.#waiting > 0)
      this.#logger.error(
        { path: this.#options.path, lost: this.#waitingLines + this.#lost },
        'Lost audit lines',
      )
  }

  /** Returns whether another line may wait, and adds what is to be said about lost ones. Counts the line as lost otherwise. */
  #hasRoom(): boolean {
    if (this.#waiting >= MAX_WAITING) {
      this.#lost++
      return false
    }
    if (this.#lost > 0 && !this.#isFailing) this.#pushLost()
    return true
  }

  #push(line: string): void {
    const encoded = line.length < LONG_CHARS ? undefined : encoder.encode(line)
    const buffer = this.#bufferFor((encoded?.length ?? line.length * MAX_BYTES_PER_CHAR) + 1)
    const { bytes, length } = buffer
    if (encoded !== undefined) bytes.set(encoded, length)
    const end = length + (encoded?.length ?? encoder.encodeInto(line, bytes.subarray(length)).written)
    bytes[end] = NEWLINE
    this.added(buffer, end + 1)
  }

  #pushLost(): void {
    const lost = this.#lost
    this.#lost = 0
    this.#push(this.#options.lostLine(lost))
  }

  /** Returns the newest buffer if it has room, else a new one. */
  #bufferFor(room: number): LineBuffer {
    const newest = this.#newest
    if (newest !== undefined && newest.bytes.length - newest.length >= room) return newest
    const free = room <= WRITE_BYTES ? this.#free.pop() : undefined
    const buffer = (this.#newest = free ?? newBuffer(Math.max(WRITE_BYTES, room)))
    buffer.length = buffer.lines = 0
    this.#buffers.push(buffer)
    return buffer
  }

  get #waitingLines(): number {
    return this.#buffers.reduce((sum, { lines }) => sum + lines, 0)
  }

  /** Writes the lines that wait a little later, unless that is under way. */
  #collect(): void {
    if (this.#waiting === 0 || this.#isWriting || this.#cancelWait !== undefined) return
    this.#writeAfter(COLLECT_MS, 'collected audit lines')
  }

  #writeAfter(ms: number, what: string): void {
    this.#cancelWait = this.#clock.after(ms, what, () => {
      this.#cancelWait = undefined
      this.#start()
    })
  }

  #start(): void {
    if (this.#isWriting) return
    this.#isWriting = true
    this.#written = this.#write()
  }

  async #write(): Promise<void> {
    while (this.#waiting > 0 && (await this.#writeSome()))
      if (!this.#isClosing && this.#waiting < WRITE_BYTES) break
    this.#isWriting = false
    this.#collect()
  }

  /** Writes the oldest lines. Resolves to whether they are written. */
  async #writeSome(): Promise<boolean> {
    const { chain, fsync } = this.#options
    const buffer = this.#buffers[0]!
    if (buffer === this.#newest) this.#newest = undefined
    const bytes = buffer.bytes.subarray(0, buffer.length)
    try {
      await this.#prepareFile(bytes.length + (chain === undefined ? 0 : buffer.lines * LINK_BYTES))
      const linked = chain === undefined ? bytes : chain.link(bytes, buffer.lines, this.#isCut)
      await this.#writer!.write(linked, this.#position)
      if (fsync) await this.#writer!.sync()
      this.#position += linked.length
      chain?.written()
      this.#isCut = false
    } catch (error) {
      await this.#undoWrite()
      this.#fail(error)
      return false
    }
    this.#buffers.shift()
    this.#waiting -= bytes.length
    if (buffer.bytes.length === WRITE_BYTES && this.#free.length < MAX_FREE) this.#free.push(buffer)
    this.#recover()
    return true
  }

  /** Takes back what a failed write may have left in the file, if the disk lets it: its lines are written again. */
  async #undoWrite(): Promise<void> {
    try {
      await this.#writer?.truncate(this.#position)
      this.#options.chain?.undone()
    } catch {
      // The lines that are there are found when the file is opened again. The failure itself is logged.
    }
  }

  async #prepareFile(length: number): Promise<void> {
    if (this.#mustReopen) {
      await this.#closeWriter()
      this.#mustReopen = false
    }
    if (this.#writer === undefined) await this.open()
    if (this.#position === 0 || this.#position + length <= this.#options.maxBytes) return
    await this.#closeWriter()
    this.#noteHead()
    await this.#rotate()
    await this.open()
  }

  /**
   * Renames the file to `.1`, the former `.1` to `.2` and so on, up to the first free name: a rename that failed has left one. Without any
   * the last file is removed first. A file system such as ext4 writes all of a file to the disk that replaces another one, and the syncs
   * of the transaction log wait for that.
   */
  async #rotate(): Promise<void> {
    const { path, maxFiles } = this.#options
    const nameOf = (index: number): string => (index === 0 ? path : `${path}.${index}`)
    let free = Math.min(1, maxFiles)
    while (free < maxFiles && (await this.#disk.exists(nameOf(free)))) free++
    if (free === maxFiles) await this.#disk.remove(nameOf(free)).catch(ignoreAbsent)
    for (let index = free - 1; index >= 0; index--)
      await this.#disk.rename(nameOf(index), nameOf(index + 1)).catch(ignoreAbsent)
  }

  #stopWaiting(): void {
    this.#cancelWait?.()
    this.#cancelWait = undefined
  }

  #fail(error: unknown): void {
    if (!this.#isFailing)
      this.#logger.error(
        { path: this.#options.path, error: String(error) },
        'The audit file cannot be written; its lines wait in memory, up to 4 MiB',
      )
    this.#isFailing = true
    // What a failed write has left in the file is unknown: the next attempt begins a line of its own.
    this.#mustReopen = true
    this.#writeAfter(RETRY_MS, 'retry of the audit file')
  }

  #recover(): void {
    if (this.#isFailing)
      this.#logger.warn({ path: this.#options.path, lost: this.#lost }, 'The audit file can be written again')
    this.#isFailing = false
    if (this.#lost > 0) this.#pushLost()
  }

  /** Logs how far the chain has got, so that a log that is kept elsewhere has its head too. */
  #noteHead(): void {
    const { path, chain } = this.#options
    if (chain !== undefined)
      this.#logger.info({ path, head: chain.head }, 'The audit file ends with this line')
  }

  async #closeWriter(): Promise<void> {
    const writer = this.#writer
    this.#writer = undefined
    await writer?.close().catch((error: unknown) => {
      this.#logger.warn({ error: String(error) }, 'The audit file could not be closed')
    })
  }

  async #lastByte(): Promise<number> {
    const reader = await this.#disk.openRead(this.#options.path)
    const byte = new Uint8Array(1)
    try {
      await reader.read(byte, this.#position - 1)
      return byte[0]!
    } finally {
      await reader.close()
    }
  }
}

function ignoreAbsent(error: unknown): void {
  if (!(error instanceof DiskError && error.code === 'ENOENT')) throw error
}
