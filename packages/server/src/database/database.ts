import { counterOf, epochOf, formatZxid, OpCode, Reader } from '@zabra/protocol'
import { invariant, type Platform } from '@zabra/runtime'
import { OPEN_ACL_ID, type Tree } from '../core/tree/index.ts'
import type { LoggedTxn, SessionId, Zxid } from '../core/types.ts'
import {
  decodeLoggedTxn,
  DivergedFilesError,
  DivergenceError,
  isSuccessor,
  dataFoldersOf,
  incomingName,
  openEpochFiles,
  purge,
  readLog,
  recover,
  RecoveryError,
  replaceAllFiles,
  snapshotName,
  snapshotsIn,
  takeSnapshot,
  truncateTo,
  VERSION_FOLDER,
  LogRange,
  writeSnapshot,
  type DataFolders,
  type EpochFiles,
  type RawTxn,
  type Recovery,
  type RecoveryOptions,
  type SessionTimeouts,
  type SnapshotKind,
  type WrittenSnapshot,
  type TxnLogEvents,
} from '../persistence/index.ts'
import { hasNonAsciiPaths } from '../persistence/recover.ts'
import type { ServerSettings } from '../settings/index.ts'
import type {
  Epochs,
  ReadonlyLogRange,
  LogWriter,
  SnapshotSink,
  SnapshotSource,
  TruncateResult,
  Database,
} from './types.ts'
import { lockFolders, recoveryOptions } from './folders.ts'
import { LogCursor } from './log-cursor.ts'
import { SnapshotReceiver, type ReceivedSnapshot } from './snapshot-receiver.ts'
import { RoleLogWriter } from './log-writer.ts'
import { SnapshotStream } from './snapshot-stream.ts'
import { VoteEligibility } from './vote-eligibility.ts'

/**
 * Locks the folders, recovers what is in them and, for a member of an ensemble, judges the epochs. Rejects with a
 * `DamageError`, `RecoveryError`, `FolderLockedError` or `DiskError`; each message says what to do.
 */
export async function openDatabase(
  settings: ServerSettings,
  ports: Platform,
  { member }: { readonly member: boolean },
): Promise<Database> {
  const { token, unlock } = await lockFolders(settings, ports)
  // The folder tells the token to nobody but who may read the data.
  const hashKey = Number.parseInt(token.slice(0, 8), 16)
  try {
    if (!member) await VoteEligibility.rejectStandalone(ports, dataFoldersOf(settings))
    const trust = member ? await VoteEligibility.open(ports, dataFoldersOf(settings)) : undefined
    const options = recoveryOptions(settings, ports, hashKey)
    const recovery = await recoverOrRevokeEligibility(options, trust)
    if (recovery.wasEmpty) await trust?.checkEmptyStart(settings)
    const folder = `${settings.dataDir}/${VERSION_FOLDER}`
    const epochs = member
      ? await openEpochFiles(ports.disk, ports.logger, folder, recovery.lastZxid)
      : undefined
    const vault = new RecoveredDatabase(settings, ports, recovery, {
      options,
      epochs,
      eligibility: trust,
      unlock,
    })
    await vault.measureSnapshot()
    return vault
  } catch (error) {
    await unlock()
    throw error
  }
}

/** Files that are whole and not right end a server that stands alone. A member has others to ask. */
async function recoverOrRevokeEligibility(
  options: RecoveryOptions,
  trust: VoteEligibility | undefined,
): Promise<Recovery> {
  try {
    return await recover(options)
  } catch (error) {
    if (trust === undefined || !(error instanceof DivergedFilesError)) throw error
    await trust.revoke(error.message)
    return recover(options)
  }
}

interface DatabaseParts {
  readonly options: RecoveryOptions
  readonly epochs: EpochFiles | undefined
  readonly eligibility: VoteEligibility | undefined
  readonly unlock: () => Promise<void>
}

class RecoveredDatabase implements Database {
  readonly #settings: ServerSettings
  readonly #ports: Platform
  readonly #options: RecoveryOptions
  readonly #epochs: EpochFiles | undefined
  readonly #eligibility: VoteEligibility | undefined
  readonly #unlock: () => Promise<void>
  readonly folders: DataFolders
  readonly wasEmpty: boolean
  tree: Tree
  sessions: Map<SessionId, number>
  /** What files say, while the tree is not theirs. */
  #durableZxid: Zxid
  #logRange: LogRange
  #canCompareDigests: boolean
  #hasUninstalledTree = false
  #nodesWithoutAcl: readonly string[] = []
  #isFullSyncRequested: boolean
  /** The tree in memory was found to be wrong. */
  #isTreeWrong = false
  #writer: RoleLogWriter | undefined
  #sinceSnapshot: number
  #snapshotBytes = 0
  #receiver: SnapshotReceiver | undefined
  readonly #snapshots = new Map<Promise<unknown>, AbortController>()
  readonly #cursors = new Set<LogCursor>()
  #last: Promise<unknown> = Promise.resolve()
  #closing: Promise<void> | undefined

  constructor(
    settings: ServerSettings,
    ports: Platform,
    recovery: Recovery,
    { options, epochs, eligibility: trust, unlock }: DatabaseParts,
  ) {
    this.#settings = settings
    this.#ports = ports
    this.#options = options
    this.#epochs = epochs
    this.#eligibility = trust
    this.#isFullSyncRequested = !this.isEligibleToVote
    this.#unlock = unlock
    this.folders = dataFoldersOf(settings)
    this.wasEmpty = recovery.wasEmpty
    this.tree = recovery.tree
    this.sessions = recovery.sessions
    this.#durableZxid = recovery.lastZxid
    this.#logRange = recovery.logRange
    this.#canCompareDigests = recovery.canCompareDigests
    this.#sinceSnapshot = recovery.replayed
  }

  get lastZxid(): Zxid {
    return this.#hasUninstalledTree
      ? this.#durableZxid
      : Math.max(this.tree.lastZxid, this.#writer?.lastZxid ?? 0)
  }
  get isEligibleToVote(): boolean {
    return this.#eligibility?.isEligible !== false
  }
  get epochs(): Epochs {
    invariant(this.#epochs !== undefined, 'Only a member of an ensemble has epochs.')
    return this.#epochs
  }
  get hasUninstalledTree(): boolean {
    return this.#hasUninstalledTree
  }
  get isFullSyncRequested(): boolean {
    return this.#isFullSyncRequested
  }
  get logRange(): ReadonlyLogRange {
    return this.#logRange
  }
  get snapshotBytes(): number {
    return this.#snapshotBytes
  }

  acceptEpoch(epoch: number): Promise<void> {
    invariant(this.#epochs !== undefined, 'Only a member of an ensemble has epochs.')
    return this.#epochs.accept(epoch)
  }

  setCurrentEpoch(epoch: number): Promise<void> {
    invariant(this.#epochs !== undefined, 'Only a member of an ensemble has epochs.')
    invariant(!this.#hasUninstalledTree, 'The history of an epoch is durable before the epoch is current.', {
      epoch,
    })
    return this.#epochs.setCurrent(epoch)
  }

  openWriter(events: TxnLogEvents): LogWriter {
    invariant(this.#writer === undefined, 'A role writes only once the role before it is settled.')
    invariant(!this.#hasUninstalledTree, 'A role writes only behind a history that is on disk.')
    this.#writer = new RoleLogWriter({
      settings: this.#settings,
      ports: this.#ports,
      folder: this.folders.logs,
      lastZxid: this.tree.lastZxid,
      sinceSnapshot: this.#sinceSnapshot,
      logRange: this.#logRange,
      nodeCount: () => this.tree.nodeCount,
      events,
      acceptedEpoch: () => this.#epochs?.accepted ?? Infinity,
    })
    return this.#writer
  }

  apply(payload: Uint8Array): LoggedTxn {
    const logged = decodeLoggedTxn(new Reader(payload))
    const { header, txn, digest } = logged
    const isNext = header.zxid > this.tree.lastZxid
    if (txn.type === OpCode.createSession) this.sessions.set(header.sessionId, txn.timeOut)
    else if (txn.type === OpCode.closeSession) this.sessions.delete(header.sessionId)
    this.tree.apply(header, txn)
    // A tree that came while it changed agrees with its leader's only once all of the stream is applied.
    const compared =
      isNext && this.#canCompareDigests && !this.#hasUninstalledTree && this.#settings.digestEnabled
    if (!compared || digest === undefined || this.tree.matches(digest)) return logged
    if (!hasNonAsciiPaths(this.tree)) throw new DivergenceError(header.zxid)
    this.#canCompareDigests = false
    this.#ports.logger.warn(
      { zxid: formatZxid(header.zxid) },
      'Digests are not compared any more: there are names beyond ASCII, and the leader encodes names in another way than UTF-8',
    )
    return logged
  }

  readHistory(after: Zxid, upTo: Zxid): AsyncIterableIterator<RawTxn> {
    const reading = new LogCursor(
      after,
      async () => {
        if (this.#writer !== undefined && upTo > this.#writer.durableZxid) await this.#writer.flush()
        return readLog(this.#ports.disk, this.folders.logs, after, upTo)
      },
      { logRange: this.#logRange, folder: this.folders.logs, upTo },
      () => this.#cursors.delete(reading),
    )
    this.#cursors.add(reading)
    return reading
  }

  truncateTo(zxid: Zxid): Promise<TruncateResult> {
    return this.#exclusively(async () => {
      await this.#assertIdle()
      const result = await truncateTo(this.#options, zxid)
      if (!result.exact) {
        const facts = { zxid: formatZxid(zxid), reason: result.reason }
        this.#ports.logger.warn(facts, 'The history cannot be cut there; nothing is changed')
        return result
      }
      this.#adoptRecovery(result.recovery)
      await this.measureSnapshot()
      return { exact: true }
    })
  }

  requestFullSync(): void {
    this.#isFullSyncRequested = this.#isTreeWrong = true
  }

  startEmptyTree(): void {
    this.#assertNoRole()
    this.#replaceTree({ tree: this.#newTree(), sessions: new Map(), nodesWithoutAcl: [] })
  }

  receiveSnapshot(zxid: Zxid): SnapshotSink {
    this.#assertNoRole()
    this.#receiver?.abort()
    this.#receiver = new SnapshotReceiver(this.#ports.clock, this.#newTree(), zxid, (received) =>
      this.#replaceTree(received),
    )
    return this.#receiver
  }

  installSnapshot(): Promise<void> {
    return this.#exclusively(async () => {
      if (!this.#hasUninstalledTree) return
      await this.#stopSnapshots()
      const { tree } = this
      invariant(
        epochOf(tree.lastZxid) <= this.epochs.accepted,
        'A member takes data only of an epoch that it has accepted.',
      )
      this.#rejectNodesWithoutAcl()
      const name = snapshotName(tree.lastZxid, this.#compression)
      const incoming = `${this.folders.snapshots}/${incomingName(name)}`
      const { disk, logger } = this.#ports
      await writeSnapshot(tree, this.sessions, incoming, this.#snapshotOptions())
      await replaceAllFiles(disk, logger, this.folders, name)
      this.#durableZxid = tree.lastZxid
      this.#logRange = new LogRange(tree.lastZxid)
      this.#canCompareDigests = true
      this.#sinceSnapshot = 0
      this.#hasUninstalledTree = this.#isFullSyncRequested = this.#isTreeWrong = false
      await this.#eligibility?.grant()
      await this.measureSnapshot()
      logger.info({ snapshot: name, nodes: tree.nodeCount }, 'The data of the leader are on disk')
    })
  }

  streamSnapshot(sessions: SessionTimeouts = this.sessions): SnapshotSource {
    return new SnapshotStream(this.tree, sessions, this.#ports.clock)
  }

  async takeSnapshot(sessions: SessionTimeouts, signal?: AbortSignal): Promise<WrittenSnapshot> {
    invariant(!this.#hasUninstalledTree, 'A tree that is not that of the files is kept by adopting it.')
    const stop = new AbortController()
    const onAbort = (): void => stop.abort(signal?.reason)
    signal?.addEventListener('abort', onAbort)
    if (signal?.aborted === true) onAbort()
    const writer = this.#writer
    const taking = takeSnapshot(this.tree, sessions, {
      ...this.#snapshotOptions(),
      signal: stop.signal,
      waitUntilDurable: async (lastZxid) => {
        if (writer === undefined || lastZxid <= writer.durableZxid || counterOf(lastZxid) === 0) return
        await writer.flush().catch((error: unknown) => {
          // A role that ends meanwhile makes its appends durable first.
          if (lastZxid > writer.durableZxid) throw error
        })
      },
    })
    this.#snapshots.set(taking, stop)
    try {
      const taken = await taking
      await this.measureSnapshot()
      return taken
    } finally {
      this.#snapshots.delete(taking)
      signal?.removeEventListener('abort', onAbort)
    }
  }

  purge(retain: number): Promise<readonly string[]> {
    return this.#exclusively(async () => {
      if (this.#hasUninstalledTree) return []
      const keepFrom = Math.min(...[...this.#cursors].map(({ after }) => after))
      return purge(this.#ports.disk, this.folders, retain, { compression: this.#ports.compression, keepFrom })
    })
  }

  endRole(sessions?: SessionTimeouts): Promise<void> {
    this.#writer?.revoke()
    this.#receiver?.abort()
    this.#receiver = undefined
    return this.#exclusively(() => this.#endRole(sessions))
  }

  close(): Promise<void> {
    this.#closing ??= this.#exclusively(async () => {
      this.#receiver?.abort()
      await this.#stopSnapshots()
      try {
        await this.#writer?.close()
      } finally {
        await this.#unlock()
      }
    })
    return this.#closing
  }

  /** Finds out how large the newest snapshot is. */
  async measureSnapshot(): Promise<void> {
    const { disk } = this.#ports
    const newest = snapshotsIn(await disk.list(this.folders.snapshots)).at(-1)
    this.#snapshotBytes =
      newest === undefined ? 0 : await disk.size(`${this.folders.snapshots}/${newest.name}`)
  }

  async #endRole(sessions: SessionTimeouts | undefined): Promise<void> {
    const writer = this.#writer
    await writer?.close()
    if (writer?.failure !== undefined) throw writer.failure
    this.#writer = undefined
    if (writer !== undefined) this.#sinceSnapshot = writer.sinceSnapshot
    if (this.#hasUninstalledTree || this.#isTreeWrong || writer?.hasLostAppends === true)
      return this.#reload()
    if (sessions !== undefined) this.sessions = new Map(sessions)
    if (writer === undefined) return
    const last = writer.durableZxid
    const before = this.tree.lastZxid
    // Something was applied that is not in the log: only the log counts.
    if (before > last && counterOf(before) > 0) return this.#reload()
    if (last <= before) return
    try {
      await this.#catchUp(before, last)
    } catch (error) {
      if (this.#eligibility === undefined || !(error instanceof DivergenceError)) throw error
      this.#ports.logger.error(
        { reason: error.message },
        'The data of this server are not those of its leader',
      )
      this.requestFullSync()
      await this.#reload()
    }
  }

  /** Applies what the log has behind the tree. */
  async #catchUp(before: Zxid, last: Zxid): Promise<void> {
    let count = 0
    for await (const { zxid, payload } of readLog(this.#ports.disk, this.folders.logs, before, last)) {
      invariant(count > 0 || isSuccessor(zxid, before), 'The log goes on where the tree ends.', {
        tree: formatZxid(before),
        log: formatZxid(zxid),
      })
      this.apply(payload)
      count++
    }
    invariant(this.tree.lastZxid === last, 'A role leaves a tree that has all of its log.', {
      tree: formatZxid(this.tree.lastZxid),
      log: formatZxid(last),
    })
    const facts = { from: formatZxid(before), to: formatZxid(last), transactions: count }
    this.#ports.logger.info(facts, 'Applied what was logged and not yet committed when the role ended')
  }

  async #reload(): Promise<void> {
    await this.#stopSnapshots()
    this.#isTreeWrong = false
    this.#ports.logger.info(
      {},
      'Loading the data anew, because the role ended before they were right and complete',
    )
    this.#adoptRecovery(await recoverOrRevokeEligibility(this.#options, this.#eligibility))
    if (!this.isEligibleToVote) this.#isFullSyncRequested = true
    await this.measureSnapshot()
  }

  #adoptRecovery(recovery: Recovery): void {
    this.tree = recovery.tree
    this.sessions = recovery.sessions
    this.#durableZxid = recovery.lastZxid
    this.#logRange = recovery.logRange
    this.#canCompareDigests = recovery.canCompareDigests
    this.#sinceSnapshot = recovery.replayed
    this.#hasUninstalledTree = false
    this.#nodesWithoutAcl = []
  }

  #replaceTree({ tree, sessions, nodesWithoutAcl: unlisted }: ReceivedSnapshot): void {
    if (!this.#hasUninstalledTree) this.#durableZxid = this.lastZxid
    this.#hasUninstalledTree = true
    this.tree = tree
    this.sessions = sessions
    this.#nodesWithoutAcl = unlisted
  }

  #newTree(): Tree {
    return this.#options.createTree()
  }

  #rejectNodesWithoutAcl(): void {
    const { tree } = this
    const left = this.#nodesWithoutAcl.find(
      (path) => tree.has(path) && tree.aclIdOf(tree.find(path)) === OPEN_ACL_ID,
    )
    if (left === undefined) return
    throw new RecoveryError(
      `Expected the access list of ${left} in the snapshot of the leader or behind it, got neither`,
      this.folders.snapshots,
      'Connect again; the data on disk are as before.',
    )
  }

  #assertNoRole(): void {
    invariant(this.#writer === undefined, 'Data are replaced only while no role writes.')
  }

  /** No role and no snapshot is writing. */
  async #assertIdle(): Promise<void> {
    this.#assertNoRole()
    await this.#stopSnapshots()
  }

  /** Gives up snapshots that are being taken: they are of a tree that is about to count no more. */
  async #stopSnapshots(): Promise<void> {
    for (const stop of this.#snapshots.values()) stop.abort(new Error('The data are being replaced'))
    await Promise.allSettled(this.#snapshots.keys())
  }

  get #compression(): SnapshotKind {
    return this.#settings.snapshotCompression as SnapshotKind
  }

  #snapshotOptions(): {
    disk: Platform['disk']
    folder: string
    compression: SnapshotKind
    compressor: Platform['compression']
  } {
    const { disk, compression } = this.#ports
    return { disk, folder: this.folders.snapshots, compression: this.#compression, compressor: compression }
  }

  /** One after the other: what changes more than the end of the log. */
  #exclusively<T>(step: () => Promise<T>): Promise<T> {
    const done = this.#last.then(step)
    this.#last = done.catch(() => {})
    return done
  }
}
