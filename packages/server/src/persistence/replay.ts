import { formatZxid, OpCode, Reader } from '@zabra/protocol'
import type { Disk, Logger } from '@zabra/runtime'
import { SessionMap } from '../core/session-map.ts'
import { sameDigest, type Tree } from '../core/tree/index.ts'
import type { Digest, LoggedTxn, Zxid } from '../core/types.ts'
import { ADOPT_ADVICE, DamageError, DivergedFilesError, MISSING_LOG_ADVICE, RecoveryError } from './errors.ts'
import type { NamedFile } from './file-names.ts'
import { isSuccessor } from './history.ts'
import { ENTRY_HEAD_BYTES, LOG_HEADER_BYTES } from './log-format.ts'
import { LogRange } from './log-range.ts'
import { scanLog, type RawEntry, type ScanEnd } from './log-scan.ts'
import { hasNonAsciiPaths } from './path-encoding.ts'
import type { RecoveryProgress } from './recovery-progress.ts'
import { RecentChecksums } from './recent-checksums.ts'
import { repairTail, rewriteTail } from './repair-tail.ts'
import type { LoadedSnapshot } from './snapshot-reader.ts'
import type { Pause } from './pause.ts'
import { decodeLoggedTxn } from './txn-codec.ts'

export interface ReplayOptions {
  readonly disk: Disk
  readonly logger: Logger
  /** The folder of the logs. */
  readonly folder: string
  /** Applies nothing above this transaction. */
  readonly upTo: Zxid
  readonly pause: Pause | undefined
  readonly progress?: RecoveryProgress | undefined
}

/** Returns the logs, of all logs oldest first, that hold transactions after a zxid (disk-format 4.9). */
export function neededLogs(files: readonly NamedFile[], after: Zxid): readonly NamedFile[] {
  const first = files.findLastIndex(({ zxid }) => zxid <= after + 1)
  return files.slice(Math.max(0, first))
}

/** The end of a log that a crash cut short. It was never acknowledged. */
export interface TornWrite {
  readonly file: string
  readonly offset: number
  readonly bytes: number
}

/** Where a transaction lies in the log. */
export interface TxnLocation {
  readonly file: string
  readonly offset: number
  readonly zxid: Zxid
}

/** Applies the transactions of the log after a snapshot to the tree that was loaded from it. */
export class Replay {
  readonly #options: ReplayOptions
  readonly #tree: Tree
  readonly #snapshot: LoadedSnapshot | undefined
  readonly #reader = new Reader()
  /** Sessions that have not ended, with their timeouts in milliseconds. */
  readonly sessions: SessionMap<number>
  /** Names of the logs that were read. */
  readonly readFiles: string[] = []
  readonly tornWrites: TornWrite[] = []
  /** The range of transactions that were read after the snapshot. */
  readonly logRange: LogRange
  appliedCount = 0
  /** The first transaction above `upTo`. */
  firstAboveLimit: TxnLocation | undefined
  #last: Zxid
  readonly #recent = new RecentChecksums()
  /** The transaction from which on digests can be compared; undefined once it is passed. */
  #fuzzyUntil: Zxid | undefined
  /** Whether the digests are those of paths in an encoding other than UTF-8. */
  #hasForeignEncoding = false
  #unfinished: { path: string; end: ScanEnd } | undefined
  #newestFile: { path: string; end: number } | undefined

  constructor(options: ReplayOptions, tree: Tree, snapshot: LoadedSnapshot | undefined) {
    this.#options = options
    this.#tree = tree
    this.#snapshot = snapshot
    this.sessions = snapshot?.sessions ?? new SessionMap()
    this.#last = snapshot?.zxid ?? 0
    this.logRange = new LogRange(this.#last)
    this.#fuzzyUntil = this.#endOfFuzzyRange()
  }

  /**
   * Returns the transaction up to which the tree may be ahead of the log, because it changed while the snapshot was taken
   * (disk-format 6.5). An empty snapshot has no such range. If the snapshot does not record the end of its range, no later
   * digest can be compared.
   */
  #endOfFuzzyRange(): Zxid | undefined {
    const { zxid, digest } = this.#snapshot ?? { zxid: 0, digest: undefined }
    if (zxid === 0 && (digest === undefined || digest.zxid === 0)) return undefined
    if (digest === undefined || digest.zxid < zxid) return Infinity
    if (digest.zxid > zxid) return digest.zxid
    this.#compareDigest(digest.value, zxid, 'its snapshot')
    return undefined
  }

  /** Whether the digests of later transactions can be compared with the tree's. */
  get canCompareDigests(): boolean {
    return this.#fuzzyUntil === undefined && !this.#hasForeignEncoding
  }

  /** Reads the logs that hold transactions after the snapshot. `files` are all logs, oldest first. */
  async run(files: readonly NamedFile[]): Promise<void> {
    const { folder, logger, pause, progress } = this.#options
    const disk = progress?.counting(this.#options.disk) ?? this.#options.disk
    const needed = neededLogs(files, this.#last)
    for (const [i, file] of needed.entries()) {
      const path = `${folder}/${file.name}`
      const end = await scanLog(disk, path, (entry) => this.#entry(entry, path, file.name), undefined, pause)
      this.readFiles.push(file.name)
      const isUnfinished = end.isTorn || end.missingEndMark !== undefined || end.end < LOG_HEADER_BYTES
      this.#newestFile = { path, end: end.end }
      if (end.isTorn) this.#reportTornWrite(file.name, end)
      if (isUnfinished && i < needed.length - 1)
        logger.info(
          { file: path },
          'A log before the newest one ends in a torn write; the next log must continue where it ends',
        )
      this.#unfinished = isUnfinished ? { path, end } : undefined
    }
    const until = this.#snapshot?.lastZxid ?? (this.#fuzzyUntil === Infinity ? undefined : this.#fuzzyUntil)
    if (until !== undefined && this.#tree.lastZxid < until) {
      throw new RecoveryError(
        `Expected transactions up to 0x${formatZxid(until)}, which the snapshot contains in part, got them up to 0x${formatZxid(this.#tree.lastZxid)}`,
        folder,
        MISSING_LOG_ADVICE,
      )
    }
  }

  /** Repairs the end of the newest log and makes it durable. */
  async repairAndSync(): Promise<void> {
    const { disk, folder } = this.#options
    if (this.#unfinished !== undefined)
      await repairTail(disk, folder, this.#unfinished.path, this.#unfinished.end)
    if (this.#newestFile !== undefined)
      await rewriteTail(disk, folder, this.#newestFile.path, this.#newestFile.end)
  }

  #reportTornWrite(file: string, { end, size }: ScanEnd): void {
    const torn = { file, offset: end, bytes: size - end }
    this.tornWrites.push(torn)
    this.#options.logger.warn(
      { id: 'recovery.torn-write', ...torn },
      `A crash cut a write short in ${file} at byte ${end}; it was never acknowledged and is removed`,
    )
  }

  #entry(entry: RawEntry, path: string, file: string): void {
    const { zxid } = entry
    const snapshotZxid = this.#snapshot?.zxid ?? 0
    if (this.#isRepetition(entry, path)) return
    if (zxid <= snapshotZxid) {
      this.#recent.add(zxid, entry.checksum)
      return
    }
    const hasPredecessor = this.#recent.last >= 0 || this.#snapshot !== undefined
    if (hasPredecessor && !isSuccessor(zxid, this.#last)) {
      throw this.#damage(
        `Expected transaction 0x${formatZxid(this.#last + 1)}, got 0x${formatZxid(zxid)}: transactions are missing`,
        entry,
        path,
      )
    }
    this.#recent.add(zxid, entry.checksum)
    this.#last = zxid
    if (zxid > this.#options.upTo) {
      this.firstAboveLimit ??= { file, offset: entry.offset, zxid }
      return
    }
    this.logRange.add(zxid, ENTRY_HEAD_BYTES + entry.end - entry.start + 1)
    this.#apply(this.#decode(entry, path))
  }

  /** Returns whether an earlier entry is the same; throws a `DamageError` when it has the zxid and other bytes. */
  #isRepetition(entry: RawEntry, path: string): boolean {
    if (entry.zxid > this.#recent.last) return false
    if (this.#recent.checksumOf(entry.zxid) === entry.checksum) return true
    throw this.#damage(
      `Expected a transaction above 0x${formatZxid(this.#recent.last)}, got another 0x${formatZxid(entry.zxid)}`,
      entry,
      path,
    )
  }

  #decode(entry: RawEntry, path: string): LoggedTxn {
    try {
      return decodeLoggedTxn(this.#reader.reset(entry.bytes, entry.start, entry.end), this.#tree.store)
    } catch (cause) {
      throw new DamageError(
        `Expected a transaction (${String(cause)})`,
        path,
        entry.offset,
        'Its checksum is right, so a newer version may have written it.',
        { cause },
      )
    }
  }

  #apply({ header, txn, digest }: LoggedTxn): void {
    if (txn.type === OpCode.createSession) this.sessions.set(header.sessionId, txn.timeOut)
    if (txn.type === OpCode.closeSession) this.sessions.delete(header.sessionId)
    this.#tree.apply(header, txn)
    this.appliedCount++
    if (this.#fuzzyUntil === undefined) {
      if (digest) this.#compareDigest(digest, header.zxid, 'its log')
    } else if (header.zxid >= this.#fuzzyUntil) {
      if (header.zxid === this.#fuzzyUntil)
        this.#compareDigest(this.#snapshot!.digest!.value, header.zxid, 'its snapshot')
      this.#fuzzyUntil = undefined
    }
  }

  #compareDigest(expected: Digest, zxid: Zxid, where: string): void {
    const actual = this.#tree.digest
    if (actual === undefined || this.#hasForeignEncoding || sameDigest(actual, expected)) return
    const { folder, logger } = this.#options
    if (hasNonAsciiPaths(this.#tree)) {
      this.#hasForeignEncoding = true
      logger.warn(
        { folder, zxid: `0x${formatZxid(zxid)}` },
        'Digests are not checked: there are names beyond ASCII, and the server that wrote them encodes names in another way than UTF-8, as Java before 18 does under the POSIX locale. Checksums are checked as always',
      )
      return
    }
    throw new DivergedFilesError(
      `Expected the tree after transaction 0x${formatZxid(zxid)} to have the digest that ${where} gives, got another`,
      folder,
      'The files do not belong together or were written by a faulty server: restore them from a backup or another server.',
    )
  }

  #damage(what: string, entry: RawEntry, path: string): DamageError {
    return new DamageError(
      what,
      path,
      entry.offset,
      `Bring the missing log files back, or restore the folder from a backup; or, ${ADOPT_ADVICE}.`,
    )
  }
}
