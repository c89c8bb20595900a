import { counterOf, epochOf, formatZxid, OpCode, Reader } from '@zabra/protocol'
import { invariant, type Ports } from '@zabra/runtime'
import { OPEN, type Tree } from '../../core/tree/index.ts'
import type { LoggedTxn, SessionId, Zxid } from '../../core/types.ts'
import {
  decodeLoggedTxn,
  DivergedFilesError,
  DivergenceError,
  follows,
  foldersOf,
  incomingName,
  openEpochs,
  purge,
  readLog,
  recover,
  RecoveryError,
  replaceBy,
  snapshotName,
  snapshotsIn,
  takeSnapshot,
  truncateTo,
  VERSION_FOLDER,
  VerifiedRange,
  writeSnapshot,
  type DataFolders,
  type EpochFiles,
  type RawTxn,
  type Recovery,
  type RecoveryOptions,
  type SessionTimeouts,
  type SnapshotKind,
  type SnapshotTaken,
  type TxnLogEvents,
} from '../../log/index.ts'
import { namesBeyondAscii } from '../../log/recover.ts'
import type { ServerSettings } from '../../settings/index.ts'
import type {
  Epochs,
  LogRange,
  RoleWriter,
  SnapshotSink,
  SnapshotSource,
  Truncated,
  Vault,
} from './contract.ts'
import { lockFolders, recoveryOptions } from './folders.ts'
import { LogReading } from './log-reading.ts'
import { Receiver, type Received } from './receiver.ts'
import { RoleLog } from './role-log.ts'
import { TreeStream } from './streams.ts'
import { Trust } from './trust.ts'

/**
 * Locks the folders, recovers what is in them and, for a member of an ensemble, judges the epochs. Rejects with a
 * `DamageError`, `RecoveryError`, `FolderLockedError` or `DiskError`; each message says what to do.
 */
export async function openVault(
  settings: ServerSettings,
  ports: Ports,
  { member }: { readonly member: boolean },
): Promise<Vault> {
  const { token, unlock } = await lockFolders(settings, ports)
  // The folder tells the token to nobody but who may read the data.
  const hashKey = Number.parseInt(token.slice(0, 8), 16)
  try {
    if (!member) await Trust.refuseAlone(ports, foldersOf(settings))
    const trust = member ? await Trust.open(ports, foldersOf(settings)) : undefined
    const options = recoveryOptions(settings, ports, hashKey)
    const recovery = await recoverOrDistrust(options, trust)
    if (recovery.fresh) await trust?.judgeEmpty(settings)
    const folder = `${settings.dataDir}/${VERSION_FOLDER}`
    const epochs = member ? await openEpochs(ports.disk, ports.logger, folder, recovery.lastZxid) : undefined
    const vault = new OpenVault(settings, ports, recovery, { options, epochs, trust, unlock })
    await vault.measure()
    return vault
  } catch (error) {
    await unlock()
    throw error
  }
}

/** Files that are whole and not right end a server that stands alone. A member has others to ask. */
async function recoverOrDistrust(options: RecoveryOptions, trust: Trust | undefined): Promise<Recovery> {
  try {
    return await recover(options)
  } catch (error) {
    if (trust === undefined || !(error instanceof DivergedFilesError)) throw error
    await trust.withdraw(error.message)
    return recover(options)
  }
}

interface Opened {
  readonly options: RecoveryOptions
  readonly epochs: EpochFiles | undefined
  readonly trust: Trust | undefined
  readonly unlock: () => Promise<void>
}

class OpenVault implements Vault {
  readonly #settings: ServerSettings
  readonly #ports: Ports
  readonly #options: RecoveryOptions
  readonly #epochs: EpochFiles | undefined
  readonly #trust: Trust | undefined
  readonly #unlock: () => Promise<void>
  readonly folders: DataFolders
  readonly fresh: boolean
  tree: Tree
  sessions: Map<SessionId, number>
  /** What files say, while the tree is not theirs. */
  #onDisk: Zxid
  #verified: VerifiedRange
  #comparable: boolean
  #replaced = false
  #unlisted: readonly string[] = []
  #asksForAll: boolean
  /** The tree in memory was found to be wrong. */
  #isWrong = false
  #writer: RoleLog | undefined
  #sinceSnapshot: number
  #snapshotBytes = 0
  #receiver: Receiver | undefined
  readonly #snapshots = new Map<Promise<unknown>, AbortController>()
  readonly #readings = new Set<LogReading>()
  #last: Promise<unknown> = Promise.resolve()
  #closing: Promise<void> | undefined

  constructor(
    settings: ServerSettings,
    ports: Ports,
    recovery: Recovery,
    { options, epochs, trust, unlock }: Opened,
  ) {
    this.#settings = settings
    this.#ports = ports
    this.#options = options
    this.#epochs = epochs
    this.#trust = trust
    this.#asksForAll = !this.trusted
    this.#unlock = unlock
    this.folders = foldersOf(settings)
    this.fresh = recovery.fresh
    this.tree = recovery.tree
    this.sessions = recovery.sessions
    this.#onDisk = recovery.lastZxid
    this.#verified = recovery.verified
    this.#comparable = recovery.comparable
    this.#sinceSnapshot = recovery.replayed
  }

  get lastZxid(): Zxid {
    return this.#replaced ? this.#onDisk : Math.max(this.tree.lastZxid, this.#writer?.lastZxid ?? 0)
  }
  get trusted(): boolean {
    return this.#trust?.given !== false
  }
  get epochs(): Epochs {
    invariant(this.#epochs !== undefined, 'Only a member of an ensemble has epochs.')
    return this.#epochs
  }
  get replaced(): boolean {
    return this.#replaced
  }
  get asksForAll(): boolean {
    return this.#asksForAll
  }
  get verified(): LogRange {
    return this.#verified
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
    invariant(!this.#replaced, 'The history of an epoch is durable before the epoch is current.', { epoch })
    return this.#epochs.setCurrent(epoch)
  }

  openWriter(events: TxnLogEvents): RoleWriter {
    invariant(this.#writer === undefined, 'A role writes only once the role before it is settled.')
    invariant(!this.#replaced, 'A role writes only behind a history that is on disk.')
    this.#writer = new RoleLog({
      settings: this.#settings,
      ports: this.#ports,
      folder: this.folders.logs,
      lastZxid: this.tree.lastZxid,
      sinceSnapshot: this.#sinceSnapshot,
      verified: this.#verified,
      znodes: () => this.tree.nodeCount,
      events,
      accepted: () => this.#epochs?.accepted ?? Infinity,
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
    const compared = isNext && this.#comparable && !this.#replaced && this.#settings.digestEnabled
    if (!compared || digest === undefined || this.tree.matches(digest)) return logged
    if (!namesBeyondAscii(this.tree)) throw new DivergenceError(header.zxid)
    this.#comparable = false
    this.#ports.logger.warn(
      { zxid: formatZxid(header.zxid) },
      'Digests are not compared any more: there are names beyond ASCII, and the leader encodes names in another way than UTF-8',
    )
    return logged
  }

  history(after: Zxid, upTo: Zxid): AsyncIterableIterator<RawTxn> {
    const reading = new LogReading(
      after,
      async () => {
        if (this.#writer !== undefined && upTo > this.#writer.durableZxid) await this.#writer.flush()
        return readLog(this.#ports.disk, this.folders.logs, after, upTo)
      },
      { verified: this.#verified, folder: this.folders.logs, upTo },
      () => this.#readings.delete(reading),
    )
    this.#readings.add(reading)
    return reading
  }

  truncateTo(zxid: Zxid): Promise<Truncated> {
    return this.#alone(async () => {
      await this.#idle()
      const result = await truncateTo(this.#options, zxid)
      if (!result.exact) {
        const facts = { zxid: formatZxid(zxid), reason: result.reason }
        this.#ports.logger.warn(facts, 'The history cannot be cut there; nothing is changed')
        return result
      }
      this.#take(result.recovery)
      await this.measure()
      return { exact: true }
    })
  }

  askForAll(): void {
    this.#asksForAll = this.#isWrong = true
  }

  beginEmpty(): void {
    this.#expectNoRole()
    this.#replaceTree({ tree: this.#newTree(), sessions: new Map(), unlisted: [] })
  }

  receiveSnapshot(zxid: Zxid): SnapshotSink {
    this.#expectNoRole()
    this.#receiver?.abort()
    this.#receiver = new Receiver(this.#ports.clock, this.#newTree(), zxid, (received) =>
      this.#replaceTree(received),
    )
    return this.#receiver
  }

  adopt(): Promise<void> {
    return this.#alone(async () => {
      if (!this.#replaced) return
      await this.#stopSnapshots()
      const { tree } = this
      invariant(
        epochOf(tree.lastZxid) <= this.epochs.accepted,
        'A member takes data only of an epoch that it has accepted.',
      )
      this.#refuseUnlisted()
      const name = snapshotName(tree.lastZxid, this.#compression)
      const incoming = `${this.folders.snapshots}/${incomingName(name)}`
      const { disk, logger } = this.#ports
      await writeSnapshot(tree, this.sessions, incoming, this.#snapshotOptions())
      await replaceBy(disk, logger, this.folders, name)
      this.#onDisk = tree.lastZxid
      this.#verified = new VerifiedRange(tree.lastZxid)
      this.#comparable = true
      this.#sinceSnapshot = 0
      this.#replaced = this.#asksForAll = this.#isWrong = false
      await this.#trust?.restore()
      await this.measure()
      logger.info({ snapshot: name, nodes: tree.nodeCount }, 'The data of the leader are on disk')
    })
  }

  streamSnapshot(sessions: SessionTimeouts = this.sessions): SnapshotSource {
    return new TreeStream(this.tree, sessions, this.#ports.clock)
  }

  async takeSnapshot(sessions: SessionTimeouts, signal?: AbortSignal): Promise<SnapshotTaken> {
    invariant(!this.#replaced, 'A tree that is not that of the files is kept by adopting it.')
    const stop = new AbortController()
    const onAbort = (): void => stop.abort(signal?.reason)
    signal?.addEventListener('abort', onAbort)
    if (signal?.aborted === true) onAbort()
    const writer = this.#writer
    const taking = takeSnapshot(this.tree, sessions, {
      ...this.#snapshotOptions(),
      signal: stop.signal,
      ready: async (lastZxid) => {
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
      await this.measure()
      return taken
    } finally {
      this.#snapshots.delete(taking)
      signal?.removeEventListener('abort', onAbort)
    }
  }

  purge(retain: number): Promise<readonly string[]> {
    return this.#alone(async () => {
      if (this.#replaced) return []
      const keepFrom = Math.min(...[...this.#readings].map(({ after }) => after))
      return purge(this.#ports.disk, this.folders, retain, { compression: this.#ports.compression, keepFrom })
    })
  }

  settle(sessions?: SessionTimeouts): Promise<void> {
    this.#writer?.revoke()
    this.#receiver?.abort()
    this.#receiver = undefined
    return this.#alone(() => this.#settle(sessions))
  }

  close(): Promise<void> {
    this.#closing ??= this.#alone(async () => {
      this.#receiver?.abort()
      await this.#stopSnapshots()
      try {
        await this.#writer?.end()
      } finally {
        await this.#unlock()
      }
    })
    return this.#closing
  }

  /** Finds out how large the newest snapshot is. */
  async measure(): Promise<void> {
    const { disk } = this.#ports
    const newest = snapshotsIn(await disk.list(this.folders.snapshots)).at(-1)
    this.#snapshotBytes =
      newest === undefined ? 0 : await disk.size(`${this.folders.snapshots}/${newest.name}`)
  }

  async #settle(sessions: SessionTimeouts | undefined): Promise<void> {
    const writer = this.#writer
    await writer?.end()
    if (writer?.failure !== undefined) throw writer.failure
    this.#writer = undefined
    if (writer !== undefined) this.#sinceSnapshot = writer.sinceSnapshot
    if (this.#replaced || this.#isWrong || writer?.lost === true) return this.#reload()
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
      if (this.#trust === undefined || !(error instanceof DivergenceError)) throw error
      this.#ports.logger.error(
        { reason: error.message },
        'The data of this server are not those of its leader',
      )
      this.askForAll()
      await this.#reload()
    }
  }

  /** Applies what the log has behind the tree. */
  async #catchUp(before: Zxid, last: Zxid): Promise<void> {
    let count = 0
    for await (const { zxid, payload } of readLog(this.#ports.disk, this.folders.logs, before, last)) {
      invariant(count > 0 || follows(zxid, before), 'The log goes on where the tree ends.', {
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
    this.#isWrong = false
    this.#ports.logger.info(
      {},
      'Loading the data anew, because the role ended before they were right and complete',
    )
    this.#take(await recoverOrDistrust(this.#options, this.#trust))
    if (!this.trusted) this.#asksForAll = true
    await this.measure()
  }

  #take(recovery: Recovery): void {
    this.tree = recovery.tree
    this.sessions = recovery.sessions
    this.#onDisk = recovery.lastZxid
    this.#verified = recovery.verified
    this.#comparable = recovery.comparable
    this.#sinceSnapshot = recovery.replayed
    this.#replaced = false
    this.#unlisted = []
  }

  #replaceTree({ tree, sessions, unlisted }: Received): void {
    if (!this.#replaced) this.#onDisk = this.lastZxid
    this.#replaced = true
    this.tree = tree
    this.sessions = sessions
    this.#unlisted = unlisted
  }

  #newTree(): Tree {
    return this.#options.createTree()
  }

  #refuseUnlisted(): void {
    const { tree } = this
    const left = this.#unlisted.find((path) => tree.has(path) && tree.aclIdOf(tree.find(path)) === OPEN)
    if (left === undefined) return
    throw new RecoveryError(
      `Expected the access list of ${left} in the snapshot of the leader or behind it, got neither`,
      this.folders.snapshots,
      'Connect again; the data on disk are as before.',
    )
  }

  #expectNoRole(): void {
    invariant(this.#writer === undefined, 'Data are replaced only while no role writes.')
  }

  /** No role and no snapshot is writing. */
  async #idle(): Promise<void> {
    this.#expectNoRole()
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
    disk: Ports['disk']
    folder: string
    compression: SnapshotKind
    compressor: Ports['compression']
  } {
    const { disk, compression } = this.#ports
    return { disk, folder: this.folders.snapshots, compression: this.#compression, compressor: compression }
  }

  /** One after the other: what changes more than the end of the log. */
  #alone<T>(step: () => Promise<T>): Promise<T> {
    const done = this.#last.then(step)
    this.#last = done.catch(() => {})
    return done
  }
}
