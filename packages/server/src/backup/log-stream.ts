import { concatBytes, formatZxid, Writer, adler32 } from '@zabra/protocol'
import type { Zxid } from '../core/types.ts'
import {
  ENTRY_END,
  ENTRY_HEAD_BYTES,
  isSuccessor,
  LOG_HEADER_BYTES,
  LOG_MAGIC,
  MAX_ENTRY_BYTES,
  TXN_HEADER_BYTES,
  writeLogHeader,
  type RawTxn,
} from '../persistence/index.ts'
import { BackupError } from './errors.ts'

/** Bytes of entries that are sent at a time. */
const CHUNK_BYTES = 1 << 16

/** Encodes transactions as a log file. Each chunk may be kept. */
export async function* encodeLog(txns: AsyncIterable<RawTxn>): AsyncGenerator<Uint8Array> {
  const writer = new Writer(CHUNK_BYTES * 2)
  writeLogHeader(writer)
  for await (const { payload } of txns) {
    writer.longNumber(adler32(payload, 0, payload.length, 1))
    writer.buffer(payload)
    writer.byte(ENTRY_END)
    if (writer.length >= CHUNK_BYTES) yield writer.take()
  }
  if (writer.length > 0) yield writer.take()
}

/** What a log contains, as its manifest describes it. */
export interface LogSummary {
  readonly first: Zxid
  readonly beforeLast: Zxid
  readonly upTo: Zxid
  readonly lastChecksum: number
  readonly firstTime: number
  readonly lastTime: number
  readonly transactions: number
}

/** An entry of a log. */
export interface LogEntry {
  readonly zxid: Zxid
  readonly time: number
  readonly checksum: number
}

/** Checks a log file that arrives in chunks: entries, checksums, no gap. */
export class LogStreamCheck {
  readonly #after: Zxid
  readonly #onEntry: (entry: LogEntry) => void
  #rest: Uint8Array = new Uint8Array(0)
  #isPastHeader = false
  #first: LogEntry | undefined
  #last: LogEntry | undefined
  #beforeLast: Zxid
  #transactions = 0

  /** `after` is the transaction before the first. `onEntry` is called with each. */
  constructor(after: Zxid, onEntry: (entry: LogEntry) => void = () => {}) {
    this.#after = after
    this.#onEntry = onEntry
    this.#beforeLast = after
  }

  /** Passes chunks on, and checks them. Throws a `BackupError` for bytes that are no log after `after`. */
  async *pass(chunks: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array> {
    for await (const chunk of chunks) {
      this.#push(chunk)
      yield chunk
    }
    if (this.#rest.length > 0 || !this.#isPastHeader)
      throw new BackupError('The log of the server was cut short. Try again.')
  }

  /** The contents so far; undefined without a transaction. */
  get summary(): LogSummary | undefined {
    const [first, last] = [this.#first, this.#last]
    if (first === undefined || last === undefined) return undefined
    return {
      first: first.zxid,
      beforeLast: this.#beforeLast,
      upTo: last.zxid,
      lastChecksum: last.checksum,
      firstTime: first.time,
      lastTime: last.time,
      transactions: this.#transactions,
    }
  }

  #push(chunk: Uint8Array): void {
    const bytes = this.#rest.length === 0 ? chunk : concatBytes([this.#rest, chunk])
    const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength)
    let at = 0
    if (!this.#isPastHeader && bytes.length >= LOG_HEADER_BYTES) {
      if (view.getUint32(0) !== LOG_MAGIC) throw notLog('it does not begin as one')
      this.#isPastHeader = true
      at = LOG_HEADER_BYTES
    }
    while (this.#isPastHeader && at + ENTRY_HEAD_BYTES <= bytes.length) {
      const length = view.getInt32(at + 8)
      if (length < TXN_HEADER_BYTES || length > MAX_ENTRY_BYTES) throw notLog(`an entry has ${length} bytes`)
      const end = at + ENTRY_HEAD_BYTES + length
      if (end + 1 > bytes.length) break
      this.#entry(bytes, view, at, end)
      at = end + 1
    }
    // A copy: the caller may reuse the chunk.
    this.#rest = bytes.slice(at)
  }

  #entry(bytes: Uint8Array, view: DataView, at: number, end: number): void {
    const start = at + ENTRY_HEAD_BYTES
    const checksum = view.getUint32(at + 4)
    if (adler32(bytes, start, end, 1) !== checksum || bytes[end] !== ENTRY_END)
      throw notLog('the checksum of an entry does not fit')
    const zxid = Number(view.getBigInt64(start + 12))
    const time = Number(view.getBigInt64(start + 20))
    const before = this.#last?.zxid ?? this.#after
    if (!isSuccessor(zxid, before))
      throw new BackupError(
        `Expected the transaction after 0x${formatZxid(before)}, got 0x${formatZxid(zxid)}: the log of the server has a gap. Try again, or back up another member.`,
      )
    this.#beforeLast = before
    this.#last = { zxid, time, checksum }
    this.#first ??= this.#last
    this.#onEntry(this.#last)
    this.#transactions++
  }
}

const notLog = (what: string): BackupError =>
  new BackupError(`Expected a log from the server, got something else: ${what}. Try again.`)
