import { formatZxid } from '@zabra/protocol'
import {
  DiskError,
  silentLogger,
  type Compression,
  type Disk,
  type DiskReader,
  type Logger,
} from '@zabra/runtime'
import { Tree } from '../core/tree/index.ts'
import type { Zxid } from '../core/types.ts'
import { recover, scanLog, type Pause, type Recovery } from '../persistence/index.ts'
import { FEATURE_LEVEL } from '../version.ts'
import { openPiece, type BackupChain, type BackupStore } from './catalog.ts'
import { BackupError, BackupUsageError } from './errors.ts'
import type { LogManifest, Manifest } from './manifest.ts'

/** The tree of a backup, and its sessions. */
export interface LoadedBackup extends Pick<
  Recovery,
  'tree' | 'sessions' | 'lastZxid' | 'replayed' | 'canCompareDigests'
> {
  /** The feature level that its ensemble had finalized; 0 for none. */
  readonly level: number
}

export interface LoadOptions {
  readonly compression: Compression
  readonly logger?: Logger
  /** Called often, so that a server can serve beside it. */
  readonly pause?: Pause | undefined
}

/**
 * Builds the tree of a backup after a transaction: loads the snapshot and replays the log, with every check of a server that starts.
 * `upTo` must lie between `exactAt` of the snapshot and the end of the chain. Rejects with a `BackupError`, `DamageError` or
 * `RecoveryError` when the backup cannot be used.
 */
export async function loadBackup(
  store: BackupStore,
  chain: BackupChain,
  upTo: Zxid,
  { compression, logger = silentLogger, pause }: LoadOptions,
): Promise<LoadedBackup> {
  const level = Math.max(...[chain.snapshot, ...chain.logs].map((manifest) => manifest.level ?? 0))
  if (level > FEATURE_LEVEL)
    throw new BackupError(
      `Expected a backup of feature level ${FEATURE_LEVEL} or below, which this release reads, got one of level ${level}. Use a release of level ${level} or later.`,
    )
  const disk = new BackupDisk(store)
  disk.add(chain.snapshot.file, chain.snapshot, Infinity)
  for (const log of chain.logs)
    if (log.first <= upTo) disk.add(`log.${formatZxid(log.first)}`, log, await endOf(store, log, upTo))
  const recovery = await recover({
    dataDir: FOLDER,
    dataLogDir: FOLDER,
    disk: disk as unknown as Disk,
    logger,
    compression,
    autoCreate: false,
    trustEmptySnapshot: false,
    createTree: () => new Tree({ digest: true, extendedTypes: true }),
    upTo: Infinity,
    pause,
  })
  if (recovery.lastZxid === upTo) return { ...recovery, level }
  throw new BackupUsageError(
    `Expected the backup to end with 0x${formatZxid(upTo)}, got 0x${formatZxid(recovery.lastZxid)}. Name a transaction that zabra backup list shows.`,
  )
}

/** Opens a piece of the log as if it ended with the last transaction up to `upTo`. */
export async function openLogUpTo(store: BackupStore, log: LogManifest, upTo: Zxid): Promise<DiskReader> {
  const limit = await endOf(store, log, upTo)
  return firstBytes(await openPiece(store, log), limit)
}

function firstBytes(reader: DiskReader, limit: number): DiskReader {
  if (limit === Infinity) return reader
  return {
    read: (into, position) => reader.read(into.subarray(0, Math.max(0, limit - position)), position),
    size: async () => Math.min(limit, await reader.size()),
    close: () => reader.close(),
  }
}

/** Returns where in a piece of the log the first transaction above `upTo` begins. */
async function endOf(store: BackupStore, log: LogManifest, upTo: Zxid): Promise<number> {
  if (log.upTo <= upTo) return Infinity
  let end = Infinity
  await scanPiece(store, log, (entry) => {
    if (entry.zxid <= upTo) return true
    end = entry.offset
    return false
  })
  return end
}

/** Reads a piece of the log, and calls `visit` with each entry. */
export async function scanPiece(
  store: BackupStore,
  log: LogManifest,
  visit: Parameters<typeof scanLog>[2],
): Promise<void> {
  const disk = new BackupDisk(store)
  const name = `log.${formatZxid(log.first)}`
  disk.add(name, log, Infinity)
  await scanLog(disk as unknown as Disk, `${FILES}/${name}`, visit)
}

const FOLDER = 'backup'
const FILES = `${FOLDER}/version-2`

interface BackupFile {
  readonly manifest: Manifest
  /** Bytes that are shown of it. */
  readonly limit: number
}

/** Shows the pieces of a backup as a data folder that can be read and not written. */
class BackupDisk implements Pick<Disk, 'list' | 'exists' | 'openRead'> {
  readonly #store: BackupStore
  readonly #files = new Map<string, BackupFile>()

  constructor(store: BackupStore) {
    this.#store = store
  }

  add(name: string, manifest: Manifest, limit: number): void {
    this.#files.set(`${FILES}/${name}`, { manifest, limit })
  }

  async list(folder: string): Promise<string[]> {
    return folder === FILES ? [...this.#files.keys()].map((path) => path.slice(FILES.length + 1)) : []
  }

  async exists(path: string): Promise<boolean> {
    return path === FOLDER || path === FILES || this.#files.has(path)
  }

  async openRead(path: string): Promise<DiskReader> {
    const file = this.#files.get(path)
    if (file === undefined) throw new DiskError(`ENOENT on ${path}`, 'ENOENT', path)
    const reader = await openPiece(this.#store, file.manifest)
    return firstBytes(reader, file.limit)
  }
}
