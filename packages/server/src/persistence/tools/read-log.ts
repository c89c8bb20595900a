import { epochOf, formatZxid, Reader } from '@zabra/protocol'
import type { Disk } from '@zabra/runtime'
import type { LoggedTxn, Zxid } from '../../core/types.ts'
import { DamageError, decodeLoggedTxn, scanLog, type RawEntry, type ScanEnd } from '../index.ts'

/** One transaction with its place in the file. */
export interface LogRecord {
  /** Offset of the entry in the file. */
  readonly offset: number
  /** Bytes of the entry: its head, the transaction and the end mark. */
  readonly size: number
  /** The transaction as the file holds it. */
  readonly bytes: Uint8Array
  readonly logged: LoggedTxn
}

/**
 * `sound`: nothing is wrong. `torn`: a crash cut the last write short, which was never acknowledged. `unmarked`: the last
 * transaction is complete but for its end mark. `damaged`: bytes that may have been acknowledged are corrupt.
 */
export type LogState = 'sound' | 'torn' | 'unmarked' | 'damaged'

/** The result of reading one log file. */
export interface LogReport {
  readonly file: string
  readonly state: LogState
  /** Bytes of the file, preallocated space included. */
  readonly size: number
  /** Transactions before the end or the first bad byte. */
  readonly transactions: number
  readonly first: Zxid | undefined
  readonly last: Zxid | undefined
  /** Offset at which the last sound entry ends. */
  readonly end: number
  /** For a file that is not sound: the offset of the first bad byte, what is wrong there, and what to do. */
  readonly problem: { readonly offset: number; readonly what: string; readonly action: string } | undefined
}

/**
 * Reads one log file and calls `visit` for each transaction in order; `visit` returns false to stop early. Resolves to a report,
 * whether the file is sound or not; rejects with a `DiskError` only when the file cannot be read. A server may write to the file
 * meanwhile: what was read before a write and after it do not fit together, so a file counts as bad only where a second reading stops
 * at the same byte.
 */
export async function readLog(
  disk: Disk,
  path: string,
  visit: (record: LogRecord) => boolean | void = () => {},
): Promise<LogReport> {
  const first = await inspect(disk, path, visit)
  if (first.problem === undefined) return first
  const second = await inspect(disk, path, (record) => record.offset < first.end || visit(record))
  if (second.problem === undefined || second.problem.offset === first.problem.offset) return second
  return { ...second, state: 'sound', problem: undefined }
}

async function inspect(
  disk: Disk,
  path: string,
  visit: (record: LogRecord) => boolean | void,
): Promise<LogReport> {
  const size = await disk.size(path)
  const inspection = new LogInspection(path, visit)
  try {
    return inspection.report(size, await scanLog(disk, path, (entry) => inspection.entry(entry)))
  } catch (error) {
    if (!(error instanceof DamageError)) throw error
    return inspection.damaged(size, error)
  }
}

class LogInspection {
  readonly #path: string
  readonly #visit: (record: LogRecord) => boolean | void
  #transactions = 0
  #first: Zxid | undefined
  #last: Zxid | undefined
  #end = 0

  constructor(path: string, visit: (record: LogRecord) => boolean | void) {
    this.#path = path
    this.#visit = visit
  }

  entry(entry: RawEntry): boolean {
    this.#rejectGap(entry)
    // A copy: the visitor may keep it, and keeps no other bytes of the file alive with it.
    const bytes = new Uint8Array(entry.bytes.subarray(entry.start, entry.end))
    const logged = this.#decode(entry, bytes)
    const size = entry.end - entry.start + 13
    this.#first ??= entry.zxid
    this.#last = Math.max(this.#last ?? 0, entry.zxid)
    this.#transactions++
    this.#end = entry.offset + size
    return this.#visit({ offset: entry.offset, size, bytes, logged }) !== false
  }

  report(size: number, scan: ScanEnd): LogReport {
    const base = { ...this.#base(size), end: Math.min(scan.end, size) }
    if (scan.isTorn) {
      const what = `A crash cut a write short: ${size - scan.end} bytes that are no complete transaction`
      const action =
        'They were never acknowledged. A server removes them when it starts; zabra log --repair removes them now'
      return { ...base, state: 'torn', problem: { offset: scan.end, what, action } }
    }
    if (scan.missingEndMark !== undefined) {
      const what = 'The last transaction is complete but lacks its end mark'
      const action = 'A server writes it when it starts; zabra log --repair writes it now'
      return { ...base, state: 'unmarked', problem: { offset: scan.missingEndMark, what, action } }
    }
    return { ...base, state: 'sound', problem: undefined }
  }

  damaged(size: number, error: DamageError): LogReport {
    const { offset, action } = error
    const what = error.message.replace(/,? in .* at byte \d+\. [\s\S]*$/, '')
    return { ...this.#base(size), state: 'damaged', end: this.#end, problem: { offset, what, action } }
  }

  #base(size: number) {
    return {
      file: this.#path,
      size,
      transactions: this.#transactions,
      first: this.#first,
      last: this.#last,
    }
  }

  #rejectGap({ zxid, offset }: RawEntry): void {
    const last = this.#last
    if (last === undefined || zxid <= last || zxid === last + 1 || epochOf(zxid) !== epochOf(last)) return
    throw new DamageError(
      `Expected transaction 0x${formatZxid(last + 1)}, got 0x${formatZxid(zxid)}: transactions are missing`,
      this.#path,
      offset,
      'Restore this file from a backup or from another copy.',
    )
  }

  #decode({ offset }: RawEntry, bytes: Uint8Array): LoggedTxn {
    try {
      return decodeLoggedTxn(new Reader(bytes))
    } catch (cause) {
      throw new DamageError(
        `Expected a transaction (${String(cause)})`,
        this.#path,
        offset,
        'Its checksum is right, so a newer version may have written it: read it with that version.',
        { cause },
      )
    }
  }
}
