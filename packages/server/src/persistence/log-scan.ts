import { adler32, formatZxid } from '@zabra/protocol'
import type { Disk } from '@zabra/runtime'
import type { Zxid } from '../core/types.ts'
import { DamageError } from './errors.ts'
import { ENTRY_END, ENTRY_HEAD_BYTES, LOG_HEADER_BYTES, LOG_MAGIC, MAX_ENTRY_BYTES } from './log-format.ts'
import { ReadAheadFile } from './read-ahead.ts'
import { lengthWithoutTrailingZeros } from './trailing-zeros.ts'

/** One entry as it lies in a file. `bytes` from `start` to `end` is its payload: a view that the next entry overwrites. */
export interface RawEntry {
  readonly zxid: Zxid
  readonly offset: number
  readonly checksum: number
  readonly bytes: Uint8Array
  readonly start: number
  readonly end: number
}

/** How a file ended. */
export interface ScanEnd {
  /** Where the last whole entry ends. */
  readonly end: number
  readonly size: number
  readonly entries: number
  /** A write that a crash cut short begins at `end`; nothing valid follows it. */
  readonly isTorn: boolean
  /** The last entry is whole but lacks its end mark, which belongs at this offset. */
  readonly missingEndMark: number | undefined
}

/** Where an entry begins, and the last transaction before it. */
export interface ScanStart {
  readonly offset: number
  readonly last: Zxid
}

const SECTOR = 512
const ACTION =
  'Restore this file from a backup or from another copy; to give up everything from there on, move it and all later log files away'

const TORN_ACTION = `${ACTION}. If the machine lost power while this was the newest log, nothing from there on was acknowledged, and \`zabra log --repair --force\` cuts it off and keeps a copy; a member of an ensemble whose other members are well may rather set the directory aside and get everything from its leader`

/**
 * Reads one log file and calls `visit` for each entry. Tells a clean end from a write that a crash cut short; throws a
 * `DamageError` for all else, since bytes that were once acknowledged must never be left out silently. `visit` returns
 * false to stop early. `from` goes on where an earlier scan was stopped.
 */
export async function scanLog(
  disk: Disk,
  path: string,
  visit: (entry: RawEntry) => boolean | void,
  from?: ScanStart,
): Promise<ScanEnd> {
  const reader = await disk.openRead(path)
  const file = new ReadAheadFile(reader)
  try {
    return await new LogScan(file, path, await reader.size()).run(visit, from)
  } finally {
    await file.drain()
    await reader.close()
  }
}

class LogScan {
  readonly #file: ReadAheadFile
  readonly #path: string
  readonly #size: number
  #window: Uint8Array = new Uint8Array(0)
  #view = new DataView(this.#window.buffer)
  /** Offset in the file of the window's first byte. */
  #base = 0
  #last: Zxid = -1

  constructor(file: ReadAheadFile, path: string, size: number) {
    this.#file = file
    this.#path = path
    this.#size = size
  }

  async run(visit: (entry: RawEntry) => boolean | void, from?: ScanStart): Promise<ScanEnd> {
    if (from === undefined && !(await this.#header())) return this.#ended(0, 0, this.#size > 0)
    let at = from?.offset ?? LOG_HEADER_BYTES
    this.#last = from?.last ?? -1
    let entries = 0
    for (;;) {
      if (at + ENTRY_HEAD_BYTES > this.#size) return this.#stopped(at, entries)
      // A wait for what is at hand would cost as much as the checksum.
      if (!this.#has(at, ENTRY_HEAD_BYTES)) await this.#fetch(at, ENTRY_HEAD_BYTES)
      const length = this.#view.getInt32(at - this.#base + 8)
      const end = at + ENTRY_HEAD_BYTES + length
      if (length <= 0 || length > MAX_ENTRY_BYTES || end > this.#size) return this.#stopped(at, entries)
      const wanted = Math.min(end + 1, this.#size) - at
      if (!this.#has(at, wanted)) await this.#fetch(at, wanted)
      const start = at - this.#base + ENTRY_HEAD_BYTES
      const checksum = this.#view.getUint32(at - this.#base + 4)
      const sound =
        this.#view.getUint32(at - this.#base) === 0 &&
        adler32(this.#window, start, start + length, 1, this.#view) === checksum
      if (!sound) return this.#stopped(at, entries)
      const zxid = this.#zxid(start, length, at)
      const marked = end < this.#size && this.#window[end - this.#base] === ENTRY_END
      if (!marked) {
        // The payload vouches for itself; only the mark may be missing, and only at the very end.
        const rest = await this.#rest(end)
        if (rest.length > 0)
          throw this.#damage(`Expected the end mark 0x42 of an entry, got 0x${hex(rest[0])}`, end)
      }
      this.#last = Math.max(this.#last, zxid)
      entries++
      const entry = { zxid, offset: at, checksum, bytes: this.#window, start, end: start + length }
      if (visit(entry) === false) return this.#ended(end + 1, entries, false)
      if (!marked) return { ...this.#ended(end, entries, false), missingEndMark: end }
      at = end + 1
    }
  }

  /** False for a file that a crash left without a whole header. */
  async #header(): Promise<boolean> {
    if (this.#size >= LOG_HEADER_BYTES) {
      await this.#fetch(0, LOG_HEADER_BYTES)
      if (this.#view.getInt32(0) === LOG_MAGIC && this.#view.getInt32(4) === 2) return true
    }
    const bytes = await this.#rest(0)
    const start = new Uint8Array([0x5a, 0x4b, 0x4c, 0x47, 0, 0, 0, 2])
    // A cut may lie behind these too: the header goes on, with an id that may hold anything.
    const isWhole = this.#size >= LOG_HEADER_BYTES && bytes.length >= start.length
    if (!isWhole && bytes.every((byte, i) => i >= start.length || byte === start[i])) return false
    throw this.#damage('Expected the header of a transaction log ("ZKLG", version 2)', 0)
  }

  #zxid(start: number, length: number, at: number): Zxid {
    if (length < 32) throw this.#damage(`Expected an entry of at least 32 bytes, got ${length}`, at)
    const zxid = this.#view.getInt32(start + 12) * 0x1_0000_0000 + this.#view.getUint32(start + 16)
    if (!Number.isSafeInteger(zxid) || zxid < 0)
      throw this.#damage('Expected a zxid with an epoch below 2^21', at)
    return zxid
  }

  /** No whole entry begins at `at`: an end, a torn write, or damage. */
  async #stopped(at: number, entries: number): Promise<ScanEnd> {
    const rest = await this.#rest(at)
    if (rest.length === 0) return this.#ended(at, entries, false)
    const next = validEntry(rest, this.#last)
    if (next >= 0) {
      // A write of many entries that a power cut tore may leave the same. No byte of the format says where a write ended, so
      // what follows may have been acknowledged, and only who knows how the server ended can tell.
      throw this.#damage(
        `Expected an entry, got bytes that are none, though a whole entry follows at byte ${at + next},`,
        at,
        TORN_ACTION,
      )
    }
    const why = damageIn(rest, at, this.#size - at)
    if (why !== undefined) throw this.#damage(why, at)
    return this.#ended(at, entries, true)
  }

  #ended(end: number, entries: number, torn: boolean): ScanEnd {
    return { end, size: this.#size, entries, isTorn: torn, missingEndMark: undefined }
  }

  #damage(what: string, at: number, action = ACTION): DamageError {
    const last = this.#last < 0 ? 'no transaction is' : `transactions up to 0x${formatZxid(this.#last)} are`
    return new DamageError(what, this.#path, at, `In this file ${last} sound before it. ${action}.`)
  }

  /** Everything from an offset on without the zeros at its end. */
  async #rest(at: number): Promise<Uint8Array> {
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

  #has(at: number, length: number): boolean {
    return at >= this.#base && at + length <= this.#base + this.#window.length
  }

  async #fetch(at: number, length: number): Promise<void> {
    const tail = at >= this.#base ? this.#window.subarray(at - this.#base) : this.#window.subarray(0, 0)
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

/** Bytes that the search for a whole entry may sum up before it gives up. What lies there may be the data of a client. */
const SEARCH_BYTES = 64 << 20

/**
 * Where in `rest` a whole entry with a later zxid begins, behind what an entry at its start claims for itself; -1 for
 * nowhere. Inside that claim lies what a client has sent, which may look like anything.
 */
function validEntry(rest: Uint8Array, last: Zxid): number {
  const view = new DataView(rest.buffer, rest.byteOffset, rest.byteLength)
  const claimed = rest.length < ENTRY_HEAD_BYTES ? 0 : view.getInt32(8)
  let left = SEARCH_BYTES
  const from = claimed >= 32 && claimed <= MAX_ENTRY_BYTES ? ENTRY_HEAD_BYTES + claimed + 1 : 1
  for (let at = from; at + ENTRY_HEAD_BYTES + 33 <= rest.length; at++) {
    if (view.getUint32(at) !== 0) continue
    const length = view.getInt32(at + 8)
    const end = at + ENTRY_HEAD_BYTES + length
    if (length < 32 || end >= rest.length || rest[end] !== ENTRY_END) continue
    left -= length
    // Too much looks like an entry to tell a cut write from damage: whoever knows must decide.
    if (left < 0) return at
    if (adler32(rest, at + ENTRY_HEAD_BYTES, end, 1, view) !== view.getUint32(at + 4)) continue
    const zxid = view.getInt32(at + 24) * 0x1_0000_0000 + view.getUint32(at + 28)
    if (zxid > last) return at
  }
  return -1
}

/**
 * Why the bytes where an entry should be cannot come from a write that a crash cut short; undefined when they can.
 * `rest` lacks the zeros at its end; `left` counts them in. Such a write leaves a beginning, or whole sectors of zeros.
 */
function damageIn(rest: Uint8Array, at: number, left: number): string | undefined {
  if (rest.length <= ENTRY_HEAD_BYTES) return undefined
  const view = new DataView(rest.buffer, rest.byteOffset, rest.byteLength)
  const length = view.getInt32(8)
  const actual = trueLength(rest, view.getUint32(4))
  if (actual >= 0 && actual !== length)
    return `Expected an entry of ${actual} bytes by its checksum, got a length of ${length}`
  if (length < 0 || length > MAX_ENTRY_BYTES) return `Expected the length of an entry, got ${length}`
  const end = ENTRY_HEAD_BYTES + length
  if (length > 0 && end >= left) return undefined
  if (length > 0 && rest.length <= end) return undefined
  if (length > 0 && rest[end] === ENTRY_END) return 'Expected an entry that matches its checksum'
  return hasZeroSector(rest, at, Math.max(end, 1)) ? undefined : 'Expected an entry'
}

/** The length at which the payload matches its checksum and an end mark follows; -1 for none. */
function trueLength(rest: Uint8Array, checksum: number): number {
  let low = 1
  let high = 0
  for (let i = ENTRY_HEAD_BYTES; i < rest.length; i++) {
    if (rest[i] === ENTRY_END && ((high << 16) | low) >>> 0 === checksum && i >= ENTRY_HEAD_BYTES + 32) {
      return i - ENTRY_HEAD_BYTES
    }
    low = (low + rest[i]!) % 65521
    high = (high + low) % 65521
  }
  return -1
}

/** Whether a sector that touches the first `length` bytes of `rest`, which lies at `at` in its file, holds only zeros. */
function hasZeroSector(rest: Uint8Array, at: number, length: number): boolean {
  for (let from = 0; from < length && from < rest.length;) {
    const to = Math.min(from + SECTOR - ((at + from) % SECTOR), rest.length)
    if (lengthWithoutTrailingZeros(rest.subarray(from, to), to - from) === 0) return true
    from = to
  }
  return false
}

const hex = (byte: number | undefined): string => (byte ?? 0).toString(16).padStart(2, '0')
