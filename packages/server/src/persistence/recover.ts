import { formatZxid, OpCode, ProtocolError, Reader } from '@zabra/protocol'
import type { Compression, Disk, Logger } from '@zabra/runtime'
import { OPEN_ACL_ID, sameDigest, type Tree } from '../core/tree/index.ts'
import type { Digest, LoggedTxn, SessionId, Zxid } from '../core/types.ts'
import { DamageError, DivergedFilesError, RecoveryError } from './errors.ts'
import { logsIn, snapshotsIn, VERSION_FOLDER, type DataFolders, type NamedFile } from './file-names.ts'
import { isSuccessor } from './history.ts'
import { ENTRY_END, LOG_HEADER_BYTES } from './log-format.ts'
import { RecentChecksums } from './recent-checksums.ts'
import { finishReplacement } from './replacement.ts'
import { scanLog, type RawEntry, type ScanEnd } from './log-scan.ts'
import { loadSnapshot, looksComplete, type LoadedSnapshot } from './snapshot-reader.ts'
import { decodeLoggedTxn } from './txn-codec.ts'
import { LogRange } from './log-range.ts'

/** How much of the newest log is written once more at the start: more than the one write that can have been on its way. */
const REWRITTEN_TAIL_BYTES = 64 << 20
const COPY_BYTES = 1 << 20

export interface RecoveryOptions {
  readonly disk: Disk
  readonly logger: Logger
  readonly compression: Compression
  /** The folders of the settings; files lie in `version-2` below them. */
  readonly dataDir: string
  readonly dataLogDir: string
  /** Makes missing folders; false makes a missing one an error. */
  readonly autoCreate: boolean
  /** Accepts logs without any snapshot. */
  readonly trustEmptySnapshot: boolean
  /** A new tree for each attempt, so that nothing of a bad snapshot is left in the next. */
  readonly createTree: () => Tree
  /** Reads the history only up to this transaction, from a snapshot that holds nothing later, and changes no file. */
  readonly upTo?: Zxid
}

export interface Recovery {
  readonly tree: Tree
  /** Sessions that had not ended, with their timeouts in milliseconds. */
  readonly sessions: Map<SessionId, number>
  readonly lastZxid: Zxid
  /** Nothing was there before. */
  readonly wasEmpty: boolean
  readonly snapshot: string | undefined
  readonly nodes: number
  readonly replayed: number
  readonly logs: readonly string[]
  /** Snapshots that could not be used, with the reason. */
  readonly skipped: readonly { readonly file: string; readonly reason: string }[]
  /** Ends of logs that a crash cut short. They were never acknowledged. */
  readonly tornWrites: readonly { readonly file: string; readonly offset: number; readonly bytes: number }[]
  /** What was read behind the snapshot. */
  readonly logRange: LogRange
  /** Whether the digests of later transactions can be compared with the tree's. */
  readonly canCompareDigests: boolean
  /** The first transaction above `upTo`. */
  readonly firstAboveLimit:
    | { readonly file: string; readonly offset: number; readonly zxid: Zxid }
    | undefined
}

/** The folders in which files lie. */
export const dataFoldersOf = (base: {
  readonly dataDir: string
  readonly dataLogDir: string
}): DataFolders => ({
  snapshots: `${base.dataDir}/${VERSION_FOLDER}`,
  logs: `${base.dataLogDir}/${VERSION_FOLDER}`,
})

/**
 * Loads the newest sound snapshot and every later transaction of the log. Changes nothing but the end of the last log,
 * where a crash cut a write short, and only when all else is sound. Throws a `DamageError` or `RecoveryError`, which say
 * what to do.
 */
export async function recover(options: RecoveryOptions): Promise<Recovery> {
  const { disk } = options
  const snapshots = await ensureFolder(options, options.dataDir)
  const logs =
    options.dataLogDir === options.dataDir ? snapshots : await ensureFolder(options, options.dataLogDir)
  if (logs !== snapshots) await rejectMixedFolders(disk, snapshots, logs)
  if (options.upTo === undefined) {
    await finishReplacement(disk, options.logger, { snapshots, logs })
    for (const folder of new Set([snapshots, logs])) await removeTemporaryFiles(disk, folder)
  }
  const skipped: { file: string; reason: string }[] = []
  const loaded = await newestSnapshot(options, snapshots, skipped)
  const tree = loaded?.tree ?? options.createTree()
  const files = logsIn(await disk.list(logs))
  const replay = new Replay(options, logs, tree, loaded?.snapshot)
  await replay.run(files)
  if (!loaded && replay.appliedCount > 0 && !options.trustEmptySnapshot) {
    throw new RecoveryError(
      'Expected a snapshot beside log entries, got none',
      snapshots,
      'Bring the missing snapshot back, or set snapshot.trust.empty=true once if the log is complete from its first transaction.',
    )
  }
  if (loaded) rejectNodesWithoutAcl(tree, loaded, snapshots)
  if (options.upTo === undefined) {
    await replay.repairTail()
    await replay.rewriteTail()
  }
  return {
    tree,
    sessions: replay.sessions,
    lastZxid: tree.lastZxid,
    wasEmpty: !loaded && replay.appliedCount === 0,
    snapshot: loaded?.file,
    nodes: tree.nodeCount,
    replayed: replay.appliedCount,
    logs: replay.readFiles,
    skipped,
    tornWrites: replay.tornWrites,
    logRange: replay.logRange,
    canCompareDigests: replay.canCompareDigests,
    firstAboveLimit: replay.firstAboveLimit,
  }
}

async function ensureFolder({ disk, autoCreate }: RecoveryOptions, base: string): Promise<string> {
  const folder = `${base}/${VERSION_FOLDER}`
  if (await disk.exists(folder)) return folder
  if (!autoCreate) {
    throw new RecoveryError(
      'Expected an existing folder, got none',
      folder,
      'Create it, or set datadir.autocreate=true.',
    )
  }
  await disk.makeFolder(folder)
  await disk.syncFolder(base)
  return folder
}

interface Loaded {
  readonly tree: Tree
  readonly file: string
  readonly snapshot: LoadedSnapshot
}

async function newestSnapshot(
  { disk, createTree, compression, logger, upTo = Infinity }: RecoveryOptions,
  folder: string,
  skipped: { file: string; reason: string }[],
): Promise<Loaded | undefined> {
  let failure: unknown
  for (const file of snapshotsIn(await disk.list(folder)).toReversed()) {
    if (file.zxid > upTo) continue
    const tree = createTree()
    try {
      if (!(await looksComplete(disk, `${folder}/${file.name}`))) {
        skipped.push({ file: file.name, reason: 'its writing was not finished' })
      } else {
        const snapshot = await loadSnapshot(disk, folder, file, tree, compression)
        if (upTo !== Infinity && !endsAtOrBefore(snapshot, upTo)) continue
        return { tree, file: file.name, snapshot }
      }
    } catch (error) {
      if (
        !(error instanceof DamageError) &&
        !(error instanceof ProtocolError) &&
        !(error instanceof RangeError)
      )
        throw error
      failure = error
      skipped.push({ file: file.name, reason: error.message })
    }
    logger.warn({ ...skipped.at(-1) }, `Skipping ${file.name}: ${skipped.at(-1)!.reason}`)
  }
  if (skipped.length === 0) return undefined
  throw new RecoveryError(
    `Expected one sound snapshot, got ${skipped.length} that are damaged (${skipped[0]!.file}: ${skipped[0]!.reason})`,
    folder,
    'Restore one from a backup or from another server.',
    { cause: failure },
  )
}

/** Whether effects of transactions above a zxid cannot be in a snapshot. One that does not say where it ends may hold any. */
function endsAtOrBefore({ lastZxid, digest, zxid }: LoadedSnapshot, limit: Zxid): boolean {
  const end = lastZxid ?? digest?.zxid
  return end !== undefined && end >= zxid && end <= limit
}

class Replay {
  readonly #o: RecoveryOptions
  readonly #folder: string
  readonly #tree: Tree
  readonly #snapshot: LoadedSnapshot | undefined
  readonly #reader = new Reader()
  readonly sessions: Map<SessionId, number>
  readonly readFiles: string[] = []
  readonly tornWrites: { file: string; offset: number; bytes: number }[] = []
  readonly logRange: LogRange
  appliedCount = 0
  firstAboveLimit: { file: string; offset: number; zxid: Zxid } | undefined
  #last: Zxid
  #seen = false
  readonly #recent = new RecentChecksums()
  /** The transaction from which on digests are known to hold; undefined once it is passed. */
  #fuzzyUntil: Zxid | undefined
  /** Digests speak of names in an encoding that is not ours. */
  #unverifiable = false
  #torn: { path: string; end: ScanEnd } | undefined
  #newestFile: { path: string; end: number } | undefined

  constructor(options: RecoveryOptions, folder: string, tree: Tree, snapshot: LoadedSnapshot | undefined) {
    this.#o = options
    this.#folder = folder
    this.#tree = tree
    this.#snapshot = snapshot
    this.sessions = new Map(snapshot?.sessions)
    this.#last = snapshot?.zxid ?? 0
    this.logRange = new LogRange(this.#last)
    this.#fuzzyUntil = this.#endOfFuzzyRange()
  }

  /**
   * Until which transaction the tree may be ahead of the log, because the snapshot was taken while it changed. A snapshot
   * of nothing has no such range; one that does not say where its range ends leaves every later digest without meaning.
   */
  #endOfFuzzyRange(): Zxid | undefined {
    const { zxid, digest } = this.#snapshot ?? { zxid: 0, digest: undefined }
    if (zxid === 0 && (digest === undefined || digest.zxid === 0)) return undefined
    if (digest === undefined || digest.zxid < zxid) return Infinity
    if (digest.zxid > zxid) return digest.zxid
    this.#compare(digest.value, zxid, 'its snapshot')
    return undefined
  }

  get canCompareDigests(): boolean {
    return this.#fuzzyUntil === undefined && !this.#unverifiable
  }

  async run(files: readonly NamedFile[]): Promise<void> {
    const start = this.#last + 1
    const first = Math.max(
      0,
      files.findLastIndex(({ zxid }) => zxid <= start),
    )
    const needed = files.slice(first)
    for (const [i, file] of needed.entries()) {
      const path = `${this.#folder}/${file.name}`
      const end = await scanLog(this.#o.disk, path, (entry) => this.#entry(entry, path, file.name))
      this.readFiles.push(file.name)
      const damaged = end.isTorn || end.missingEndMark !== undefined || end.end < LOG_HEADER_BYTES
      this.#newestFile = { path, end: end.missingEndMark === undefined ? end.end : end.missingEndMark + 1 }
      if (damaged) this.#torn = { path, end }
      if (end.isTorn) this.#report(file.name, end)
      if (damaged && i < needed.length - 1)
        this.#o.logger.info(
          { file: path },
          'A log before the newest one ends in a cut write; the next one must go on where it ends',
        )
      if (!damaged) this.#torn = undefined
    }
    const until = this.#snapshot?.lastZxid ?? (this.#fuzzyUntil === Infinity ? undefined : this.#fuzzyUntil)
    if (until !== undefined && this.#tree.lastZxid < until) {
      throw new RecoveryError(
        `Expected transactions up to 0x${formatZxid(until)}, which the snapshot contains in part, got them up to 0x${formatZxid(this.#tree.lastZxid)}`,
        this.#folder,
        'Bring the missing log files back, or move this snapshot away so that an older one is used.',
      )
    }
  }

  /** Takes a cut write away, so that no later start has to judge it again. */
  async repairTail(): Promise<void> {
    if (!this.#torn) return
    const { path, end } = this.#torn
    const { disk } = this.#o
    if (end.end < LOG_HEADER_BYTES) {
      await disk.remove(path)
    } else {
      const writer = await disk.openWrite(path, { create: false, durable: false })
      try {
        if (end.missingEndMark !== undefined)
          await writer.write(new Uint8Array([ENTRY_END]), end.missingEndMark)
        else await writer.truncate(end.end)
        await writer.sync()
      } finally {
        await writer.close()
      }
    }
    await disk.syncFolder(this.#folder)
  }

  /**
   * Makes durable what was read. The process before may have ended between a write and its sync, or because its sync had
   * failed: then the system shows bytes that no power cut leaves, and after a failed sync it no longer means to write them.
   * So the end of the newest file is written once more. Whoever is served from it can rely on it then.
   */
  async rewriteTail(): Promise<void> {
    if (this.#newestFile === undefined) return
    const { path, end } = this.#newestFile
    const { disk } = this.#o
    if (end < LOG_HEADER_BYTES || !(await disk.exists(path))) return
    const reader = await disk.openRead(path)
    const writer = await disk.openWrite(path, { create: false, durable: false })
    try {
      for (let at = Math.max(0, end - REWRITTEN_TAIL_BYTES); at < end; at += COPY_BYTES) {
        const part = new Uint8Array(Math.min(COPY_BYTES, end - at))
        await writer.write(part.subarray(0, await reader.read(part, at)), at)
      }
      await writer.sync()
    } finally {
      await reader.close()
      await writer.close()
    }
    await disk.syncFolder(this.#folder)
  }

  #report(file: string, { end, size }: ScanEnd): void {
    this.tornWrites.push({ file, offset: end, bytes: size - end })
    this.#o.logger.warn(
      { file, offset: end, bytes: size - end },
      `A crash cut a write short in ${file} at byte ${end}; it was never acknowledged and is taken away`,
    )
  }

  #entry(entry: RawEntry, path: string, file: string): void {
    const { zxid } = entry
    const snapshotZxid = this.#snapshot?.zxid ?? 0
    if (this.#repeated(entry, path) || zxid <= snapshotZxid) {
      this.#remember(entry)
      return
    }
    const expected = this.#last + 1
    const knowsBefore = this.#seen || this.#snapshot !== undefined
    if (knowsBefore && !isSuccessor(zxid, this.#last)) {
      throw this.#damage(
        `Expected transaction 0x${formatZxid(expected)}, got 0x${formatZxid(zxid)}: transactions are missing`,
        entry,
        path,
      )
    }
    this.#remember(entry)
    this.#last = zxid
    if (zxid > (this.#o.upTo ?? Infinity)) {
      this.firstAboveLimit ??= { file, offset: entry.offset, zxid }
      return
    }
    this.logRange.add(zxid, entry.end - entry.start)
    this.#apply(this.#decode(entry, path))
  }

  #repeated(entry: RawEntry, path: string): boolean {
    if (!this.#seen || entry.zxid > this.#recent.last) return false
    const known = this.#recent.checksumOf(entry.zxid)
    if (known === entry.checksum) return true
    throw this.#damage(
      `Expected a transaction above 0x${formatZxid(this.#recent.last)}, got another 0x${formatZxid(entry.zxid)}`,
      entry,
      path,
    )
  }

  #remember(entry: RawEntry): void {
    this.#seen = true
    this.#recent.add(entry.zxid, entry.checksum)
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
      if (digest) this.#compare(digest, header.zxid, 'its log')
    } else if (header.zxid >= this.#fuzzyUntil) {
      if (header.zxid === this.#fuzzyUntil)
        this.#compare(this.#snapshot!.digest!.value, header.zxid, 'its snapshot')
      this.#fuzzyUntil = undefined
    }
  }

  #compare(expected: Digest, zxid: Zxid, where: string): void {
    const actual = this.#tree.digest
    if (actual === undefined || this.#unverifiable || sameDigest(actual, expected)) return
    if (hasNonAsciiPaths(this.#tree)) {
      this.#unverifiable = true
      this.#o.logger.warn(
        { folder: this.#folder, zxid: `0x${formatZxid(zxid)}` },
        'Digests are not checked: there are names beyond ASCII, and the server that wrote them encodes names in another way than UTF-8, as Java before 18 does under the POSIX locale. Checksums are checked as always',
      )
      return
    }
    throw new DivergedFilesError(
      `Expected the tree after transaction 0x${formatZxid(zxid)} to have the digest that ${where} gives, got another`,
      this.#folder,
      'The files do not belong together or were written by a faulty server: restore them from a backup or another server.',
    )
  }

  #damage(what: string, entry: RawEntry, path: string): DamageError {
    return new DamageError(
      what,
      path,
      entry.offset,
      'Bring the missing log files back, or restore the folder from a backup.',
    )
  }
}

/** Whether a digest of the tree depends on how its names are encoded. */
export function hasNonAsciiPaths(tree: Tree): boolean {
  const cursor = tree.scan()
  try {
    let found = false
    cursor.next(Infinity, (node) => {
      // oxlint-disable-next-line no-control-regex -- everything up to U+007F is meant, control characters too
      found ||= !tree.pathOf(node).startsWith('/zookeeper/') && !/^[\u0000-\u007f]*$/.test(tree.pathOf(node))
    })
    return found
  } finally {
    cursor.close()
  }
}

/** Files in the folder of the others would not be read, and what they hold would be lost without a word. */
async function rejectMixedFolders(disk: Disk, snapshots: string, logs: string): Promise<void> {
  const log = logsIn(await disk.list(snapshots))[0]
  if (log !== undefined) {
    throw new RecoveryError(
      `Expected logs in ${logs} only, as dataLogDir says, got ${log.name}`,
      snapshots,
      'Move all log.* files to the folder of dataLogDir, or take dataLogDir out of the configuration.',
    )
  }
  const snapshot = snapshotsIn(await disk.list(logs))[0]
  if (snapshot !== undefined) {
    throw new RecoveryError(
      `Expected snapshots in ${snapshots} only, as dataDir says, got ${snapshot.name}`,
      logs,
      'Move all snapshot.* files to the folder of dataDir, or name that folder in dataDir.',
    )
  }
}

/** Every node without a list of its own has got one from the log, or the snapshot is not sound. */
function rejectNodesWithoutAcl(tree: Tree, { file, snapshot }: Loaded, folder: string): void {
  const left = snapshot.nodesWithoutAcl.find(
    (path) => tree.has(path) && tree.aclIdOf(tree.find(path)) === OPEN_ACL_ID,
  )
  if (left === undefined) return
  throw new RecoveryError(
    `Expected the access list of ${left} in the table of ${file} or in the log behind it, got neither`,
    folder,
    'Bring the missing log files back, or move this snapshot away so that an older one is used.',
  )
}

/** What a crash left of snapshots that were being written, and of probes for space. */
async function removeTemporaryFiles(disk: Disk, folder: string): Promise<void> {
  for (const name of await disk.list(folder)) {
    if (/^writing\..*\.tmp$|^space-probe\.tmp$/.test(name)) await disk.remove(`${folder}/${name}`)
  }
}
