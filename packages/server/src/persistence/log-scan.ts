import { adler32, formatZxid } from '@zabra/protocol'
import type { Disk } from '@zabra/runtime'
import type { Zxid } from '../core/types.ts'
import { ADOPT_ADVICE, DamageError } from './errors.ts'
import {
  ENTRY_END,
  ENTRY_HEAD_BYTES,
  LOG_HEADER_BYTES,
  LOG_MAGIC,
  MAX_ENTRY_BYTES,
  TXN_HEADER_BYTES,
} from './log-format.ts'
import { corruptionIn, findWholeEntry, lengthWithoutTrailingZeros } from './log-tail.ts'
import type { Pause } from './pause.ts'
import { ReadAheadFile } from './read-ahead.ts'

/** An entry of a log file. `bytes` from `start` to `end` is its payload: a view that is valid until the next entry. */
export interface RawEntry {
  readonly zxid: Zxid
  readonly offset: number
  readonly checksum: number
  readonly bytes: Uint8Array
  readonly start: number
  readonly end: number
}

/** How a scan ended. */
export interface ScanEnd {
  /** Offset at which the last whole entry ends. */
  readonly end: number
  readonly size: number
  readonly entries: number
  /** Whether a write that a crash cut short begins at `end`; nothing valid follows it. */
  readonly isTorn: boolean
  /** Offset of the end mark that the last entry lacks; the entry is whole otherwise. */
  readonly missingEndMark: number | undefined
}

/** Where a scan continues: the offset of an entry, and the last transaction before it. */
export interface ScanStart {
  readonly offset: number
  readonly last: Zxid
}

/** The advice in an error about a corrupt log. */
const ACTION =
  'Restore this file from a backup or from another copy; to drop everything from there on, move it and all later log files away'

/** The advice when the bytes may also come from a torn write. */
const TORN_ACTION = `${ACTION}. If the machine lost power while this was the newest log, nothing from there on was acknowledged, and \`zabra log --repair --force\` cuts it off and keeps a copy; or, ${ADOPT_ADVICE}`

/**
 * Reads one log file and calls `visit` for each entry; `visit` returns false to stop early. Distinguishes a clean end from a
 * write that a crash cut short (disk-format 4.5) and rejects with a `DamageError` for everything else, because entries that were
 * acknowledged must never be skipped silently. `from` continues an earlier scan; `pause` is called after each entry.
 */
export async function scanLog(
  disk: Pick<Disk, 'openRead'>,
  path: string,
  visit: (entry: RawEntry) => boolean | void,
  from?: ScanStart,
  pause?: Pause,
): Promise<ScanEnd> {
  const reader = await disk.openRead(path)
  const file = new ReadAheadFile(reader)
  try {
    return await new LogScan(file, path, await reader.size(), from).run(visit, pause)
  } finally {
    await file.drain()
    await reader.close()
  }
}

class LogScan {
  readonly #file: ReadAheadFile
  readonly #path: string
  readonly #size: number
  readonly #from: ScanStart | undefined
  #window: Uint8Array = new Uint8Array(0)
  #view = new DataView(this.#window.buffer)
  /** Offset in the file of the first byte of the window. */
  #base = 0
  #last: Zxid

  constructor(file: ReadAheadFile, path: string, size: number, from: ScanStart | undefined) {
    this.#file = file
    this.#path = path
    this.#size = size
    this.#from = from
    this.#last = from?.last ?? -1
  }

  async run(visit: (entry: RawEntry) => boolean | void, pause?: Pause): Promise<ScanEnd> {
    if (this.#from === undefined && !(await this.#header())) return this.#ended(0, 0, this.#size > 0)
    let at = this.#from?.offset ?? LOG_HEADER_BYTES
    let entries = 0
    for (;;) {
      if (at + ENTRY_HEAD_BYTES > this.#size) return this.#stopped(at, entries)
      // An await for bytes that are in the window would cost as much as the checksum.
      if (!this.#isInWindow(at, ENTRY_HEAD_BYTES)) await this.#fetch(at, ENTRY_HEAD_BYTES)
      const length = this.#view.getInt32(at - this.#base + 8)
      const end = at + ENTRY_HEAD_BYTES + length
      if (length <= 0 || length > MAX_ENTRY_BYTES || end > this.#size) return this.#stopped(at, entries)
      const wanted = Math.min(end + 1, this.#size) - at
      if (!this.#isInWindow(at, wanted)) await this.#fetch(at, wanted)
      const start = at - this.#base + ENTRY_HEAD_BYTES
      const checksum = this.#view.getUint32(at - this.#base + 4)
      const sound =
        this.#view.getUint32(at - this.#base) === 0 &&
        adler32(this.#window, start, start + length, 1, this.#view) === checksum
      if (!sound) return this.#stopped(at, entries)
      const zxid = this.#zxid(start, length, at)
      const marked = this.#window[end - this.#base] === ENTRY_END
      if (!marked) {
        // The checksum covers the payload; only the mark may be missing, and only at the end of the file.
        const rest = await this.#readRest(end)
        if (rest.length > 0)
          throw this.#damage(`Expected the end mark 0x42 of an entry, got 0x${hex(rest[0])}`, end)
      }
      this.#last = Math.max(this.#last, zxid)
      entries++
      const entry = { zxid, offset: at, checksum, bytes: this.#window, start, end: start + length }
      if (visit(entry) === false) return this.#ended(end + 1, entries, false)
      const pausing = pause?.()
      if (pausing !== undefined) await pausing
      if (!marked) return { ...this.#ended(end, entries, false), missingEndMark: end }
      at = end + 1
    }
  }

  /** Resolves to false for a file that a crash left without a whole header. */
  async #header(): Promise<boolean> {
    if (this.#size >= LOG_HEADER_BYTES) {
      await this.#fetch(0, LOG_HEADER_BYTES)
      if (this.#view.getInt32(0) === LOG_MAGIC && this.#view.getInt32(4) === 2) return true
    }
    const bytes = await this.#readRest(0)
    const start = new Uint8Array([0x5a, 0x4b, 0x4c, 0x47, 0, 0, 0, 2])
    // A crash may also have cut the file after these bytes: the rest of the header is an id with any value.
    if (bytes.every((byte, i) => i >= start.length || byte === start[i])) return false
    throw this.#damage('Expected the header of a transaction log ("ZKLG", version 2)', 0)
  }

  #zxid(start: number, length: number, at: number): Zxid {
    if (length < TXN_HEADER_BYTES)
      throw this.#damage(`Expected an entry of at least ${TXN_HEADER_BYTES} bytes, got ${length}`, at)
    const zxid = this.#view.getInt32(start + 12) * 0x1_0000_0000 + this.#view.getUint32(start + 16)
    if (!Number.isSafeInteger(zxid) || zxid < 0)
      throw this.#damage('Expected a zxid with an epoch below 2^21', at)
    return zxid
  }

  /** Decides what it means that no whole entry begins at `at`: a clean end, a torn write, or corruption. */
  async #stopped(at: number, entries: number): Promise<ScanEnd> {
    const rest = await this.#readRest(at)
    if (rest.length === 0) return this.#ended(at, entries, false)
    const next = findWholeEntry(rest, this.#last)
    if (next >= 0) {
      // A power cut that tore a write of many entries leaves the same bytes. The format does not record where a write ended, so
      // the entries after it may have been acknowledged, and only an operator who knows how the server ended can decide.
      throw this.#damage(
        `Expected an entry, got bytes that are none, though a whole entry follows at byte ${at + next},`,
        at,
        TORN_ACTION,
      )
    }
    const corruption = corruptionIn(rest, at)
    if (corruption !== undefined) throw this.#damage(corruption, at)
    return this.#ended(at, entries, true)
  }

  #ended(end: number, entries: number, torn: boolean): ScanEnd {
    return { end, size: this.#size, entries, isTorn: torn, missingEndMark: undefined }
  }

  #damage(what: string, at: number, action = ACTION): DamageError {
    const last = this.#last < 0 ? 'no transaction is' : `transactions up to 0x${formatZxid(this.#last)} are`
    return new DamageError(what, this.#path, at, `In this file ${last} sound before it. ${action}.`)
  }

  /** Reads everything from an offset on, without the zeros at its end. */
  async #readRest(at: number): Promise<Uint8Array> {
    const kept: { readonly from: number; readonly bytes: Uint8Array }[] = []
    await this.#file.forEachChunk(at, this.#size, (bytes, from) => {
      const used = lengthWithoutTrailingZeros(bytes, bytes.length)
      if (used > 0) kept.push({ from: from - at, bytes: bytes.slice(0, used) })
    })
    const last = kept.at(-1)
    const rest = new Uint8Array(last === undefined ? 0 : last.from + last.bytes.length)
    for (const { from, bytes } of kept) rest.set(bytes, from)
    return rest
  }

  /** Returns whether the window, which never begins behind `at`, has these bytes. */
  #isInWindow(at: number, length: number): boolean {
    return at + length <= this.#base + this.#window.length
  }

  async #fetch(at: number, length: number): Promise<void> {
    const tail = this.#window.subarray(at - this.#base)
    this.#window = await this.#file.readFrom(at, length, tail, this.#size)
    const read = this.#window.length
    this.#view = new DataView(this.#window.buffer, this.#window.byteOffset, this.#window.byteLength)
    this.#base = at
    if (read < length)
      throw this.#damage(
        `Expected ${length} bytes, got ${read}: the file became shorter while it was read,`,
        at,
      )
  }
}

const hex = (byte: number | undefined): string => (byte ?? 0).toString(16).padStart(2, '0')
