import type { Cancel, Clock, Disk, DiskWriter, Logger } from '@zabra/runtime'

export interface AuditFileOptions {
  readonly path: string
  /** The file is renamed before it would become longer. */
  readonly maxBytes: number
  /** How many renamed files are kept. */
  readonly maxFiles: number
  /** Whether each write is followed by a sync. */
  readonly fsync: boolean
  /** Returns a line that says how many lines are missing before it. */
  readonly lostLine: (count: number) => string
}

/** Bytes that may wait for the disk. Lines beyond are counted and lost. */
const MAX_WAITING = 4 * 1024 * 1024
/** Bytes of one write, unless a line is longer. */
const WRITE_BYTES = 256 * 1024
/** Characters of lines that are encoded together: lines that wait as text are copied by the garbage collector. */
const ENCODE_CHARS = 8 * 1024
/** UTF-8 has no more bytes for a UTF-16 unit. */
const MAX_BYTES_PER_CHAR = 3
/** Time for which lines are collected before they are written, in milliseconds: a write costs as much as ten lines. */
const COLLECT_MS = 10
/** Time until a failed write is tried again, in milliseconds. */
const RETRY_MS = 1000
const NEWLINE = 10

/** Lines of one write. */
interface Batch {
  readonly bytes: Uint8Array
  length: number
  lines: number
  chars: number
}

const encoder = new TextEncoder()

/** Appends lines to a file without ever making the caller wait. Rotates the file by size, and when it was renamed from outside. */
export class AuditFile {
  readonly #options: AuditFileOptions
  readonly #disk: Disk
  readonly #clock: Clock
  readonly #logger: Logger
  #writer: DiskWriter | undefined
  /** The length of the file. */
  #position = 0
  /** The lines that wait, the newest as text. */
  readonly #batches: Batch[] = []
  #text = ''
  #textLines = 0
  /** The bytes of the last write, for the next batch. */
  #free: Uint8Array | undefined
  /** Characters of all lines that wait. */
  #waiting = 0
  #lost = 0
  #isFailing = false
  #mustReopen = false
  #isWriting = false
  #isClosing = false
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
    const { path } = this.#options
    if (!(await this.#disk.exists(path))) {
      this.#writer = await this.#disk.openWrite(path, { create: true, durable: false })
      this.#position = 0
      return
    }
    this.#position = await this.#disk.size(path)
    const isWhole = this.#position === 0 || (await this.#lastByte()) === NEWLINE
    this.#writer = await this.#disk.openWrite(path, { create: false, durable: false })
    // The last run may have ended in the middle of a line.
    if (!isWhole) {
      await this.#writer.write(Uint8Array.of(NEWLINE), this.#position)
      this.#position++
    }
  }

  /** Adds a line, without its newline. Returns false when the line is lost. */
  append(line: string): boolean {
    if (this.#waiting >= MAX_WAITING) {
      this.#lost++
      return false
    }
    if (this.#lost > 0 && !this.#isFailing) this.#push(this.#options.lostLine(this.#takeLost()))
    this.#push(line)
    this.#collect()
    return true
  }

  /** Opens the file again before the next line, since it may have been renamed. */
  reopen(): void {
    this.#mustReopen = true
  }

  /** Writes what waits, and closes the file. What cannot be written now is lost. */
  async close(): Promise<void> {
    this.#isClosing = true
    this.#stopWaiting()
    this.#start()
    await this.#written
    this.#stopWaiting()
    if (this.#waiting > 0)
      this.#logger.error(
        { path: this.#options.path, lost: this.#waitingLines + this.#lost },
        'Lost audit lines',
      )
    await this.#closeWriter()
  }

  #push(line: string): void {
    this.#text += `${line}\n`
    this.#textLines++
    this.#waiting += line.length + 1
    if (this.#text.length >= ENCODE_CHARS) this.#encode()
  }

  /** Encodes the newest lines into a batch with room for them. */
  #encode(): void {
    if (this.#textLines === 0) return
    const { length: chars } = this.#text
    const room = chars * MAX_BYTES_PER_CHAR
    let batch = this.#batches.at(-1)
    // The first batch may be written now.
    if (
      batch === undefined ||
      batch.bytes.length - batch.length < room ||
      (this.#isWriting && this.#batches.length === 1)
    ) {
      const bytes =
        this.#free !== undefined && this.#free.length >= room
          ? this.#free
          : new Uint8Array(Math.max(WRITE_BYTES, room))
      this.#free = undefined
      batch = { bytes, length: 0, lines: 0, chars: 0 }
      this.#batches.push(batch)
    }
    batch.length += encoder.encodeInto(this.#text, batch.bytes.subarray(batch.length)).written
    batch.lines += this.#textLines
    batch.chars += chars
    this.#text = ''
    this.#textLines = 0
  }

  get #waitingLines(): number {
    return this.#batches.reduce((sum, { lines }) => sum + lines, this.#textLines)
  }

  #takeLost(): number {
    const lost = this.#lost
    this.#lost = 0
    return lost
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
    this.#encode()
    const batch = this.#batches[0]!
    const bytes = batch.bytes.subarray(0, batch.length)
    try {
      await this.#prepareFile(bytes.length)
      await this.#writer!.write(bytes, this.#position)
      if (this.#options.fsync) await this.#writer!.sync()
    } catch (error) {
      this.#fail(error)
      return false
    }
    this.#position += bytes.length
    this.#batches.shift()
    this.#waiting -= batch.chars
    if (batch.bytes.length === WRITE_BYTES) this.#free = batch.bytes
    this.#recover()
    return true
  }

  async #prepareFile(length: number): Promise<void> {
    if (this.#mustReopen) {
      await this.#closeWriter()
      this.#mustReopen = false
    }
    if (this.#writer === undefined) await this.open()
    if (this.#position === 0 || this.#position + length <= this.#options.maxBytes) return
    await this.#closeWriter()
    await this.#rotate()
    await this.open()
  }

  /** Renames the file to `.1`, the former `.1` to `.2` and so on; the last one is replaced. */
  async #rotate(): Promise<void> {
    const { path, maxFiles } = this.#options
    const nameOf = (index: number): string => (index === 0 ? path : `${path}.${index}`)
    if (maxFiles === 0) return this.#disk.remove(path)
    for (let index = maxFiles - 1; index >= 0; index--)
      if (await this.#disk.exists(nameOf(index))) await this.#disk.rename(nameOf(index), nameOf(index + 1))
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
    if (this.#lost > 0) this.#push(this.#options.lostLine(this.#takeLost()))
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
