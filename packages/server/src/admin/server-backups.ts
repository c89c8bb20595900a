import type { Disk, Platform } from '@zabra/runtime'
import {
  BackupDuty,
  BackupError,
  Catalog,
  findPrunable,
  openTarget,
  parseCredentials,
  parseKey,
  parseRetention,
  prune,
  removeBackups,
  TargetError,
  writeBackup,
  type BackupOptions,
  type BackupSource,
  type BackupStore,
  type RetentionRule,
  type S3Credentials,
  type WrittenBackup,
} from '../backup/index.ts'
import type { Zxid } from '../core/types.ts'
import { nextTime, useSettingFile, type ServerSettings } from '../settings/index.ts'
import type { AdminTarget } from './admin-target.ts'
import type { BackupReport, WritesBackups } from './backup-report.ts'
import { BackupVerification } from './backup-verification.ts'
import { localSource, servedTree } from './local-source.ts'
import { paced } from './paced.ts'

/** Time between two looks at what is new in the log; after a start, until one member has the duty, also at the duty. */
const TURN_MS = 1000
/** Most time for which a transaction has been committed when a look finds it. */
const SEEN_MS = 1200
/** Time between two looks at the duty of a target. */
const LOOK_MS = 10_000
/** The same while the target has all that was committed. */
const QUIET_LOOK_MS = 60_000
/** Bytes of log after which a part is written before its time. */
const PART_BYTES = 4 << 20
/** Time that a request for a backup waits until one member has the duty. */
const DECISION_MS = 4000
/** Time without a sign of the member on duty after which another one takes over. */
const SILENT_MS = 30_000
/**
 * Ranks by which a member that `backup.member` does not name comes later. It continues the backups in a target when no named member does,
 * since a gap is worse than the load of a backup on another member, and gives the duty back to a named member that can continue.
 */
const SUBSTITUTE_RANK = 1
/**
 * Time that a member leaves the duty longer to others when its own log does not reach back to the last backup, so that transactions in
 * between would be in none. A leader that is a substitute claims three looks after the first in rank; members see a claim up to a look
 * apart, and act on it up to a look late; one look is for a slow target.
 */
const GAP_MS = 6 * LOOK_MS
/**
 * Time that a server gives up the duty after its backups have failed; twice as long after each further time, up to `MAX_PAUSE_MS`, where
 * the attempt has written a snapshot to the data folder.
 */
const PAUSE_MS = 60_000
const MAX_PAUSE_MS = 3_600_000
/** Failures in a row after which a server gives the duty up. */
const MAX_FAILURES = 3
/** Time after a first failure before the next attempt; twice as long after each further one. */
const RETRY_MS = 5000
/** Time before an attempt to make room in a target that takes no more is followed by another one. */
const ROOM_MS = 600_000
/** How far the clock of another member may be ahead for the time of its last backup to be believed. */
const MAX_CLOCK_AHEAD_MS = 60_000
/** Time between two lines of the log about failures, and before the next merge or removal after one that failed. */
const REPORT_MS = 600_000
/** Parts of the log that are removed after a backup at most: the next one waits for it. */
const MAX_REMOVALS = 64
/** Time that a removal of old logs waits for a target. */
const ANSWER_MS = 10_000
/** Time that a stop waits for a target. */
const STOP_MS = 3000

/** Writes backups of a server to the targets in its settings, for as long as it has the duty of them. */
export class ServerBackups implements WritesBackups {
  readonly #targets: readonly TargetBackups[]

  private constructor(targets: readonly TargetBackups[]) {
    this.#targets = targets
  }

  /**
   * Opens the targets in the settings; resolves to undefined without any. Rejects with a `BackupError` for settings that cannot be used, and
   * with a `SettingFileError` for files that they name.
   */
  static async open(settings: ServerSettings, platform: Platform): Promise<ServerBackups | undefined> {
    const { backupTargets, backupKeyFile } = settings
    if (backupTargets.length === 0) return undefined
    const { cryptography, random, disk } = platform
    if (cryptography === undefined)
      throw new BackupError(
        'Cannot write backups: this program gave the server no cryptography. Pass it in its platform, or remove backup.target.',
      )
    const key =
      backupKeyFile === undefined
        ? undefined
        : await useSettingFile('backup.encryption.keyFile', async () =>
            parseKey(
              new TextDecoder().decode(await disk.readFile(backupKeyFile)),
              cryptography,
              backupKeyFile,
            ),
          )
    rulesOf(settings)
    const credentials = credentialsReader(settings, platform)
    const s3 = { endpoint: settings.backupS3Endpoint, region: settings.backupS3Region, credentials }
    const targets: TargetBackups[] = []
    for (const text of backupTargets) {
      const target = await openTarget(text, { ...platform, cryptography }, s3)
      if (target.url.startsWith('s3:')) await useSettingFile('backup.s3.credentialsFile', credentials)
      // A mounted folder may not answer for as long as its machine is away, and a start does not wait for that.
      else void warnBesideData(target.url, settings, platform)
      const store = { target, cryptography, random, key }
      targets.push(new TargetBackups(store, settings, platform))
    }
    return new ServerBackups(targets)
  }

  reports(): readonly BackupReport[] {
    return this.#targets.map((target) => target.report())
  }

  /**
   * Resolves to the transaction after which the next backup reads the log, whichever member makes it; to Infinity where it needs none.
   * Where a target does not answer within seconds, that is as of the last answer: 0 before the first.
   */
  async unsavedAfter(): Promise<Zxid> {
    return Math.min(...(await Promise.all(this.#targets.map((target) => target.unsavedAfter()))))
  }

  /** Begins to write backups of a server. */
  start(server: AdminTarget): void {
    for (const target of this.#targets) target.start(server)
  }

  async runNow(): Promise<number> {
    const begun = await Promise.all(this.#targets.map((target) => target.runNow()))
    return begun.filter(Boolean).length
  }

  /** Cuts running backups short, and gives the duty to other members. */
  async close(): Promise<void> {
    await Promise.all(this.#targets.map((target) => target.close()))
  }
}

/** Warns where a folder of backups is on the file system of the snapshots or the log. Never rejects. */
async function warnBesideData(
  target: string,
  { dataDir, dataLogDir }: ServerSettings,
  { disk, logger }: Pick<Platform, 'disk' | 'logger'>,
): Promise<void> {
  const device = await deviceAt(disk, target.slice('file://'.length))
  if (device === undefined) return
  for (const folder of new Set([dataDir, dataLogDir]))
    if ((await deviceAt(disk, folder)) === device)
      return logger.warn(
        { target, folder },
        'Backups go to the file system of the data, and are lost with it',
      )
}

/** Resolves to the file system on which a folder is, or would be created; undefined where that is unknown. */
async function deviceAt(disk: Disk, folder: string): Promise<number | undefined> {
  const device = await disk.deviceOf?.(folder).catch(() => undefined)
  const slash = folder.lastIndexOf('/')
  const parent = slash < 0 ? '.' : folder.slice(0, Math.max(slash, 1))
  return device !== undefined || parent === folder ? device : deviceAt(disk, parent)
}

/**
 * Returns a reader of the credentials for S3, which is asked before each request. Once the file cannot be used any more, the last ones
 * stay in use, and a line says so once for each reason.
 */
export function credentialsReader(
  settings: Pick<ServerSettings, 'backupS3CredentialsFile'>,
  { disk, logger }: Pick<Platform, 'disk' | 'logger'>,
): () => Promise<S3Credentials> {
  let last: S3Credentials | undefined
  let said: string | undefined
  return async () => {
    try {
      last = await readCredentials(settings, disk)
      said = undefined
    } catch (error) {
      if (last === undefined) throw error
      const reason = error instanceof Error ? error.message : String(error)
      if (reason !== said)
        logger.error({ reason }, 'The credentials for S3 were not read again; the old ones stay in use')
      said = reason
    }
    return last
  }
}

/** Reads the credentials for S3. Rejects where the file cannot be used. */
export async function readCredentials(
  { backupS3CredentialsFile: file }: Pick<ServerSettings, 'backupS3CredentialsFile'>,
  disk: Disk,
): Promise<S3Credentials> {
  if (file !== undefined) return parseCredentials(new TextDecoder().decode(await disk.readFile(file)), file)
  throw new BackupError(
    'Expected backup.s3.credentialsFile, the file with the credentials for S3, got none. Set it.',
  )
}

/** Returns the rules by which backups are removed; undefined where all stay. Throws a `BackupError` for rules that cannot be used. */
const rulesOf = ({ backupRetain }: ServerSettings): readonly RetentionRule[] | undefined =>
  backupRetain === undefined ? undefined : parseRetention(backupRetain)

/** The backups in one target. */
class TargetBackups {
  readonly #store: BackupStore
  readonly #settings: ServerSettings
  readonly #platform: Platform
  readonly #duty: BackupDuty
  readonly #verification: BackupVerification
  #server: AdminTarget | undefined
  #cancelTurn = (): void => {}
  #looking: Promise<void> = Promise.resolve()
  #running: Promise<void> | undefined
  /** The contents of the target; undefined until this server has the duty. */
  #catalog: Catalog | undefined
  /** The transaction after which the next backup reads the log, as far as is known. */
  #unsavedAfter: Zxid = 0
  /** The read of that transaction which has no answer yet. */
  #readingEnd: Promise<void> | undefined
  #lastBackupAt = 0
  /** Whether the contents are known as they are now. */
  #isCatalogCurrent = false
  /** Up to which transaction all are in the target; undefined until this server has found out, on duty. */
  #savedUpTo: Zxid | undefined
  /** Since when there are others, on the monotonic clock; undefined while there are none. */
  #unsavedSince: number | undefined
  #isSnapshotWanted = false
  /** Snapshots in a row that failed, and when the next one may begin, on the monotonic clock. */
  #snapshotFailures = 0
  #snapshotsAt = -Infinity
  /** Why the last snapshot has failed, while the log goes on without it. */
  #snapshotProblem: string | undefined
  /** Whether a snapshot is sent, and a part of the log that is written meanwhile. */
  #isSendingSnapshot = false
  #part: Promise<void> | undefined
  /** Whether the last attempt has written a snapshot to the data folder. */
  #hasTakenSnapshot = false
  /** When this server looked at the duty last, on the monotonic clock. */
  #lookedAt = -Infinity
  /** Until when this server looks often for a member on duty, on the monotonic clock. */
  #hurriesUntil = -Infinity
  /** Called after each look. */
  readonly #onLooked = new Set<() => void>()
  #failures = 0
  #gaps = 0
  #failuresInRow = 0
  /** Why the last backup of this server has failed, and its last look at the target. */
  #backupProblem: string | undefined
  #lookProblem: string | undefined
  /** When a failure was logged last, on the monotonic clock, and how many there were since. */
  #reportedAt = -Infinity
  #unreported = 0
  /** When the next attempt may begin, on the monotonic clock. */
  #retryAt = -Infinity
  /** When parts may be merged, and old files removed, on the monotonic clock. */
  #mergesAt = -Infinity
  #removesAt = -Infinity
  /** When room may be made in a target that takes no more, on the monotonic clock. */
  #makesRoomAt = -Infinity
  /** Until when this server gives up the duty, on the monotonic clock. */
  #pausesUntil = -Infinity
  #isStopping = false
  /** Whether nothing is written any more. */
  #isClosed = false

  constructor(store: BackupStore, settings: ServerSettings, platform: Platform) {
    this.#store = store
    this.#settings = settings
    this.#platform = platform
    this.#duty = new BackupDuty(store, String(settings.serverId), platform)
    this.#verification = new BackupVerification(store, platform, settings)
  }

  get #problem(): string | undefined {
    return this.#lookProblem ?? this.#backupProblem
  }

  /** When a backup was made last, by any member; 0 where that is not known: a time to come is of a clock that was wrong. */
  get #lastKnownBackupAt(): number {
    const latest = this.#platform.clock.wall() + MAX_CLOCK_AHEAD_MS
    return Math.max(0, ...[this.#lastBackupAt, this.#duty.lastBackupAt].filter((time) => time <= latest))
  }

  get #intervalMs(): number {
    const { backupLogIntervalMs, backupSchedule } = this.#settings
    if (backupLogIntervalMs > 0) return backupLogIntervalMs
    const next = nextTime(backupSchedule, this.#platform.clock.wall())
    return next === undefined ? 0 : (nextTime(backupSchedule, next) ?? next) - next
  }

  report(): BackupReport {
    const lastBackupAt = this.#isQuiet ? Math.floor(this.#platform.clock.wall()) : this.#lastKnownBackupAt
    const pieces =
      this.#catalog === undefined ? undefined : [...this.#catalog.snapshots, ...this.#catalog.logs]
    return {
      url: this.#store.target.url,
      isOnDuty: this.#duty.isHeld,
      isDecided: this.#isDecided,
      member: this.#duty.holder,
      isRunning: this.#running !== undefined,
      lastBackupAt: lastBackupAt === 0 ? undefined : lastBackupAt,
      intervalMs: this.#intervalMs,
      failures: this.#failures,
      gaps: this.#gaps,
      problem:
        this.#problem ??
        (this.#snapshotProblem && `no snapshot can be written, the log goes on: ${this.#snapshotProblem}`),
      verified: this.#verification.last,
      contents: pieces && {
        bytes: pieces.reduce((sum, { piece }) => sum + piece.bytes, 0),
        snapshots: this.#catalog!.snapshots.length,
      },
    }
  }

  async unsavedAfter(): Promise<Zxid> {
    // A read that has no answer yet is shared: another one would only wait behind it.
    this.#readingEnd ??= this.#readEnd().finally(() => (this.#readingEnd = undefined))
    await this.#within(ANSWER_MS, this.#readingEnd)
    return this.#unsavedAfter
  }

  /** Reads where the log of the next backup continues, also when another member makes it. */
  async #readEnd(): Promise<void> {
    const { bad, end } = this.#catalog ?? (await Catalog.readNewest(this.#store))
    if (bad.length === 0) this.#unsavedAfter = end?.beforeLast ?? Infinity
  }

  start(server: AdminTarget): void {
    this.#server = server
    this.#hurriesUntil = this.#now() + 2 * SILENT_MS
    this.#scheduleTurn()
  }

  async runNow(): Promise<boolean> {
    if (!this.#isDecided) await this.#decision()
    if (!this.#duty.isHeld || this.#isStopping) return false
    this.#isSnapshotWanted = true
    this.#snapshotsAt = Math.min(this.#snapshotsAt, this.#now() + PAUSE_MS)
    this.#runIfDue()
    return true
  }

  /** Whether this server has the duty, or knows which other one has it: not by a claim of an earlier run of its own, or a damaged one. */
  get #isDecided(): boolean {
    const { isHeld, holder } = this.#duty
    return isHeld || ![undefined, '?', String(this.#settings.serverId)].includes(holder)
  }

  /** Waits until one member has the duty, but not for long. */
  #decision(): Promise<void> {
    return new Promise((resolve) => {
      const end = (): void => {
        cancel()
        this.#onLooked.delete(onLooked)
        resolve()
      }
      const onLooked = (): void => (this.#isDecided || this.#isStopping ? end() : undefined)
      const cancel = this.#platform.clock.after(DECISION_MS, 'decision about the duty of backups', end)
      this.#onLooked.add(onLooked)
    })
  }

  async close(): Promise<void> {
    this.#cancelTurn()
    this.#isStopping = true
    for (const onLooked of this.#onLooked) onLooked()
    await this.#within(STOP_MS, this.#finish())
    this.#isClosed = true
  }

  /** Cuts a running backup short, or else writes the rest of the log; then gives the duty up. */
  async #finish(): Promise<void> {
    this.#isClosed = this.#running !== undefined
    await Promise.all([this.#looking, this.#running, this.#part, this.#verification.end()])
    try {
      const isLogWanted = this.#settings.backupLogIntervalMs > 0 && this.#catalog?.end !== undefined
      if (!this.#isClosed && this.#duty.isHeld && isLogWanted) await this.#backUp(this.#catalog!, 'never')
    } catch (error) {
      this.#backupProblem = this.#failed(error, 'The last transactions are in no backup')
    }
    await this.#duty.release().catch(() => {})
  }

  /** Waits until a promise is resolved or rejected, for `ms` milliseconds at most. */
  #within(ms: number, done: Promise<unknown>): Promise<unknown> {
    const { clock } = this.#platform
    return new Promise((resolve) => {
      const cancel = clock.after(ms, 'answer of the target of backups', () => resolve(undefined))
      void done.then(resolve, resolve).finally(cancel)
    })
  }

  /** When the next part is due, on the monotonic clock; Infinity while nothing is new. */
  get #partDueAt(): number {
    return (this.#unsavedSince ?? Infinity) + this.#settings.backupLogIntervalMs - SEEN_MS
  }

  #scheduleTurn(): void {
    const untilDue = this.#partDueAt - this.#now()
    const ms = untilDue > 0 ? Math.min(TURN_MS, untilDue) : TURN_MS
    this.#cancelTurn = this.#platform.clock.after(ms, 'look at what a backup lacks', () => {
      this.#looking = this.#turn().finally(() => {
        if (!this.#isStopping) this.#scheduleTurn()
      })
    })
  }

  async #turn(): Promise<void> {
    if (this.#isLookDue()) {
      await this.#look()
      for (const onLooked of this.#onLooked) onLooked()
      // A look reports why that cannot be found out.
    } else if (await this.#hasLostLog().catch(() => true)) this.#lookedAt = -Infinity
    else if (this.#duty.isHeld) this.#runIfDue()
  }

  #isLookDue(): boolean {
    const isHurried = !this.#isDecided && this.#problem === undefined && this.#now() < this.#hurriesUntil
    return isHurried || this.#now() - this.#lookedAt >= (this.#isQuiet ? QUIET_LOOK_MS : LOOK_MS)
  }

  /** Whether the member on duty has said that the target has all that this server has applied, and is the one that should have it. */
  get #isQuiet(): boolean {
    const { savedUpTo, isSubstitute } = this.#duty
    const isSettled = this.#isDecided && !isSubstitute && this.#problem === undefined
    return isSettled && savedUpTo !== undefined && this.#appliedZxid <= savedUpTo && this.#appliedZxid > 0
  }

  get #appliedZxid(): Zxid {
    return servedTree(this.#server!)?.lastZxid ?? 0
  }

  async #look(): Promise<void> {
    const wasHeld = this.#duty.isHeld
    this.#lookedAt = this.#now()
    try {
      const isHeld = await this.#claim()
      this.#lookProblem = undefined
      if (isHeld) {
        if (!wasHeld && !this.#isNamed)
          this.#platform.logger.warn(
            { target: this.#store.target.url },
            'Took the duty of backups, which backup.member leaves to others, because none of them goes on with the log',
          )
        this.#runIfDue()
        if (!this.#isStopping) this.#verification.runIfDue(this.#catalog)
      } else {
        this.#catalog = undefined
        // A backup that still runs leaves what was there before others wrote.
        this.#isCatalogCurrent = false
        // A member that takes the duty makes a backup at once.
        this.#savedUpTo = this.#unsavedSince = this.#snapshotProblem = undefined
        // The member that has the duty says whether backups fail.
        if (this.#isDecided) this.#backupProblem = undefined
        await this.#verification.end()
      }
    } catch (error) {
      this.#lookProblem = this.#failed(error, 'The target of backups cannot be used')
      // Backups of a member on duty make room where they fail.
      if (this.#duty.isRefused && !this.#duty.isHeld) await this.#makeRoom()
    }
  }

  /** Resolves to whether this server has the duty. */
  async #claim(): Promise<boolean> {
    const rank = this.#rank()
    if (rank === undefined || this.#now() < this.#pausesUntil) {
      await this.#duty.release()
      // Only looks who has the duty.
      await this.#duty.claim({ ifFreeMs: Infinity, ifSilentMs: Infinity }, 0)
      return false
    }
    if (await this.#hasLostLog()) await this.#duty.release()
    const ifFreeMs = rank * LOOK_MS
    const ifSilentMs = SILENT_MS + ifFreeMs
    const isSubstitute = !this.#isNamed
    return this.#duty.claim(
      {
        ifFreeMs,
        ifSilentMs,
        isSubstitute,
        savedUpTo: this.#savedUpTo,
        applied: this.#appliedZxid,
        delayMs: () => this.#delayMs(),
      },
      this.#lastKnownBackupAt,
    )
  }

  /**
   * Whether the leader has sent this server a snapshot while it had the duty, so that its log does not reach back to the last backup
   * any more.
   */
  async #hasLostLog(): Promise<boolean> {
    const { logRange, role } = this.#server!
    if (!this.#duty.isHeld || this.#running !== undefined || role === 'standalone') return false
    const upTo = this.#catalog?.end?.upTo
    if (upTo === undefined) return false
    return upTo < logRange.after && !(await this.#server!.hasLogAfter(upTo))
  }

  /** Resolves to how much longer this server leaves a free duty to others. */
  async #delayMs(): Promise<number> {
    if (this.#server!.role === 'standalone') return 0
    const { end } = await Catalog.readNewest(this.#store)
    // Where nothing can be continued, the members in the settings begin: others may not even have the same folder.
    if (end === undefined) return this.#isNamed ? 0 : Infinity
    return (await this.#server!.hasLogAfter(end.upTo)) ? 0 : GAP_MS
  }

  /** Returns how many others come before this server; undefined while it may not have the duty. */
  #rank(): number | undefined {
    const server = this.#server!
    const rank = RANKS.get(server.role)
    if (server.isStopping || servedTree(server) === undefined || rank === undefined) return undefined
    if (this.#settings.backupMember === 'any') return rank
    return this.#isNamed ? 0 : rank + SUBSTITUTE_RANK
  }

  /** Whether `backup.member` names this server in its present role. */
  get #isNamed(): boolean {
    const { role } = this.#server!
    const { backupMember: wanted, serverId } = this.#settings
    return (
      wanted === 'any' ||
      wanted === String(serverId) ||
      role === 'standalone' ||
      (wanted === 'observer' && role === 'observing') ||
      (wanted === 'follower' && role === 'following')
    )
  }

  #runIfDue(): void {
    if (this.#isStopping) return
    this.#noteProgress()
    if (this.#running !== undefined) return this.#writePartMeanwhile()
    if (!this.#isDue()) return
    this.#running = this.#run().finally(() => {
      this.#running = undefined
      // A snapshot that was asked for meanwhile.
      if (this.#isSnapshotWanted && this.#duty.isHeld) this.#runIfDue()
    })
  }

  #isDue(): boolean {
    if (this.#now() < this.#retryAt) return false
    if (this.#catalog === undefined) return true
    return this.#isRequestDue || this.#isLogDue() || this.#isSnapshotDue(this.#catalog)
  }

  /** Whether a snapshot was asked for, and may begin. */
  get #isRequestDue(): boolean {
    return this.#isSnapshotWanted && this.#now() >= this.#snapshotsAt
  }

  /** Notes since when transactions are in no backup, or that the backups have all of them. */
  #noteProgress(): void {
    if (this.#settings.backupLogIntervalMs === 0 || this.#savedUpTo === undefined) return
    if (this.#appliedZxid > this.#savedUpTo) this.#unsavedSince ??= this.#now()
    else this.#lastBackupAt = Math.floor(this.#platform.clock.wall())
  }

  /** Whether transactions are in no backup for long enough, or are many. */
  #isLogDue(): boolean {
    if (this.#settings.backupLogIntervalMs === 0) return false
    if (this.#savedUpTo === undefined) return true
    if (this.#appliedZxid <= this.#savedUpTo) return false
    const isLong = this.#now() >= this.#partDueAt
    return isLong || this.#server!.logRange.bytesAfter(this.#savedUpTo) >= PART_BYTES
  }

  async #run(): Promise<void> {
    try {
      if (this.#catalog === undefined || !this.#isCatalogCurrent || this.#isSnapshotDue(this.#catalog)) {
        this.#catalog = await Catalog.read(this.#store, this.#catalog)
        this.#isCatalogCurrent = true
      }
      const isSnapshotDue = this.#isRequestDue || this.#isSnapshotDue(this.#catalog)
      if (!isSnapshotDue && !this.#isLogDue()) {
        this.#backupProblem = undefined
        return
      }
      const written = await this.#backUpOrGoOn(this.#catalog, isSnapshotDue ? 'always' : 'if-needed')
      await this.#removeOld(written.snapshot !== undefined)
    } catch (error) {
      this.#isCatalogCurrent = false
      this.#backupProblem = this.#failed(error, 'A backup has failed')
      this.#pauseAfterFailure()
    }
  }

  /** Makes a backup. Where that fails, makes room in the target, and goes on with the log alone if it was a snapshot that failed. */
  async #backUpOrGoOn(catalog: Catalog, wanted: 'always' | 'if-needed'): Promise<WrittenBackup> {
    const isRequested = this.#isRequestDue
    try {
      return await this.#backUp(catalog, wanted, { merges: this.#now() >= this.#mergesAt })
    } catch (error) {
      if (this.#isStopping) throw error
      // Where a larger part is what fails, small ones go on.
      this.#mergesAt = this.#now() + REPORT_MS
      // Not where the target has another history: the data of this server may be the wrong ones.
      if (!(error instanceof BackupError) || error instanceof TargetError) await this.#makeRoom()
      if (wanted === 'always') return this.#goOnWithout(error, isRequested)
      throw error
    }
  }

  /** Writes the log without the snapshot that has failed. Rejects with the error of the snapshot where that fails too. */
  async #goOnWithout(error: unknown, isRequested: boolean): Promise<WrittenBackup> {
    this.#snapshotFailures++
    // Not for ever.
    this.#isSnapshotWanted ||= isRequested && this.#snapshotFailures < MAX_FAILURES
    const catalog = this.#catalog
    if (catalog?.end === undefined) throw error
    // The log is tried again before the next snapshot is.
    this.#snapshotsAt = this.#now() + delayAfter(this.#snapshotFailures, MAX_PAUSE_MS)
    this.#hasTakenSnapshot = false
    const written = await this.#backUp(catalog, 'never').catch(() => {
      throw error
    })
    const reason = error instanceof Error ? error.message : String(error)
    const facts = { target: this.#store.target.url, reason }
    if (this.#snapshotProblem === undefined)
      this.#platform.logger.warn(facts, 'A backup with a snapshot has failed; the log goes on without it')
    this.#snapshotProblem = reason
    this.#failures++
    return written
  }

  /** Begins a part of the log while a snapshot is sent, which may take hours, if one is due. */
  #writePartMeanwhile(): void {
    if (!this.#isSendingSnapshot || this.#part !== undefined) return
    if (this.#catalog?.end === undefined || this.#now() < this.#retryAt || !this.#isLogDue()) return
    this.#part = this.#backUp(this.#catalog, 'never')
      // The backup whose snapshot is sent has the rest, or reports why not.
      .catch(() => (this.#retryAt = this.#now() + PAUSE_MS))
      .then(() => (this.#part = undefined))
  }

  /** Ends parts of the log beside a snapshot. Resolves to the catalog with them. */
  async #snapshotSent(catalog: Catalog): Promise<Catalog> {
    this.#isSendingSnapshot = false
    await this.#part
    return this.#catalog ?? catalog
  }

  /** Whether the newest snapshot in the target is old enough, and transactions have come since. */
  #isSnapshotDue({ snapshots }: Catalog): boolean {
    if (this.#now() < this.#snapshotsAt) return false
    const newest = snapshots.at(-1)
    const { backupSchedule } = this.#settings
    if (backupSchedule === 0) return false
    if (newest === undefined) return true
    const now = this.#platform.clock.wall()
    const after = (time: number): number => nextTime(backupSchedule, time) ?? Infinity
    // One from beyond the next time is of a clock that was ahead.
    const isOld = now >= after(newest.time) || newest.time > after(now)
    return isOld && (servedTree(this.#server!)?.lastZxid ?? 0) > newest.exactAt
  }

  async #backUp(
    catalog: Catalog,
    wanted: BackupOptions['snapshot'],
    { merges = false } = {},
  ): Promise<WrittenBackup> {
    const { clock, compression, logger } = this.#platform
    const [begun, begunAt, applied] = [clock.wall(), this.#now(), this.#appliedZxid]
    const isSnapshot = wanted === 'always'
    if (isSnapshot) {
      this.#isSnapshotWanted = false
      this.#isSendingSnapshot = true
    }
    if (wanted !== 'never') this.#hasTakenSnapshot = false
    const written = await writeBackup(this.#store, this.#source(), {
      clock,
      compression,
      snapshot: wanted,
      catalog,
      merges,
      ...(isSnapshot ? { snapshotSent: () => this.#snapshotSent(catalog) } : {}),
    }).catch(async (error: unknown) => {
      if (isSnapshot) await this.#snapshotSent(catalog)
      throw error
    })
    const { snapshot, log, hasGap } = written
    // Parts may have been added while a snapshot was sent.
    this.#catalog = (this.#catalog ?? catalog).with([snapshot, log].filter((one) => one !== undefined))
    this.#lastBackupAt = Math.floor(begun)
    this.#savedUpTo = Math.max(applied, this.#catalog.end?.upTo ?? 0)
    // What was committed meanwhile has waited since then.
    this.#unsavedSince = this.#appliedZxid > this.#savedUpTo ? begunAt : undefined
    this.#failuresInRow = 0
    this.#backupProblem = undefined
    const { url } = this.#store.target
    const bytes = (snapshot?.piece.bytes ?? 0) + (log?.piece.bytes ?? 0)
    if (snapshot !== undefined) logger.info({ target: url, bytes }, 'Made a backup with a snapshot')
    else if (log !== undefined) logger.debug({ target: url, bytes }, 'Made a backup of the log')
    if (hasGap) this.#gaps++
    if (hasGap)
      logger.warn(
        { target: url },
        'Transactions since the last backup are in none: the log of this server does not have them, and no other member has gone on with the log. Set backup.logInterval to a shorter time',
      )
    if (snapshot === undefined) return written
    this.#snapshotFailures = 0
    this.#snapshotsAt = -Infinity
    this.#snapshotProblem = undefined
    return written
  }

  /** Removes what is not needed any more, after a snapshot also by the rules. A target that refuses that gets backups nevertheless. */
  async #removeOld(hasSnapshot: boolean): Promise<void> {
    if (this.#now() < this.#removesAt) return
    try {
      this.#catalog = await this.#removeReplaced(this.#catalog!)
      if (hasSnapshot) this.#catalog = await this.#prune(this.#catalog)
    } catch (error) {
      this.#removesAt = this.#now() + REPORT_MS
      this.#backupProblem = this.#failed(error, 'Old files of backups cannot be removed')
    }
  }

  /**
   * Removes what no rule keeps from a target that refuses writes, which takes no space there. Does so only where the newest backup is of this
   * ensemble: others may have the same target by mistake. Never rejects: the failed write is reported.
   */
  async #makeRoom(): Promise<void> {
    if (this.#now() < this.#makesRoomAt) return
    this.#makesRoomAt = this.#now() + ROOM_MS
    try {
      const catalog = await Catalog.read(this.#store, this.#catalog)
      const { clusterId } = this.#server!
      const newest = [catalog.snapshots.at(-1), catalog.logs.at(-1)]
      const isOwn = clusterId !== undefined && newest.some((one) => one?.cluster === clusterId)
      if (!isOwn || catalog.bad.length > 0) return
      const kept = await this.#prune(await this.#removeReplaced(catalog))
      if (this.#duty.isHeld) this.#catalog = kept
    } catch {
      // The next attempt may do more.
    }
  }

  /** Removes the parts of the log that larger ones have replaced. */
  async #removeReplaced(catalog: Catalog): Promise<Catalog> {
    const replaced = catalog.replaced(this.#platform.clock.wall()).slice(0, MAX_REMOVALS)
    if (replaced.length === 0) return catalog
    await removeBackups(this.#store, replaced)
    return catalog.with([], replaced)
  }

  /** Removes what no rule keeps. Resolves to the rest. */
  async #prune(catalog: Catalog): Promise<Catalog> {
    const rules = rulesOf(this.#settings)
    if (rules === undefined) return catalog
    const found = await findPrunable(this.#store, catalog, rules, this.#platform.clock.wall())
    if (found.manifests.length + found.pieces.length + found.unfinished.length === 0) return catalog
    await prune(this.#store, found)
    return Catalog.read(this.#store, catalog)
  }

  /** Returns this server as a source whose files are read at the rate in the settings, and cut short when it stops. */
  #source(): BackupSource {
    const limit = {
      clock: this.#platform.clock,
      bytesPerSecond: () => this.#settings.backupRateBytes,
      isStopped: () => this.#isClosed,
    }
    return localSource(
      this.#server!,
      (chunks) => paced(chunks, limit),
      () => (this.#hasTakenSnapshot = true),
    )
  }

  /** Counts and logs a failure, and returns its reason. */
  #failed(error: unknown, sentence: string): string {
    const reason = error instanceof Error ? error.message : String(error)
    if (this.#isClosed) return reason
    const { logger } = this.#platform
    const facts = { target: this.#store.target.url, reason, times: ++this.#unreported }
    // A target that stays away is a line each ten minutes.
    if (this.#now() - this.#reportedAt < REPORT_MS) logger.debug(facts, sentence)
    else {
      logger.error(facts, sentence)
      this.#reportedAt = this.#now()
      this.#unreported = 0
    }
    this.#failures++
    return reason
  }

  /** Waits before the next attempt, and gives the duty up to others after several. */
  #pauseAfterFailure(): void {
    const failures = ++this.#failuresInRow
    const longest = this.#hasTakenSnapshot ? MAX_PAUSE_MS : PAUSE_MS
    this.#retryAt = this.#now() + Math.min(PAUSE_MS, RETRY_MS * 2 ** (failures - 1))
    if (failures >= MAX_FAILURES) this.#pausesUntil = this.#now() + delayAfter(failures, longest)
  }

  #now(): number {
    return this.#platform.clock.monotonic()
  }
}

/** Returns how long to wait after failures in a row, which is at most `longest` from the third one on. */
const delayAfter = (failures: number, longest: number): number =>
  failures < MAX_FAILURES
    ? RETRY_MS * 2 ** (failures - 1)
    : Math.min(longest, PAUSE_MS * 2 ** (failures - MAX_FAILURES))

/** Who takes a free duty first: a backup disturbs an observer least, and the leader most. */
const RANKS: ReadonlyMap<AdminTarget['role'], number> = new Map([
  ['standalone', 0],
  ['observing', 0],
  ['following', 1],
  ['leading', 2],
])
