import type { Platform } from '@zabra/runtime'
import { NamespaceTraffic, Tree } from '../core/tree/index.ts'
import {
  dataFoldersOf,
  DivergedFilesError,
  lockFolder,
  openEpochFiles,
  pauseAfter,
  recover,
  RecoveryProgress,
  type DataFolders,
  type Recovery,
  type RecoveryOptions,
} from '../persistence/index.ts'
import { Database } from './database.ts'
import { SnapshotFiles } from './snapshot-files.ts'
import type { DatabaseSettings } from './types.ts'
import { VoteEligibility } from './vote-eligibility.ts'

/** How long files are read without a pause, in milliseconds: the admin server is open meanwhile, also when a member reads its files again. */
const SLICE_MS = 3

export interface OpenOptions {
  readonly isMember: boolean
  /** Called before anything else in the folders is read or changed; where it rejects, they stay as they are. */
  readonly locked?: (folders: DataFolders) => Promise<void>
  /** Counts what is read. */
  readonly progress?: RecoveryProgress | undefined
  /** Ends the reading of the files: the database is not opened, and rejects with the reason. */
  readonly signal?: AbortSignal | undefined
}

/**
 * Locks the folders, recovers what is in them and, for a member of an ensemble, checks the epochs. Rejects with a
 * `DamageError`, `RecoveryError`, `FolderLockedError` or `DiskError`, whose message says what to do.
 */
export async function openDatabase(
  settings: DatabaseSettings,
  platform: Platform,
  {
    isMember,
    locked,
    progress = new RecoveryProgress(() => platform.clock.monotonic()),
    signal,
  }: OpenOptions,
): Promise<Database> {
  const { disk, logger } = platform
  const folders = dataFoldersOf(settings)
  const { token, unlock } = await lockFolders(settings, platform)
  try {
    await locked?.(folders)
    if (!isMember) await VoteEligibility.rejectStandalone(platform, folders)
    const eligibility = isMember ? await VoteEligibility.open(platform, folders) : undefined
    // Only processes that can read the data folder can know the token.
    const hashKey = Number.parseInt(token.slice(0, 8), 16)
    const options = { ...recoveryOptions(settings, platform, hashKey), progress }
    const recoverFiles = (given: RecoveryOptions): Promise<Recovery> =>
      progress.during(() => recoverOrRevokeEligibility(given, eligibility))
    const pause = pauseAfter(platform.clock, SLICE_MS, () => signal?.throwIfAborted())
    const recovery = await recoverFiles({ ...options, pause })
    if (recovery.wasEmpty) await eligibility?.checkEmptyStart(settings)
    const epochs = isMember
      ? await openEpochFiles(disk, logger, folders.snapshots, recovery.lastZxid)
      : undefined
    // A process that was killed may have renamed files that a power cut takes back: epochs, the cluster id, feature levels. What counts
    // from here on must stay. Recovery has synced the folder of the newest log.
    const isSynced = folders.logs === folders.snapshots && recovery.logs.length > 0
    if (!isSynced && (!recovery.wasEmpty || (epochs !== undefined && epochs.accepted > 0)))
      await disk.syncFolder(folders.snapshots)
    const snapshots = new SnapshotFiles({
      disk,
      folder: folders.snapshots,
      compression: settings.snapshotCompression,
      compressor: platform.compression,
    })
    await snapshots.measure()
    const context = {
      settings,
      platform,
      folders,
      options,
      snapshots,
      epochs,
      eligibility,
      recoverFiles: () => recoverFiles(options),
      unlock,
    }
    return new Database(context, recovery)
  } catch (error) {
    await unlock()
    throw error
  }
}

interface LockedFolders {
  /** A random number in hexadecimal, new in each run. */
  readonly token: string
  readonly unlock: () => Promise<void>
}

/** Locks the data folders for this process. */
async function lockFolders(
  { dataDir, dataLogDir, autoCreateDataDir }: DatabaseSettings,
  { disk, random, system }: Platform,
): Promise<LockedFolders> {
  const token = [...random.bytes(8)].map((byte) => byte.toString(16).padStart(2, '0')).join('')
  const unlocks: (() => Promise<void>)[] = []
  const unlock = async (): Promise<void> => {
    for (const unlockOne of unlocks.reverse()) await unlockOne()
  }
  try {
    for (const folder of new Set([dataDir, dataLogDir])) {
      if (autoCreateDataDir) await disk.makeFolder(folder)
      unlocks.push(await lockFolder(disk, folder, system, token))
    }
    return { token, unlock }
  } catch (error) {
    await unlock()
    throw error
  }
}

/** `hashKey` is the key of the hash by which trees index their paths. */
function recoveryOptions(
  settings: DatabaseSettings,
  { disk, logger, compression, clock }: Platform,
  hashKey: number,
): RecoveryOptions {
  const { extendedTypesEnabled: extendedTypes, digestEnabled: digest } = settings
  // All trees of the process share what they have measured.
  const traffic = new NamespaceTraffic()
  return {
    disk,
    logger,
    compression,
    now: () => clock.monotonic(),
    dataDir: settings.dataDir,
    dataLogDir: settings.dataLogDir,
    autoCreate: settings.autoCreateDataDir,
    trustEmptySnapshot: settings.snapshotTrustEmpty,
    createTree: () => new Tree({ extendedTypes, digest, hashKey, traffic }),
    pause: pauseAfter(clock, SLICE_MS),
  }
}

/**
 * Recovers. If the files are readable but contradict each other, a standalone server does not start; a member sets them aside, is not
 * eligible to vote and gets everything from its leader.
 */
async function recoverOrRevokeEligibility(
  options: RecoveryOptions,
  eligibility: VoteEligibility | undefined,
): Promise<Recovery> {
  try {
    return await recover(options)
  } catch (error) {
    if (eligibility === undefined || !(error instanceof DivergedFilesError)) throw error
    await eligibility.revoke(error.message)
    return recover(options)
  }
}
