import { counterOf, epochOf, formatZxid } from '@zabra/protocol'
import { invariant, type Platform } from '@zabra/runtime'
import { LaterTurns } from '../core/later-turns.ts'
import { SessionMap } from '../core/session-map.ts'
import type { Tree } from '../core/tree/index.ts'
import type { LoggedTxn, Zxid } from '../core/types.ts'
import {
  DivergenceError,
  incomingName,
  LogRange,
  Mutex,
  purge,
  readLog,
  replaceAllFiles,
  truncateTo,
  TxnLog,
  type DataFolders,
  type EpochFiles,
  type ExactSnapshot,
  type RawTxn,
  type Recovery,
  type RecoveryOptions,
  type SessionTimeouts,
  type TxnLogEvents,
  type WrittenSnapshot,
} from '../persistence/index.ts'
import { LogHistory } from './log-history.ts'
import type { SnapshotFiles } from './snapshot-files.ts'
import { SnapshotReceiver } from './snapshot-receiver.ts'
import { SnapshotStream } from './snapshot-stream.ts'
import { TreeState } from './tree-state.ts'
import type {
  DatabaseSettings,
  Epochs,
  PreparedReplacement,
  ReadonlyLogRange,
  SnapshotSink,
  SnapshotSource,
  TruncateResult,
} from './types.ts'
import type { VoteEligibility } from './vote-eligibility.ts'

export interface DatabaseContext {
  readonly settings: DatabaseSettings
  readonly platform: Platform
  readonly folders: DataFolders
  readonly options: RecoveryOptions
  readonly snapshots: SnapshotFiles
  /** Undefined for a standalone server, as `eligibility`. */
  readonly epochs: EpochFiles | undefined
  readonly eligibility: VoteEligibility | undefined
  /** Reads the files again. */
  readonly recoverFiles: () => Promise<Recovery>
  /** Unlocks the folders. */
  readonly unlock: () => Promise<void>
}

/**
 * Owns the files of a server, and the tree that they represent. There is one database in a process, which all roles use one after
 * the other. Operations that change more than the end of the log run one after the other.
 *
 * A member that syncs by SNAP, or from an empty tree, holds a new tree in memory and its old files on disk until
 * `installSnapshot` replaces the files atomically. A crash or the end of the role before that leaves the old history, so nothing
 * acknowledged is lost.
 */
export class Database {
  readonly #context: DatabaseContext
  readonly #state: TreeState
  readonly #history: LogHistory
  #isFullSyncRequested: boolean
  #writer: TxnLog | undefined
  #receiver: SnapshotReceiver | undefined
  #baseSnapshot: ExactSnapshot | undefined
  readonly #mutex = new Mutex()
  /** Shared by the snapshots that learners get. */
  readonly #streamTurns: LaterTurns
  #closing: Promise<void> | undefined
  #isLoading = false
  readonly folders: DataFolders
  /** Whether no snapshot was on disk at the start. */
  readonly lackedSnapshot: boolean

  /** What the recovery at the start took, in milliseconds, and its transactions. */
  readonly recoveryTimes: Pick<Recovery, 'snapshotMs' | 'logMs' | 'replayed'>

  constructor(context: DatabaseContext, recovery: Recovery) {
    const { settings, platform, folders } = context
    this.#context = context
    this.#streamTurns = new LaterTurns(platform)
    this.folders = folders
    this.#state = new TreeState(recovery, platform.logger, settings.digestEnabled)
    this.#history = new LogHistory(
      { disk: platform.disk, clock: platform.clock, folders },
      recovery.logRange,
      recovery.replayed,
    )
    this.#baseSnapshot = recovery.exactSnapshot
    this.#isFullSyncRequested = !this.isEligibleToVote
    const { snapshotMs, logMs, replayed } = recovery
    this.recoveryTimes = { snapshotMs, logMs, replayed }
    this.lackedSnapshot = recovery.snapshot === undefined
  }

  /** The current tree. Replaced by `receiveSnapshot`, `startEmptyTree`, `installReplacement`, `truncateTo` and `endRole`. */
  get tree(): Tree {
    return this.#state.tree
  }
  /**
   * Sessions with their timeouts in milliseconds, as of `tree.lastZxid`, where `apply` is used. A role that keeps sessions of its
   * own passes them to `endRole`.
   */
  get sessions(): SessionMap<number> {
    return this.#state.sessions
  }
  /** For votes: the last transaction in memory, in the log or in a snapshot. A new tree counts only once it is installed. */
  get lastZxid(): Zxid {
    return this.#state.zxidOfFiles ?? Math.max(this.tree.lastZxid, this.#writer?.lastZxid ?? 0)
  }
  /**
   * Whether this member may vote with its data. False, also after restarts, once its data were found to differ
   * from those of the ensemble or to be lost (`db.autocreate=false`), until a full sync is installed. Always true for a standalone
   * server.
   */
  get isEligibleToVote(): boolean {
    return this.#context.eligibility?.isEligible !== false
  }
  get epochs(): Epochs {
    return this.#epochFiles
  }
  /** Whether the tree in memory has replaced that of the files and is not on disk yet: until `installSnapshot` or `endRole`. */
  get hasUninstalledTree(): boolean {
    return this.#state.isUninstalled
  }
  /** Whether a full sync is requested: a DIFF then starts from an empty tree (`startEmptyTree`). */
  get isFullSyncRequested(): boolean {
    return this.#isFullSyncRequested
  }
  /** The transactions that `readHistory` can return: those read after the loaded snapshot, and those appended since. */
  get logRange(): ReadonlyLogRange {
    return this.#history.range
  }
  /**
   * The snapshot file from a leader or of the last start, after which `logRange` began; undefined where it holds parts of later
   * transactions. A purge may have removed it.
   */
  get baseSnapshot(): ExactSnapshot | undefined {
    return this.#baseSnapshot
  }
  /** Bytes of the newest snapshot file, 0 for none. Bounds a DIFF from disk (`snapshotSizeFactor`). */
  get snapshotBytes(): number {
    return this.#context.snapshots.newestBytes
  }

  /** Raises the accepted epoch; durable when it resolves. Rejects with a RangeError for a lower epoch. */
  acceptEpoch(epoch: number): Promise<void> {
    return this.#epochFiles.accept(epoch)
  }

  /** Raises the epoch of the history, as `acceptEpoch`. Also rejects when it is above the accepted one. */
  setCurrentEpoch(epoch: number): Promise<void> {
    const files = this.#epochFiles
    invariant(!this.hasUninstalledTree, 'The history of an epoch is durable before the epoch is current.', {
      epoch,
    })
    return files.setCurrent(epoch)
  }

  /** Lends the log to a role. Throws an `InvariantError` unless the role before has ended and the tree is on disk. */
  /** The log of the current role; undefined without one. */
  get log(): Pick<TxnLog, 'pendingBytes' | 'writingSince'> | undefined {
    return this.#writer
  }

  openWriter(events: TxnLogEvents): TxnLog {
    const { settings, platform, epochs } = this.#context
    invariant(this.#writer === undefined, 'A role writes only once the role before it has ended.')
    invariant(!this.hasUninstalledTree, 'A role writes only after a history that is on disk.')
    const { disk, clock, random, logger } = platform
    const options = {
      disk,
      clock,
      random,
      logger,
      folder: this.folders.logs,
      lastZxid: this.tree.lastZxid,
      range: this.#history.range,
      ...(epochs === undefined ? {} : { acceptedEpoch: () => epochs.accepted }),
      isDurable: settings.forceSync,
      preallocateBytes: settings.preAllocSizeBytes,
      snapCount: () => Math.max(settings.snapCount, Math.floor(settings.snapTreeShare * this.tree.nodeCount)),
      snapSizeLimitBytes: settings.snapSizeLimitBytes,
      fileSizeLimitBytes: settings.txnLogSizeLimitBytes,
      syncWarningMs: () => settings.fsyncWarningThresholdMs,
      flushDelayMs: settings.flushDelayMs,
      maxBatchSize: settings.maxBatchSize,
      sinceSnapshot: this.#history.txnsSinceSnapshot,
    }
    this.#writer = new TxnLog(options, events)
    return this.#writer
  }

  /** Takes the settings anew that the log does not read each time when it needs them. */
  applySettings(): void {
    this.#writer?.applySettings()
  }

  /**
   * Applies a transaction to `tree` and `sessions`. `logged` is the decoded payload, if the caller has it. A transaction that a new tree may
   * already hold is applied again, which is idempotent (disk-format 9). Returns the steps of a large one, all of which must be done before
   * the role ends: the tree is inconsistent between them; undefined for others, which are applied at once. Throws a `DivergenceError`, as
   * the steps do, when the tree then differs from the leader's.
   */
  apply(payload: Uint8Array, logged?: LoggedTxn): Generator<void> | undefined {
    return this.#state.applyInSteps(payload, logged)
  }

  /**
   * Reads the transactions after `after` up to `upTo` from the log, in order and without a gap, and verifies them; waits until
   * they are durable. `after` must be a point of the history within `logRange`, or one for which `hasLogAfter` has resolved to true
   * before the first read. Throws a `DamageError` where the log is corrupt,
   * also midway. Its files are not purged until it ends or `return` is called (leaving a loop does that): call `return` also when
   * it was never started.
   */
  readHistory(after: Zxid, upTo: Zxid): AsyncIterableIterator<RawTxn> {
    return this.#history.read(after, upTo, async () => {
      if (this.#writer !== undefined && upTo > this.#writer.durableZxid) await this.#writer.flush()
    })
  }

  /**
   * Resolves to whether `readHistory` can read all transactions after a point of the history. Before `logRange` it reads the files for
   * that, once, in slices.
   */
  hasLogAfter(after: Zxid): Promise<boolean> {
    return this.#history.hasLogAfter(after)
  }

  /** Removes every transaction above a zxid, or changes nothing at all (see `TruncateResult`). No role may be writing. */
  truncateTo(zxid: Zxid): Promise<TruncateResult> {
    return this.#mutex.run(async () => {
      this.#assertNoRole()
      await this.#context.snapshots.abortAll()
      const result = await truncateTo(this.#context.options, zxid)
      if (!result.isExact) {
        const fields = { zxid: formatZxid(zxid), reason: result.reason }
        this.#context.platform.logger.warn(fields, 'The history cannot be cut there; nothing is changed')
        return result
      }
      this.#load(result.recovery)
      await this.#context.snapshots.measure()
      return { isExact: true }
    })
  }

  /**
   * Marks the tree as wrong and makes the next leader send everything, until the next `installSnapshot`. Does not change files, epochs
   * and eligibility.
   */
  requestFullSync(): void {
    this.#isFullSyncRequested = this.#state.isWrong = true
  }

  /** Returns an empty tree of this server. */
  createTree(): Tree {
    return this.#context.options.createTree()
  }

  /** Replaces the tree in memory by an empty one, which `apply` fills and `installSnapshot` makes durable. */
  startEmptyTree(): void {
    this.#assertNoRole()
    const tree = this.createTree()
    this.#state.replace({ tree, sessions: new SessionMap(), nodesWithoutAcl: [] }, this.lastZxid)
  }

  /** Whether the files are loaded again, which takes as long as at a start. */
  get isLoading(): boolean {
    return this.#isLoading
  }

  /** Nodes of the snapshot that is received, so far. */
  get receivedNodes(): number {
    return this.#receiver?.nodes ?? 0
  }

  /** Returns a sink for the bytes after a SNAP packet with this zxid. No role may be writing. */
  receiveSnapshot(zxid: Zxid): SnapshotSink {
    this.#assertNoRole()
    this.#receiver?.abort()
    const tree = this.createTree()
    this.#receiver = new SnapshotReceiver(this.#context.platform.clock, tree, zxid, (received) =>
      this.#state.replace(received, this.lastZxid),
    )
    return this.#receiver
  }

  /**
   * Makes a new tree durable at NEWLEADER, when every transaction of the stream is applied: writes it as a snapshot of
   * `tree.lastZxid` and sets all older logs and snapshots aside, atomically even in a crash. Resolves at once when there is no
   * new tree. Set the current epoch and acknowledge NEWLEADER only afterwards (disk-format 13).
   */
  installSnapshot(): Promise<void> {
    return this.#mutex.run(async () => {
      if (!this.hasUninstalledTree) return
      invariant(
        epochOf(this.tree.lastZxid) <= this.epochs.accepted,
        'A member installs only data of an epoch that it has accepted.',
      )
      const name = await this.#install()
      const facts = { snapshot: name, nodes: this.tree.nodeCount }
      this.#context.platform.logger.info(facts, 'The data of the leader are on disk')
    })
  }

  /** Writes a tree without sessions to a file that `installReplacement` makes the data, while the role goes on. */
  async prepareReplacement(tree: Tree): Promise<PreparedReplacement> {
    return { tree, name: await this.#context.snapshots.writeIncoming(tree, new Map()) }
  }

  /** Removes the file of a replacement that is not installed. */
  async discardReplacement({ name }: PreparedReplacement): Promise<void> {
    const path = `${this.folders.snapshots}/${incomingName(name)}`
    const { disk } = this.#context.platform
    if (await disk.exists(path)) await disk.remove(path)
  }

  /**
   * Replaces the tree, its sessions and its files by what was prepared, atomically even in a crash. No role may be writing. After a
   * rejection `endRole` loads what is in the files.
   */
  installReplacement({ tree, name }: PreparedReplacement): Promise<void> {
    return this.#mutex.run(async () => {
      this.#assertNoRole()
      const path = `${this.folders.snapshots}/${incomingName(name)}`
      // A reload of the files removes it.
      if (!(await this.#context.platform.disk.exists(path)))
        throw new Error(`Expected the data of the replacement in ${path}, got no such file. Try again.`)
      await this.#context.snapshots.abortAll()
      this.#state.replace({ tree, sessions: new SessionMap(), nodesWithoutAcl: [] }, this.lastZxid)
      await this.#adopt(name)
    })
  }

  /** Makes a new tree durable. Resolves to the name of its file. */
  async #install(): Promise<string> {
    const { snapshots } = this.#context
    await snapshots.abortAll()
    this.#state.rejectNodesWithoutAcl(this.folders.snapshots)
    const name = await snapshots.writeIncoming(this.tree, this.sessions)
    await this.#adopt(name)
    return name
  }

  /** Makes the file under an incoming name the only one. */
  async #adopt(name: string): Promise<void> {
    const { tree, folders } = this
    const { disk, logger } = this.#context.platform
    await replaceAllFiles(disk, logger, folders, name)
    this.#state.installed()
    const { lastZxid: zxid, nodeCount: nodes, digest } = tree
    this.#history.reset(new LogRange(zxid), 0)
    this.#baseSnapshot = { file: name, zxid, nodes, digest }
    this.#isFullSyncRequested = false
    await this.#context.eligibility?.grant()
    await this.#context.snapshots.measure()
  }

  /** Starts a stream of the present tree. `sessions` are those that a leader keeps; the database's own by default. */
  streamSnapshot(sessions: SessionTimeouts = this.sessions): SnapshotSource {
    return new SnapshotStream(this.tree, sessions, this.#context.platform.clock, this.#streamTurns)
  }

  /** Writes a snapshot file while requests go on. It gets its final name once the log is durable up to its last transaction. */
  async takeSnapshot(sessions: SessionTimeouts, signal?: AbortSignal): Promise<WrittenSnapshot> {
    invariant(!this.hasUninstalledTree, 'A new tree is written by installing it, not as a further snapshot.')
    const writer = this.#writer
    const waitUntilDurable = async (lastZxid: Zxid): Promise<void> => {
      await this.#history.saveEpochs()
      if (writer === undefined || lastZxid <= writer.durableZxid || counterOf(lastZxid) === 0) return
      await writer.flush().catch((error: unknown) => {
        // A role that ends meanwhile makes its appends durable first.
        if (lastZxid > writer.durableZxid) throw error
      })
    }
    return this.#context.snapshots.take(this.tree, sessions, { signal, waitUntilDurable })
  }

  /**
   * Removes the files that neither recovery from the newest `retain` snapshots nor an open `readHistory` needs, nor the next backup,
   * which reads the log after `unsavedAfter`.
   */
  purge(retain: number, unsavedAfter: Zxid = Infinity): Promise<readonly string[]> {
    return this.#mutex.run(async () => {
      if (this.hasUninstalledTree) return []
      const { disk, compression, logger } = this.#context.platform
      try {
        return await purge(disk, this.folders, retain, {
          compression,
          keepFrom: this.#history.oldestCursor,
          unsavedAfter,
          droppedUnsaved: (bytes) =>
            logger.warn(
              { bytes },
              'Logs that are in no backup are too long to be kept for one, and are removed',
            ),
        })
      } finally {
        await this.#history.purged()
      }
    })
  }

  /**
   * Ends a role: revokes its writer, makes its appends durable and applies the rest of the log to `tree` and
   * `sessions`. A tree that is not installed, or was found to be wrong, is dropped and the files are loaded again; files that are wrong
   * themselves are set aside, and the member is not eligible to vote any more. `sessions` are those that the role kept, as of
   * `tree.lastZxid`. The member may vote only afterwards. Rejects when the disk cannot be trusted: the server must stop.
   */
  endRole(sessions?: SessionTimeouts): Promise<void> {
    this.#writer?.revoke()
    this.#receiver?.abort()
    this.#receiver = undefined
    return this.#mutex.run(() => this.#endRole(sessions))
  }

  /** Makes appends durable and unlocks the folders. */
  close(): Promise<void> {
    this.#closing ??= this.#mutex.run(async () => {
      this.#receiver?.abort()
      await this.#context.snapshots.abortAll()
      try {
        await this.#writer?.close()
      } finally {
        await this.#context.unlock()
      }
    })
    return this.#closing
  }

  get #epochFiles(): EpochFiles {
    const { epochs } = this.#context
    invariant(epochs !== undefined, 'Only a member of an ensemble has epochs.')
    return epochs
  }

  async #endRole(sessions: SessionTimeouts | undefined): Promise<void> {
    const writer = this.#writer
    await writer?.close()
    if (writer?.failure !== undefined) throw writer.failure
    this.#writer = undefined
    if (writer !== undefined) this.#history.txnsSinceSnapshot = writer.txnsSinceRoll
    if (this.hasUninstalledTree || this.#state.isWrong || writer?.hasLostAppends === true)
      return this.#reload()
    if (sessions !== undefined) this.#state.sessions = new SessionMap(sessions)
    if (writer === undefined) return
    const last = writer.durableZxid
    const before = this.tree.lastZxid
    // The tree has a transaction that is not in the log: only the log counts.
    if (before > last && counterOf(before) > 0) return this.#reload()
    if (last <= before) return
    const { platform, eligibility, options } = this.#context
    try {
      const missing = readLog(platform.disk, this.folders.logs, before, last, options.pause)
      await this.#state.catchUp(missing, last)
    } catch (error) {
      if (eligibility === undefined || !(error instanceof DivergenceError)) throw error
      platform.logger.error({ reason: error.message }, 'The data of this server are not those of its leader')
      this.requestFullSync()
      await this.#reload()
    }
  }

  async #reload(): Promise<void> {
    await this.#context.snapshots.abortAll()
    // Until the files are loaded: the disk may be full, and the next attempt loads them again.
    this.#state.isWrong = true
    this.#context.platform.logger.info(
      {},
      'Loading the data again, because the role ended before they were correct and complete',
    )
    this.#isLoading = true
    try {
      this.#load(await this.#context.recoverFiles())
    } finally {
      this.#isLoading = false
    }
    this.#state.isWrong = false
    if (!this.isEligibleToVote) this.#isFullSyncRequested = true
    await this.#context.snapshots.measure()
  }

  #load(recovery: Recovery): void {
    this.#state.load(recovery)
    this.#history.reset(recovery.logRange, recovery.replayed)
    this.#baseSnapshot = recovery.exactSnapshot
  }

  #assertNoRole(): void {
    invariant(this.#writer === undefined, 'Data are replaced only while no role writes.')
  }
}
